"""Export of a repair: the classifier with its new last layer, the layer alone, the plan, and lists for one's own training."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.backends.head_files import head_bytes, write_head
from weakspot.backends.new_files import files_in, new_files, refuse_existing
from weakspot.backends.training_weights import COLUMNS
from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import DataError, WeakspotError
from weakspot.core.heads import Head
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import Classifier, TakesHead
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import TrainingSelection
from weakspot.media.locations import shown_location
from weakspot.repair.plans import plan_text, plan_with, read_plan
from weakspot.repair.reproduction import (
    FIGURES_FILE,
    PREPROCESSING_FILE,
    SCRIPT_FILE,
    MeasuredRepair,
    Reproduction,
    preprocessing_words,
    write_reproduction,
)

WEIGHTS_FILE = "training_weights.csv"
KEY = "key"
ROWS_FILE = "training_rows.txt"
GROUP_OBJECTIVES_FILE = "group_objectives.json"
TRAINED_ON = (Split.TRAIN, Split.POOL, Split.SYNTHETIC)


def write_training_lists(
    folder: Path, selection: TrainingSelection, dataset: Dataset
) -> tuple[Path, ...]:
    """Write which samples a repair trains on and how much each counts, in the order of the data set.

    Args:
        folder: where to; files of the same names are replaced.
        selection: what is trained on.
        dataset: the samples.

    Returns:
        `training_weights.csv`; `training_rows.txt`, positions among the training samples; `group_objectives.json` if there are any.

    Raises:
        DataError: if validation or test samples are selected.
    """
    _refuse_measured(selection.rows, dataset)
    order = np.argsort(selection.rows, kind="stable")
    rows = selection.rows[order]
    files = [folder / WEIGHTS_FILE, folder / ROWS_FILE]
    _write_weights(files[0], rows, selection.weights[order].tolist(), dataset)
    training = dataset.rows_of(Split.TRAIN)
    positions = np.searchsorted(
        training, rows[dataset.splits[rows] == SPLIT_ORDER.index(Split.TRAIN)]
    )
    files[1].write_text(
        "".join(f"{position}\n" for position in positions.tolist()), encoding="ascii"
    )
    if selection.group_objectives:
        files.append(folder / GROUP_OBJECTIVES_FILE)
        files[2].write_text(
            json.dumps(_group_objectives(selection, dataset), indent=1) + "\n", encoding="utf-8"
        )
    return tuple(files)


def _write_weights(path: Path, rows: IntArray, weights: Sequence[float], dataset: Dataset) -> None:
    ids, places, splits, keys = (
        dataset.sample_ids(rows),
        dataset.locations(rows),
        dataset.splits[rows].tolist(),
        keys_of(rows, dataset),
    )
    labels = shown_labels(rows, dataset)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*COLUMNS, KEY))
        for name, place, label, weight, split, key in zip(
            ids, places, labels, weights, splits, keys, strict=True
        ):
            writer.writerow(
                [
                    name,
                    shown_location(place) if place else "",
                    label,
                    repr(float(weight)),
                    SPLIT_ORDER[split].value,
                    key,
                ]
            )


def keys_of(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return the user's own names of samples: what the column `key` says, else which row or file it was."""
    return [str(key) for key in dataset.table.column("key").take(rows).to_pylist()]


def shown_labels(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return labels as a manifest has them: several with `;` between them, or as a JSON list if a name holds a separator."""
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] if code >= 0 else "" for code in dataset.labels[rows].tolist()]
    is_plain = not any(mark in name for name in names for mark in ";|")
    lists = [[names[code] for code in np.flatnonzero(has)] for has in dataset.label_matrix[rows]]
    return [";".join(own) if is_plain else json.dumps(own, ensure_ascii=False) for own in lists]


def _group_objectives(selection: TrainingSelection, dataset: Dataset) -> list[dict[str, object]]:
    return [
        {
            "weight": float(sum(selection.weights[group].sum() for group in group_objective)),
            "groups": [dataset.sample_ids(selection.rows[group]) for group in group_objective],
        }
        for group_objective in selection.group_objectives
    ]


def _refuse_measured(rows: IntArray, dataset: Dataset) -> None:
    wrong = rows[~np.isin(dataset.splits[rows], [SPLIT_ORDER.index(split) for split in TRAINED_ON])]
    if len(wrong):
        raise DataError(
            f"{len(wrong)} samples are for measuring, so nothing may be trained on them.",
            where="training selection",
            given=dataset.sample_ids(wrong[:3]),
        )


__all__ = ["HandedBack", "export_repair", "head_content", "read_plan"]

HEAD_FILE = "repaired_head.safetensors"
PLAN_FILE = "plan.json"
README_FILE = "README.txt"
MODEL_FOLDER = "model"
OWN_FILES = (
    HEAD_FILE,
    PLAN_FILE,
    README_FILE,
    WEIGHTS_FILE,
    ROWS_FILE,
    GROUP_OBJECTIVES_FILE,
    SCRIPT_FILE,
    FIGURES_FILE,
    PREPROCESSING_FILE,
)
WIDE_KINDS = frozenset({"float32", "float64"})


@dataclass(frozen=True, kw_only=True)
class HandedBack:
    """What was written for the user; iterating gives the files.

    Args:
        files: every file, the main one of the classifier first if it could be written.
        notes: what could not be written, and what to know.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Path]:
        """Yield the files."""
        return iter(self.files)


