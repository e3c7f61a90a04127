"""What was found out about whole classes, in sentences."""

from collections.abc import Sequence

HALF = 0.5


def percent(value: float) -> str:
    """Return a share in per cent.

    >>> percent(0.923)
    '92 %'
    """
    return f"{100 * value:.0f} %"


def whole_sentence(
    name: str, table: tuple[int, int, int, int], *, other: str = "", n_other: int = 0
) -> str:
    """Return that a class fails; it is said to fail as a whole where at least half of it does.

    Args:
        name: the class.
        table: its failures and samples, failures and samples of the other classes.
        other: the class that most failures are taken for, empty if there is none.
        n_other: how many are.

    >>> whole_sentence("heron", (48, 52, 24, 156), other="crane", n_other=44)
    'heron fails as a whole: 48 of 52 (92 %), the other classes 24 of 156 (15 %); mostly taken for crane (44)'
    """
    failed, total, failed_others, others = table
    said = (
        "fails as a whole" if failed >= HALF * total else "fails more often than the other classes"
    )
    there = failed_others / others if others else 0.0
    mostly = f"; mostly taken for {other} ({n_other})" if other else ""
    return (
        f"{name} {said}: {failed} of {total} ({percent(failed / total)}), "
        f"the other classes {failed_others} of {others} ({percent(there)}){mostly}"
    )


def confused_sentence(
    name: str, other: str, counts: tuple[int, int, int], *, share: float, back: tuple[int, int]
) -> str:
    """Return what a class is taken for, and how often the reverse happens.

    Args:
        name: the class.
        other: what it is taken for.
        counts: how many samples are, all its wrong answers, all its samples.
        share: how much of them would be usual.
        back: samples of the other class that are taken for this one, and how many it has.

    >>> confused_sentence("heron", "crane", (44, 48, 52), share=0.31, back=(2, 52))
    'heron is taken for crane: 44 of its 48 wrong answers (usual share 31 %); the reverse 2 of 52'
    """
    taken, wrong, _ = counts
    return (
        f"{name} is taken for {other}: {taken} of its {wrong} wrong answers "
        f"(usual share {percent(share)}); the reverse {back[0]} of {back[1]}"
    )


def untrained_sentence(name: str, n_failed: int, n_samples: int) -> str:
    """Return that a class has no training images.

    >>> untrained_sentence("owl", 12, 14)
    'owl has no training images; 12 of its 14 evaluation images fail'
    """
    return f"{name} has no training images; {n_failed} of its {n_samples} evaluation images fail"


def drift_sentence(
    name: str, column: str, rates: tuple[float, float], *, since: str, is_later: bool
) -> str:
    """Return that a class fails more the later, or the earlier.

    Args:
        name: the class.
        column: that tells the time.
        rates: failure rates of the earliest and of the latest third.
        since: where the latest third begins, or the earliest one ends.
        is_later: whether later samples fail more.

    >>> drift_sentence("owl", "date", (0.08, 0.4), since="2024-03-01", is_later=True)
    'owl fails more often the later its date: 40 % from 2024-03-01 on, 8 % of the earliest third'
    """
    early, late = rates
    if is_later:
        return (
            f"{name} fails more often the later its {column}: {percent(late)} from {since} on, "
            f"{percent(early)} of the earliest third"
        )
    return (
        f"{name} fails more often the earlier its {column}: {percent(early)} up to {since}, "
        f"{percent(late)} of the latest third"
    )


def shift_sentence(
    name: str,
    auc: float,
    *,
    here: Sequence[str] = (),
    there: Sequence[str] = (),
    throughout: tuple[int, int] | None = None,
) -> str:
    """Return that evaluation images of a class look unlike its training images.

    Args:
        name: the class.
        auc: how well held-out images are told apart.
        here: words for evaluation images.
        there: words for training images.
        throughout: in how many classes, of how many, that is so, if it is so almost everywhere.

    >>> shift_sentence("heron", 0.93, here=["standing", "reeds"], there=["flying"])
    'heron looks unlike training: “standing, reeds” here, “flying” there (told apart with AUC 0.93; chance 0.5)'
    """
    ends = [
        f"“{', '.join(words)}” {place}"
        for words, place in ((here, "here"), (there, "there"))
        if words
    ]
    said = f": {', '.join(ends)}" if ends else ""
    everywhere = (
        f"; so do {throughout[0]} of {throughout[1]} classes, the two sets differ throughout"
        if throughout
        else ""
    )
    return f"{name} looks unlike training{said} (told apart with AUC {auc:.2f}; chance 0.5){everywhere}"
