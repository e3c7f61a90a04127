"""What the steps of the Directions protocol come to: the figures of the paper, its tables and plots."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot_lab.charts import line_chart
from weakspot_lab.reproduce.averages import Average, against, average, mean_of, percents
from weakspot_lab.reproduce.directions.conditions import SHOWN
from weakspot_lab.reproduce.directions.hierarchy import N_SUBCLASSES
from weakspot_lab.reproduce.figures import Measured, read_figures
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Results

PAPER = "directions"
PERCENT = 100.0
NORMAL_95, FISHER_LOSS = 1.96, 3
NOT_ON_DATA = Measured(note="Not measured on this data: see the stand-in.")


def of_kind(results: Results, kind: str) -> list[Mapping[str, Any]]:
    """Return the results of the steps of a kind, in order."""
    return [found for name, found in results.items() if name.rsplit("-", 1)[0] == kind]


BASE = "the base network"
NEUTRAL = "adding images of the neutral caption"
BY_LOT = "adding at random"
COMPARED: Mapping[str, tuple[str, str, str, str]] = {
    "flagged": ("spurious", "minority among flagged", "minority in test", "their share of all test images"),
    "top confidence": ("spurious", "orders/svm", "orders/confidence", "the network's confidence"),
    "top domino": ("spurious", "orders/svm", "orders/Domino", "Domino"),
    "top lff": ("spurious", "orders/svm", "orders/LfF", "Learning from Failure"),
    "top early": ("spurious", "orders/svm", "orders/early stopping", "early stopping"),
    "near hard": ("spurious", "captions/near/hard", "captions/near/easy", "images nearest to the easy caption"),
    "other network": ("spurious", "captions/near/other hard", "captions/near/other easy", "images nearest to its easy captions"),
    "upweight svm": ("spurious", "upweight/svm", "minority accuracy", BASE),
    "upweight oracle": ("spurious", "upweight/oracle", "minority accuracy", BASE),
    "generated hard": (
        "spurious", "synthetic/hard/accuracy on generated", "synthetic/neutral/accuracy on generated", "images of the neutral caption"
    ),
    "generated easy": (
        "spurious", "synthetic/easy/accuracy on generated", "synthetic/neutral/accuracy on generated", "images of the neutral caption"
    ),
    "synthetic hard": ("spurious", "synthetic/hard/head/hard", "synthetic/neutral/head/hard", NEUTRAL),
    "synthetic scratch": ("spurious", "synthetic/hard/scratch/hard", "synthetic/neutral/scratch/hard", NEUTRAL),
    "rare top": ("rare", "orders/svm", "orders/confidence", "the network's confidence"),
    "conditions": ("conditions", "svm", "confidence", "the classifier's confidence"),
    "corruption": ("corruption", "svm", "confidence", "the network's confidence"),
}  # fmt: skip
"""What is compared: figure of the paper, step, our field, the field beside it, and what that is."""
CORRELATED = {
    "strength": ("strength", "ratio", "strength"),
    "cost of shift": ("strength", "ratio", "minority accuracy"),
    "removal strength": ("removal", "removed", "strength"),
    "tint strength": ("tint", "share", "strength"),
}
"""What is correlated over all worlds: figure of the paper, step, the setting, and what was measured at it."""


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper."""
    found = {one.key: NOT_ON_DATA for one in read_figures(PAPER).figures}
    for key, (kind, mine, theirs, name) in COMPARED.items():
        own = [
            one for one in of_kind(results, kind) if "/" not in mine or one.get(mine.split("/")[0])
        ]
        own = [one for one in own if kind != "conditions" or one["class"] == SHOWN] or own
        if own:
            words = _words(key, own)
            found[key] = against(percents(own, mine), percents(own, theirs), name, **words)
    for key, (kind, across, up) in CORRELATED.items():
        if own := of_kind(results, kind):
            points = [(float(one[across]), float(value)) for one in own for value in one[up]]
            found[key] = _correlated(*zip(*points, strict=True))
    for kind, read in (
        ("spurious", _spurious),
        ("rare", _rare),
        ("removal", _removal),
        ("tint", _tint),
    ):
        own = of_kind(results, kind)
        found |= read(own) if own else {}
    return found


