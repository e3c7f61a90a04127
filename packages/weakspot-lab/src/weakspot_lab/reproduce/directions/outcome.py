"""What the steps of the Directions protocol come to: one measured value for every figure of the paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot_lab.reproduce.averages import Average, against, average, gain
from weakspot_lab.reproduce.directions.conditions import SHOWN
from weakspot_lab.reproduce.directions.hierarchy import N_SUBCLASSES
from weakspot_lab.reproduce.figures import Measured, read_figures
from weakspot_lab.reproduce.protocol import Results

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
