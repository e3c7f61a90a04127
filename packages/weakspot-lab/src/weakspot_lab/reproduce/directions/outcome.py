"""What the steps of the Directions protocol come to: the figures of the paper, its tables and plots."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot_lab.charts import line_chart
from weakspot_lab.reproduce.averages import Average, against, average, gain
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


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper."""
    found = {one.key: NOT_ON_DATA for one in read_figures(PAPER).figures}
    for kind, read in (
        ("spurious", _spurious_figures),
        ("strength", _strength_figures),
        ("rare", _rare_figures),
        ("removal", _removal_figures),
        ("tint", _tint_figures),
        ("conditions", _condition_figures),
        ("corruption", _corruption_figures),
    ):
        own = of_kind(results, kind)
        found |= read(own) if own else {}
    return found


def _percents(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if one is None else PERCENT * one for one in values]


def _spurious_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    def top(name: str) -> list[float]:
        return [PERCENT * float(np.mean(one["orders"][name])) for one in own]

    in_test = _percents([one["minority in test"] for one in own])
    found = {
        "flagged": against(
            _percents([one["minority among flagged"] for one in own]),
            in_test,
            "their share of all test images",
            if_higher="a drawn background is easier to separate than faces are",
        ),
        "test share": Measured(value=average(in_test).mean),
    }
    reasons = {
        "top confidence": ("confidence", "", "the network's confidence"),
        "top domino": ("Domino", "", "Domino"),
        "top lff": ("LfF", "biased minority accuracy", "Learning from Failure"),
        "top early": ("early stopping", "early minority accuracy", "early stopping"),
    }
    for key, (name, tell, words) in reasons.items():
        found[key] = against(top("svm"), top(name), words, if_absent=_cue_first(own, tell))
    found |= _caption_figures(own)
    base = _percents([one["minority accuracy"] for one in own])
    for arm, words in (("svm", "svm"), ("oracle", "oracle")):
        after = _percents([one["upweight"][arm] for one in own])
        found[f"upweight {words}"] = against(after, base, "the base network")
    return found | _synthetic_figures(own)


def _cue_first(own: Sequence[Mapping[str, Any]], tell: str) -> str:
    """Return why a reference that holds on to what is easy finds the minority, if it fails on most of it here."""
    if not tell:
        return ""
    rate = float(np.mean([one[tell] for one in own]))
    if rate > 0.5:  # noqa: PLR2004 - fails on most of the minority
        return ""
    return f"the drawn background is learnt first, so that such a network gets only {PERCENT * rate:.0f} % of the minority right"


def _caption_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    if any("captions" not in one for one in own):
        return {}
    near = [one["captions"]["near"] for one in own]
    named = average(_percents([one["captions"]["named"] for one in own]))

    def side(name: str) -> list[float]:
        return _percents([one[name] for one in near])

    return {
        "caption place": Measured(value=named.mean, low=named.low, high=named.high),
        "near hard": against(side("hard"), side("easy"), "images nearest to the easy caption"),
        "other network": against(
            side("other hard"), side("other easy"), "images nearest to its easy captions"
        ),
    }


def _synthetic_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    known = [one["synthetic"] for one in own if one.get("synthetic")]
    if not known:
        return {}

    def of(arm: str, how: str, where: str) -> list[float]:
        return _percents([one[arm][how][where] for one in known])

    def generated(arm: str) -> list[float]:
        return _percents([one[arm]["accuracy on generated"] for one in known])

    overall = _percents([one["original"]["overall"] for one in known])
    cost = gain(of("hard", "head", "overall"), overall)
    easy = gain(of("easy", "head", "easy"), of("neutral", "head", "easy"))
    return {
        "generated hard": against(
            generated("hard"), generated("neutral"), "images of the neutral caption"
        ),
        "generated easy": against(
            generated("easy"), generated("neutral"), "images of the neutral caption"
        ),
        "synthetic hard": against(
            of("hard", "head", "hard"),
            of("neutral", "head", "hard"),
            "adding images of the neutral caption",
        ),
        "synthetic scratch": against(
            of("hard", "scratch", "hard"),
            of("neutral", "scratch", "hard"),
            "adding images of the neutral caption",
        ),
        "synthetic easy": Measured(
            value=easy.mean, low=easy.low, high=easy.high, note=_easy_note(easy)
        ),
        "synthetic cost": Measured(
            value=cost.mean,
            low=cost.low,
            high=cost.high,
            if_higher="the hard images are a third of the test images here, so that helping them helps overall",
        ),
    }


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