def _words(key: str, own: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what else is to be said of a comparison."""
    if key == "flagged":
        return {"if_higher": "a drawn background is easier to separate than faces are"}
    if key in FIRST_LEARNT:
        rate = float(np.mean([one[FIRST_LEARNT[key]] for one in own]))
        held = f"the drawn background is learnt first, so that such a network gets only {PERCENT * rate:.0f} % of the minority right"
        return {"if_absent": held if rate <= 0.5 else ""}  # noqa: PLR2004 - fails on most of the minority
    if key == "corruption":
        clean, noisy = (
            average(percents(own, f"accuracy on {name}")).mean for name in ("clean", "noisy")
        )
        return {"note": f"accuracy {clean:.1f} % on clean and {noisy:.1f} % on noisy images"}
    return {}


FIRST_LEARNT = {"top lff": "biased minority accuracy", "top early": "early minority accuracy"}
"""References that find the minority by holding on to what is easy, and how often such a network gets the minority right."""


def _spurious(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    found = {"test share": Measured(value=average(percents(own, "minority in test")).mean)}
    if all("captions" in one for one in own):
        found["caption place"] = mean_of(percents(own, "captions/named"))
    if known := [one["synthetic"] for one in own if one.get("synthetic")]:
        easy, neutral = percents(known, "easy/head/easy"), percents(known, "neutral/head/easy")
        gains = np.subtract(easy, neutral).tolist()
        found["synthetic easy"] = mean_of(gains, note=_easy_note(average(gains)))
        found["synthetic cost"] = mean_of(
            np.subtract(
                percents(known, "hard/head/overall"), percents(known, "original/overall")
            ).tolist(),
            if_higher="the hard images are a third of the test images here, so that helping them helps overall",
        )
    return found


def _easy_note(easy: Average) -> str:
    """Return whether images of the easy caption help no more than neutral ones, as the paper finds."""
    if easy.low is not None and easy.low > 0:
        return "unlike in the paper, images of the easy caption help where it is easy"
    return "as in the paper, images of the easy caption help no more than neutral ones do"


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Pearson's correlation; NaN where one of the two does not vary.

    >>> round(correlation([1, 2, 3], [2, 4, 7]), 3)
    0.993
    """
    pairs = np.array(
        [
            (one, other)
            for one, other in zip(first, second, strict=True)
            if one is not None and other is not None
        ],
        dtype=np.float64,
    )
    if len(pairs) < 2 or (pairs.std(axis=0) == 0).any():  # noqa: PLR2004 - two points make a line
        return float("nan")
    table = np.asarray(np.corrcoef(pairs.T))
    return float(table[0, 1])


def _correlated(first: Sequence[float | None], second: Sequence[float | None]) -> Measured:
    """Return a correlation beside none, with Fisher's interval."""
    known = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if one is not None and other is not None
    ]
    value = correlation([one for one, _ in known], [other for _, other in known])
    low, high = fisher_interval(value, len(known))
    return Measured(
        value=value,
        low=low,
        high=high,
        beside=0.0,
        beside_name="no correlation",
        gain_low=low,
        gain_high=high,
    )


def fisher_interval(value: float, n_points: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a correlation; none for fewer than four points.

    >>> low, high = fisher_interval(0.5, 28)
    >>> round(low, 2), round(high, 2)
    (0.16, 0.74)
    """
    if n_points <= FISHER_LOSS or not abs(value) < 1:
        return None, None
    middle, half = float(np.arctanh(value)), NORMAL_95 / float(np.sqrt(n_points - FISHER_LOSS))
    return float(np.tanh(middle - half)), float(np.tanh(middle + half))


def _rare(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    def added(name: str, what: str) -> list[float]:
        return [PERCENT * float(_last_budget(one, name)[what]) for one in own]

    overall = percents(own, "accuracy")
    first, second = (
        mean_of(
            [PERCENT * (float(place) < limit) for one in own for place in one["captions"]],
            beside=limit * PERCENT / N_SUBCLASSES,
            beside_name="naming by lot",
        )
        for limit in (1, 2)
    )
    by_lot = added("random", "minority")
    return {
        "caption first": first,
        "caption second": second,
        "filter minority": against(added("svm", "minority"), by_lot, BY_LOT),
        "filter minority confidence": against(added("confidence", "minority"), by_lot, BY_LOT),
        "filter original": Measured(
            value=average(overall).mean,
            if_higher="the planted superclasses overlap less than those of CIFAR-100",
        ),
        **{
            f"filter {name}": mean_of(np.subtract(added(name, "overall"), overall).tolist())
            for name in ("svm", "confidence", "random")
        },
        "error share": _correlated(
            [value for one in own for value in one["strengths"]],
            [value for one in own for value in one["minority among errors"]],
        ),
    }


def _last_budget(one: Mapping[str, Any], name: str) -> Mapping[str, float]:
    """Return what the largest budget gave."""
    keys = [key for key in one["filtering"] if key.rsplit(" ", 1)[0] == name]
    found: Mapping[str, float] = one["filtering"][max(keys, key=lambda key: int(key.split()[-1]))]
    return found


def _removal(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    strength = [float(value) for one in own for value in one["strength"]]
    minority = [float(value) for one in own for value in one["minority accuracy"]]
    return {"removal accuracy": _correlated(strength, minority)}


def _tint(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    last = max(own, key=lambda one: one["share"])
    after, before = (
        [PERCENT * float(value) for value in last[name]] for name in ("after", "before")
    )
    return {"tint gain": against(after, before, BASE)}


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


OUTCOME = Outcome(measured=measured, tables=tables, plots=plots)
