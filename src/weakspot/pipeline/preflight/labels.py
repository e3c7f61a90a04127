"""Names of classes that are hardly two, classes with few samples, and classes that only the classifier knows."""

import re
from collections.abc import Collection, Mapping, Sequence

from weakspot.core.preflight import CheckState, PreflightCheck

NAMES, COUNTS, EXTRA = "class names", "class counts", "extra classes"
FEW = 10
_MOST_LISTED = 5
_BETWEEN = re.compile(r"[\s_\-]+")


def check_label_names(counts: Mapping[str, int], known: Collection[str] = ()) -> PreflightCheck:
    """Say which labels are the same but for capitals, spaces, hyphens and underscores.

    Args:
        counts: samples by label.
        known: the classifier's own classes; names that it tells apart are meant.
    """
    alike: dict[str, list[str]] = {}
    for name in counts:
        alike.setdefault(_BETWEEN.sub(" ", name).strip().casefold(), []).append(name)
    # Single letters may well differ by their size, as in hand-written characters.
    doubled = [
        sorted(names)
        for plain, names in alike.items()
        if len(names) > 1 and len(plain) > 1 and not set(names) <= set(known)
    ]
    if not doubled:
        said = f"No two of {len(counts)} class names differ only in spelling."
        return PreflightCheck(check=NAMES, state=CheckState.OK, sentence=said)
    listed = "; ".join(
        " and ".join(f"{name!r} ({counts[name]:,})" for name in names)
        for names in doubled[:_MOST_LISTED]
    )
    return PreflightCheck(
        check=NAMES,
        state=CheckState.PROBLEM,
        sentence=f"Labels that are hardly two classes, with their samples: {listed}.",
        fix="Write the labels of one class in one way.",
        short=f"{len(doubled)} classes are spelt in two ways",
    )


def check_class_counts(evaluated: Mapping[str, int]) -> PreflightCheck:
    """Say which classes have too few samples where failures are looked for.

    Args:
        evaluated: evaluation samples by class.
    """
    few = {name: number for name, number in evaluated.items() if number < FEW}
    if not few:
        least = min(evaluated.values(), default=0)
        said = f"Every class has at least {least:,} evaluation samples."
        return PreflightCheck(check=COUNTS, state=CheckState.OK, sentence=said)
    ordered = sorted(few.items(), key=lambda item: (item[1], item[0]))
    listed = ", ".join(f"{name} {number}" for name, number in ordered[:_MOST_LISTED])
    more = f" and {len(few) - _MOST_LISTED} more" if len(few) > _MOST_LISTED else ""
    return PreflightCheck(
        check=COUNTS,
        state=CheckState.NOTICE,
        sentence=f"{len(few)} of {len(evaluated)} classes have fewer than {FEW} evaluation samples ({listed}{more}): "
        "little can be proven of them.",
        fix="Label more evaluation samples of these classes.",
        short=f"{len(few)} classes with fewer than {FEW} samples",
    )


def check_extra_classes(
    labelled: Sequence[str], class_names: Sequence[str]
) -> PreflightCheck | None:
    """Say which classes have no sample at all; None if every class has some."""
    has_label = set(labelled)
    extra = [name for name in class_names if name not in has_label]
    if not extra:
        return None
    listed = ", ".join(extra[:_MOST_LISTED])
    more = f" and {len(extra) - _MOST_LISTED} more" if len(extra) > _MOST_LISTED else ""
    return PreflightCheck(
        check=EXTRA,
        state=CheckState.NOTICE,
        sentence=f"The classifier knows {len(extra)} classes that no sample has ({listed}{more}); predicting one of them is wrong.",
        short=f"{len(extra)} classes of the classifier without samples",
    )
