"""Which samples are training, which are evaluated, and who decided that."""

from collections.abc import Mapping, Sequence

from weakspot.core.dataset import Split
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.pipeline.preflight.source_look import SourceLook

CHECK = "splits"


def check_splits(
    per_split: Mapping[str, int], *, n_dealt: int, configured: Sequence[str], used: Sequence[str]
) -> PreflightCheck:
    """Say what the splits are, whether they were dealt out here, and whether another one stands in for validation.

    Args:
        per_split: samples by split.
        n_dealt: samples that named no split and were dealt out.
        configured: the splits that are to be evaluated.
        used: those that are.
    """
    counted = ", ".join(f"{number:,} {name}" for name, number in per_split.items() if number)
    if n_dealt:
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"{_which(n_dealt, per_split)} no split and were dealt out at random ({counted}): "
            "train need not be what the classifier was trained on, and it may have been trained on the rest.",
            fix="Name the splits (folders train and val, or a column). If the classifier saw none of these images, write under [data]:",
            settings_line=f'default_split = "{Split.VALIDATION.value}"',
            short="splits dealt at random, train need not be the training",
        )
    if tuple(used) != tuple(configured):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"There is no labelled sample in {' or '.join(configured)} ({counted}), so {' and '.join(used)} is evaluated.",
            fix="To make that plain, write under [verify]:",
            settings_line=f"splits = {list(used)}".replace("'", '"'),
            short=f"{' and '.join(used)} is evaluated: there is no {' or '.join(configured)}",
        )
    if not per_split.get(Split.TRAIN.value, 0):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"No sample is in train ({counted}): nothing is said about causes in training, and no layer is retrained.",
            fix="Add the samples that the classifier was trained on, in a folder or split train.",
            short="no training samples",
        )
    said = f"Splits as the data name them: {counted}."
    return PreflightCheck(check=CHECK, state=CheckState.OK, sentence=said)


def _which(n_dealt: int, per_split: Mapping[str, int]) -> str:
    total = sum(per_split.values())
    return (
        f"All {total:,} samples name"
        if n_dealt == total
        else f"{n_dealt:,} of {total:,} samples name"
    )


def refuse_without_evaluation(look: SourceLook, *, configured: Sequence[str], where: str) -> None:
    """Refuse data in which nothing can be evaluated before they are read.

    Raises:
        NotEnoughDataError: if the source was seen to its end and all its labelled samples are in train, pool or synthetic.
    """
    evaluated = (None, Split.TEST, *[Split(name) for name in configured])
    n_labelled = sum(look.n_of(split) for split in look.counts)
    if look.is_whole and n_labelled and not any(look.n_of(split) for split in evaluated):
        named = {split.value: look.n_of(split) for split in look.counts if split is not None}
        raise NotEnoughDataError(
            f"There are no labelled samples in {' or '.join(configured)} or test to look for failures in.",
            where=where,
            given=named,
            fix="Put samples that the classifier was not trained on into a folder or split validation.",
        )