def _spread_out(own: Sequence[Mapping[str, Any]], across: str, up: str) -> Measured:
    """Return the correlation over all worlds of a setting and what was measured at it."""
    return _correlated(
        [float(one[across]) for one in own for _ in one[up]],
        [float(value) for one in own for value in one[up]],
    )


def _strength_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    return {
        "strength": _spread_out(own, "ratio", "strength"),
        "cost of shift": _spread_out(own, "ratio", "minority accuracy"),
    }


def _rare_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    def top(name: str) -> list[float]:
        return [PERCENT * float(np.mean(one["orders"][name])) for one in own]

    def added(name: str, what: str) -> list[float]:
        return [PERCENT * float(_last_budget(one, name)[what]) for one in own]

    overall = [PERCENT * float(one["accuracy"]) for one in own]
    places = [[float(place) for place in one["captions"]] for one in own]
    strengths = [value for one in own for value in one["strengths"]]
    shares = [value for one in own for value in one["minority among errors"]]
    firsts = [
        average([PERCENT * (place < limit) for one in places for place in one]) for limit in (1, 2)
    ]
    changes = {
        name: gain(added(name, "overall"), overall) for name in ("svm", "confidence", "random")
    }
    by_lot = "naming by lot"
    lot = "adding at random"
    return {
        "rare top": against(top("svm"), top("confidence"), "the network's confidence"),
        "caption first": _named(firsts[0], PERCENT / N_SUBCLASSES, by_lot),
        "caption second": _named(firsts[1], 2 * PERCENT / N_SUBCLASSES, by_lot),
        "filter minority": against(added("svm", "minority"), added("random", "minority"), lot),
        "filter minority confidence": against(
            added("confidence", "minority"), added("random", "minority"), lot
        ),
        "filter original": Measured(
            value=average(overall).mean,
            if_higher="the planted superclasses overlap less than those of CIFAR-100",
        ),
        **{
            f"filter {name}": Measured(value=one.mean, low=one.low, high=one.high)
            for name, one in changes.items()
        },
        "error share": _correlated(strengths, shares),
    }


def _named(found: Average, chance: float, name: str) -> Measured:
    return Measured(
        value=found.mean, low=found.low, high=found.high, beside=chance, beside_name=name
    )


def _last_budget(one: Mapping[str, Any], name: str) -> Mapping[str, float]:
    """Return what the largest budget gave."""
    keys = [key for key in one["filtering"] if key.rsplit(" ", 1)[0] == name]
    found: Mapping[str, float] = one["filtering"][max(keys, key=lambda key: int(key.split()[-1]))]
    return found


def _removal_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    strength = [float(value) for one in own for value in one["strength"]]
    minority = [float(value) for one in own for value in one["minority accuracy"]]
    return {
        "removal strength": _spread_out(own, "removed", "strength"),
        "removal accuracy": _correlated(strength, minority),
    }


def _tint_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    last = max(own, key=lambda one: one["share"])
    return {
        "tint strength": _spread_out(own, "share", "strength"),
        "tint gain": against(
            _percents(last["after"]), _percents(last["before"]), "the base network"
        ),
    }


def _condition_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    """Return who comes first; of several conditions of ChestX-ray14 the figure is that of the one that the paper shows."""
    shown = [one for one in own if one["class"] == SHOWN] or own
    svm, confidence = (_percents([one[name] for one in shown]) for name in ("svm", "confidence"))
    return {"conditions": against(svm, confidence, "the classifier's confidence")}


def _corruption_figures(own: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    svm, confidence = (_percents([one[name] for one in own]) for name in ("svm", "confidence"))
    clean, noisy = (
        average(_percents([one[f"accuracy on {name}"] for one in own])).mean
        for name in ("clean", "noisy")
    )
    found = against(svm, confidence, "the network's confidence")
    return {
        "corruption": found.model_copy(
            update={"note": f"accuracy {clean:.1f} % on clean and {noisy:.1f} % on noisy images"}
        )
    }


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