def export_repair(  # noqa: PLR0913 - one argument a record
    folder: Path,
    *,
    classifier: Classifier | None,
    head: Head,
    class_names: Sequence[str],
    selection: TrainingSelection,
    samples: SampleSet,
    plan: RepairPlan,
    slices: Sequence[FailureSlice],
    measured: MeasuredRepair | None = None,
) -> HandedBack:
    """Write everything of a repair that a user takes away into a folder, all of it or nothing.

    Args:
        folder: made if need be; no file in it is overwritten.
        classifier: the user's; None if only its predictions are known. If it cannot be written that becomes a note.
        head: its repaired last layer, rows in the order of `class_names`.
        class_names: the classes of the data set.
        selection: what the head was trained on.
        samples: of the project.
        plan: what was meant to be changed.
        slices: the slices that the plan names.
        measured: what is claimed of it, which a script in the folder gives again; None if nothing was measured.

    Raises:
        ModelError: if files of the same names are there; they are listed.
    """
    refuse_existing(folder, OWN_FILES)
    with new_files(folder) as staging:
        write_head(staging / HEAD_FILE, head, class_names)
        (staging / PLAN_FILE).write_text(plan_text(plan_with(plan, slices)), encoding="utf-8")
        write_training_lists(staging, selection, samples.dataset)
        model, notes = _write(classifier, head, class_names, staging / MODEL_FOLDER)
        main = [path.relative_to(staging) for path in model]
        reproduction = write_reproduction(
            staging,
            folder,
            classifier=classifier,
            repaired=model[0] if model else None,
            measured=measured,
            slices=slices,
        )
        notes = (*notes, *filter(None, [reproduction.note]))
        (staging / README_FILE).write_text(
            _readme(main, notes, reproduction, has_groups=bool(selection.group_objectives)),
            encoding="utf-8",
        )
        names = [*main, *(name for name in files_in(staging) if name not in main)]
    return HandedBack(files=tuple(folder / name for name in names), notes=notes)


def head_content(head: Head, class_names: Sequence[str]) -> bytes:
    return head_bytes(head, class_names)


def _write(
    classifier: Classifier | None, head: Head, class_names: Sequence[str], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the classifier's own files with the head in them, the main one first, or why there are none."""
    if classifier is None:
        return (), (
            "The classifier itself is not known here, only its predictions, so it was not written.",
        )
    if not isinstance(classifier, TakesHead):
        return (), (
            f"A classifier of this kind ({type(classifier).__name__}) cannot be written with another last layer.",
        )
    try:
        files = classifier.write_repaired(
            head.reordered(class_names, classifier.class_names), folder
        )
    except WeakspotError as error:
        return (), (f"The classifier was not written: {error.what}",)
    kind = getattr(classifier, "layer_kind", None)
    is_rounded = kind is not None and kind not in WIDE_KINDS
    return files, (
        (f"The classifier keeps its last layer in {kind}, so the head was rounded to that.",)
        if is_rounded
        else ()
    )


def _readme(
    model: Sequence[Path], notes: Sequence[str], reproduction: Reproduction, *, has_groups: bool
) -> str:
    named = (
        "".join([model[0].as_posix(), ", with the files beside it" if len(model) > 1 else ""])
        if model
        else ""
    )
    main = f"{named}: your classifier with the repaired last layer; all else in it is as it was."
    group_objectives = f"{GROUP_OBJECTIVES_FILE}: groups of samples of which only that with the largest mean loss counts."
    lines = [
        "What weakspot repair wrote. None of your own files was changed.",
        "",
        *([main] if model else []),
        *notes,
        f"{HEAD_FILE}: the last layer alone: weight [classes, features], bias [classes]; scores = features @ weight.T + bias.",
        "  In torch: torch.nn.Linear(...).load_state_dict(safetensors.torch.load_file(file)).",
        f"{PLAN_FILE}: the slices, strategy and seed; weakspot repair --plan {PLAN_FILE} does the same again.",
        f"{WEIGHTS_FILE}: what it was trained on and how much each sample counts, for your own training of the whole network;",
        "  weakspot.backends.torch_sampler.WeightedSamples draws by it, loss_weights(file, ids) gives factors for losses.",
        f"{ROWS_FILE}: positions, from 0, of those samples among your training samples in the order of the manifest, without",
        "  quarantined ones; samples from the pool and generated ones are in the table only.",
        *([group_objectives] if has_groups else []),
        *_reproduction_lines(reproduction),
    ]
    return "\n".join(lines) + "\n"


def _reproduction_lines(reproduction: Reproduction) -> list[str]:
    lines = []
    if reproduction.has_script:
        lines = [
            f"{SCRIPT_FILE}: gives the figures before and after again without weakspot; {FIGURES_FILE}: the images, labels and",
            "  claims that it reads. Paths in it are seen from this folder.",
        ]
    if reproduction.preprocessing is not None:
        lines += [
            f"{PREPROCESSING_FILE}: how images are prepared, which is what a program needs:",
            "",
            *preprocessing_words(reproduction.preprocessing),
        ]
    return lines
