"""Files that were set aside, images that are in training and in evaluation, and images with two labels."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.preflight import CheckState, PreflightCheck

FILES, LEAKS, CONFLICTS, GROUPS = "files", "leaks", "conflicting labels", "groups across splits"
LEAKED_SHARE = 0.05
"""From this share on, evaluation samples that are also in training make figures wrong; fewer are only worth knowing."""
LEAST_LEAKED = 3


def check_files(quarantined: Mapping[str, int], n_samples: int) -> PreflightCheck:
    n_aside = sum(quarantined.values())
    if not n_aside:
        said = f"All {n_samples:,} samples could be read."
        return PreflightCheck(check=FILES, state=CheckState.OK, sentence=said)
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in quarantined.items())
    return PreflightCheck(
        check=FILES,
        state=CheckState.NOTICE,
        sentence=f"{n_aside:,} of {n_samples + n_aside:,} samples were set aside: {reasons}.",
        fix="`weakspot ingest` says the same; the names are in the quarantine table of the project.",
        short=f"{n_aside:,} {'file' if n_aside == 1 else 'files'} set aside",
    )


def check_leaks(
    dataset: Dataset, evaluated: IntArray, is_near_copy: BoolArray | None = None
) -> PreflightCheck | None:
    """Say how many evaluation images are in training, too; None without images or without training.

    Args:
        dataset: all samples.
        evaluated: rows that are evaluated [n].
        is_near_copy: which of them are nearly the same as a training image [n]; None if that was not looked at.
    """
    training = dataset.rows_of(Split.TRAIN)
    if not len(training) or not len(evaluated) or not dataset.has_images:
        return None
    codes = np.asarray(
        dataset.table.column("content_hash").combine_chunks().dictionary_encode().indices
    )
    is_copy = np.isin(codes[evaluated], codes[training])
    is_leaked = is_copy if is_near_copy is None else is_copy | is_near_copy
    n_leaked, n_copies, n_evaluated = int(is_leaked.sum()), int(is_copy.sum()), len(evaluated)
    if not n_leaked:
        how = "a copy" if is_near_copy is None else "a copy, or nearly one,"
        said = f"None of {n_evaluated:,} evaluation images has {how} in training."
        return PreflightCheck(check=LEAKS, state=CheckState.OK, sentence=said)
    parts = [f"{n_copies:,} exactly"] if n_copies else []
    parts += [f"{n_leaked - n_copies:,} nearly"] if n_leaked > n_copies else []
    is_bad = n_leaked >= max(LEAST_LEAKED, LEAKED_SHARE * n_evaluated)
    return PreflightCheck(
        check=LEAKS,
        state=CheckState.PROBLEM if is_bad else CheckState.NOTICE,
        sentence=f"{n_leaked:,} of {n_evaluated:,} evaluation images are also in training ({', '.join(parts)}): "
        "figures look better than they are.",
        fix="Take these images out of one of the splits.",
        short=f"{n_leaked:,} evaluation images are also in training",
    )


def check_conflicts(dataset: Dataset, rows: IntArray) -> PreflightCheck | None:
    """Say how many images have several labels; None where that cannot be told."""
    if not dataset.has_images or "label" not in dataset.table.column_names:
        return None
    table = dataset.table.select(["content_hash", "label"]).take(pa.array(rows))
    pairs = table.group_by(["content_hash", "label"]).aggregate([]).column("content_hash")
    n_labels = np.asarray(pairs.value_counts().field("counts")) if len(pairs) else np.zeros(0)
    n_conflicts = int((n_labels > 1).sum())
    if not n_conflicts:
        said = "No image occurs with two different labels."
        return PreflightCheck(check=CONFLICTS, state=CheckState.OK, sentence=said)
    return PreflightCheck(
        check=CONFLICTS,
        state=CheckState.NOTICE,
        sentence=f"{n_conflicts:,} images occur with different labels: one of them is wrong whatever is predicted.",
        fix="Correct the labels; the images are in the duplicates table of the project.",
        short=f"{n_conflicts:,} images with two labels",
    )


def check_groups(n_groups: int, n_across: int) -> PreflightCheck | None:
    """Say how many groups, as the data name them, are in several splits; None without groups."""
    if not n_groups:
        return None
    if not n_across:
        said = f"None of {n_groups:,} groups is in several splits."
        return PreflightCheck(check=GROUPS, state=CheckState.OK, sentence=said)
    return PreflightCheck(
        check=GROUPS,
        state=CheckState.NOTICE,
        sentence=f"{n_across:,} of {n_groups:,} groups are in several splits: evaluation knows them from training.",
        fix="Keep every group in one split.",
        short=f"{n_across:,} groups in several splits",
    )
