"""Tables and plots of the Directions protocol, in the form of the paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot_lab.charts import line_chart
from weakspot_lab.reproduce.directions.outcome import PERCENT, of_kind
from weakspot_lab.reproduce.protocol import PaperTable, Results


def tables(results: Results) -> list[PaperTable]:
    """Return the paper's tables with our figures."""
    found: list[PaperTable] = []
    own = of_kind(results, "spurious")
    if own:
        found.append(
            _order_table(own, "Fig. 2: minority among the first K images of each class, percent")
        )
        found.append(_synthetic_table(own))
    for kind, title, columns in (
        ("strength", "Fig. 4 and 11: strength of the planted shift", ("ratio", "strength", "minority accuracy")),
        ("removal", "Fig. 22: share of the rare subclass removed", ("removed", "strength", "minority accuracy")),
        ("tint", "Fig. 17 and 18: Colored MNIST", ("share", "strength", "before", "after")),
    ):  # fmt: skip
        if rows := of_kind(results, kind):
            found.append(
                PaperTable(
                    title=title,
                    header=columns,
                    rows=tuple(
                        (
                            f"{one[columns[0]]:g}",
                            *(PERCENT * float(np.mean(one[name])) for name in columns[1:]),
                        )
                        for one in rows
                    ),
                    note="Strength is balanced accuracy in percent; 50 is guessing.",
                )
            )
    if rare := of_kind(results, "rare"):
        found.append(
            _order_table(
                rare, "Fig. 5: rare subclass among the first K images of each superclass, percent"
            )
        )
        found.append(_filter_table(rare))
    if conditions := of_kind(results, "conditions"):
        found.append(_condition_table(conditions))
    if corruption := of_kind(results, "corruption"):
        found.append(_corruption_table(corruption))
    return found


def _order_table(own: Sequence[Mapping[str, Any]], title: str) -> PaperTable:
    counts = own[0]["counts"]
    return PaperTable(
        title=title,
        header=("order", *(f"K = {count}" for count in counts)),
        rows=tuple(
            (name, *(PERCENT * float(one) for one in np.mean([each["orders"][name] for each in own], axis=0)))
            for name in own[0]["orders"]
        ),
    )  # fmt: skip


def _synthetic_table(own: Sequence[Mapping[str, Any]]) -> PaperTable:
    known = [one["synthetic"] for one in own if one.get("synthetic")]

    def row(arm: str, how: str) -> tuple[str | float | None, ...]:
        read = [one[arm] if how == "" else one[arm][how] for one in known]
        words = arm if how == "" else f"{arm}, {'last layer' if how == 'head' else 'from scratch'}"
        return (words, *(PERCENT * float(np.mean([one[name] for one in read])) for name in ("hard", "easy", "overall")))  # fmt: skip

    return PaperTable(
        title="Fig. 9 and App. A.8: images of the hard, neutral and easy caption added, accuracy in percent",
        header=("images of", "near the hard caption", "near the easy caption", "overall"),
        rows=(
            row("original", ""),
            *(row(arm, how) for how in ("head", "scratch") for arm in ("easy", "hard", "neutral")),
        )
        if known
        else (),
    )


def _filter_table(own: Sequence[Mapping[str, Any]]) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = [
        (
            "original",
            PERCENT * float(np.mean([one["minority accuracy"] for one in own])),
            PERCENT * float(np.mean([one["accuracy"] for one in own])),
        )
    ]
    rows += [
        (name, *(PERCENT * float(np.mean([one["filtering"][name][what] for one in own])) for what in ("minority", "overall")))
        for name in own[0]["filtering"]
    ]  # fmt: skip
    return PaperTable(
        title="Fig. 6 and App. A.5: images added per superclass, accuracy in percent",
        header=("chosen by, images", "minority", "overall"),
        rows=tuple(rows),
    )


def _condition_table(own: Sequence[Mapping[str, Any]]) -> PaperTable:
    return PaperTable(
        title="Fig. 39 and App. C.3: multi-label, marked images (AP radiographs) among all of a side and among those put first, percent",
        header=("condition", "side", "of all", "SVM first", "least confident first", "strength"),
        rows=tuple(
            (
                one["class"],
                one.get("side", ""),
                *(
                    None if one[name] is None else PERCENT * float(one[name])
                    for name in ("in test", "svm", "confidence", "strength")
                ),
            )
            for one in own
        ),
        note="Thresholds are chosen by F1 on validation samples. Empty where too few images fail for an SVM.",
    )


def _corruption_table(own: Sequence[Mapping[str, Any]]) -> PaperTable:
    return PaperTable(
        title="Fig. 19: ImageNet-C, noisy images among those put first, and accuracy, percent",
        header=(
            "world",
            "SVM first",
            "least confident first",
            "accuracy, clean",
            "accuracy, noisy",
        ),
        rows=tuple(
            (
                f"{number}",
                *(
                    PERCENT * float(one[name])
                    for name in ("svm", "confidence", "accuracy on clean", "accuracy on noisy")
                ),
            )
            for number, one in enumerate(own)
        ),
    )


def plots(results: Results) -> dict[str, str]:
    """Return Fig. 4, Fig. 2 and Fig. 5 as SVG."""
    drawn: dict[str, str] = {}
    if own := of_kind(results, "strength"):
        drawn["fig-4-strength.svg"] = line_chart(
            {
                "cross-validation score": [
                    (float(one["ratio"]), float(np.mean(one["strength"]))) for one in own
                ],
                "minority accuracy": [
                    (float(one["ratio"]), float(np.mean(one["minority accuracy"]))) for one in own
                ],
            },
            title="Fig. 4 and 11: strength of the direction against the planted shift",
            x_label="majority images for each minority image in training",
            y_label="balanced accuracy, accuracy",
        )
    for kind, name, title in (
        ("spurious", "fig-2-minority.svg", "Fig. 2: minority among the first K images"),
        ("rare", "fig-5-minority.svg", "Fig. 5: rare subclass among the first K images"),
    ):
        if own := of_kind(results, kind):
            drawn[name] = line_chart(
                {
                    order: list(
                        zip(
                            map(float, own[0]["counts"]),
                            np.mean([one["orders"][order] for one in own], axis=0).tolist(),
                            strict=True,
                        )
                    )
                    for order in own[0]["orders"]
                },
                title=title,
                x_label="K",
                y_label="share of the minority",
            )
    return drawn
