"""What the steps of the Refine protocol say about the figures of the paper."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from weakspot.project.refine.request import CUTMIX, DIRECTIONS, PREDEFINED, RANDOM, REFINE
from weakspot_lab.reproduce.averages import Average, average, gain
from weakspot_lab.reproduce.figures import Measured
from weakspot_lab.reproduce.protocol import Results

FAMILY = "family-"
N_FIRST = 2
"""The paper's Table 2 shows two of eight families; here the first two stand for them, the others for its Table 7."""
ENOUGH = 0.9
LARGE_GAIN = 15
WEAK_HEAD = (
    "small networks keep less about the object under a strong background than pretrained ones"
)
FEW_CLEAN = (
    "right answers may rest on the tied value here, which the images teach the layer to leave out"
)


def families(results: Results) -> dict[str, Mapping[str, Any]]:
    return {
        name.removeprefix(FAMILY): one for name, one in results.items() if name.startswith(FAMILY)
    }


def models(results: Results, names: Sequence[str] | None = None) -> list[Mapping[str, Any]]:
    found = families(results)
    chosen = list(found) if names is None else names
    return [one for name in chosen for one in found[name]["models"]]


def column(given: Sequence[Mapping[str, Any]], arm: str, name: str) -> list[float]:
    """Return one column of an arm over models; those without it are left out."""
    found = [one["arms"].get(arm, {}).get(name) for one in given]
    return [float(value) for value in found if value is not None]


def beside(given: Sequence[Mapping[str, Any]], name: str, other: str, **words: str) -> Measured:
    """Return a column of the refinement, compared model by model with the same column of another arm."""
    pairs = [
        (one["arms"][REFINE][name], one["arms"][other][name])
        for one in given
        if other in one["arms"]
        and one["arms"][REFINE][name] is not None
        and one["arms"][other][name] is not None
    ]
    mine, theirs = average([own for own, _ in pairs]), average([one for _, one in pairs])
    between = gain([own for own, _ in pairs], [one for _, one in pairs])
    return Measured(
        value=mine.mean,
        low=mine.low,
        high=mine.high,
        beside=theirs.mean,
        beside_name=ARM_WORDS[other],
        gain_low=between.low,
        gain_high=between.high,
        **words,
    )


ARM_WORDS = {
    RANDOM: "images of the bare class",
    PREDEFINED: "a fixed list of backgrounds",
    DIRECTIONS: "Directions",
    CUTMIX: "CutMix",
    "plain": "retraining alone",
}


def plain_measured(found: Average, **words: str) -> Measured:
    return Measured(value=found.mean, low=found.low, high=found.high, **words)


def overlaps(results: Results) -> tuple[list[float], list[float]]:
    """Return the failures in common of every two models of a family, and of any two models, in %."""
    failed = {
        (family, name): set(rows)
        for family, one in families(results).items()
        for name, rows in one["failures"].items()
    }
    given = [
        100 * value
        for one in families(results).values()
        for row, line in enumerate(one["overlaps"] if not one["failures"] else ())
        for value in line[:row]
    ]
    within, across = list(given), list(given)
    for first, second in combinations(failed, 2):
        union = failed[first] | failed[second]
        share = 100 * len(failed[first] & failed[second]) / len(union) if union else float("nan")
        across.append(share)
        if first[0] == second[0]:
            within.append(share)
    return within, across


def overlap_of(results: Results, first: str, second: str) -> float:
    """Return the mean overlap of the failures of two families, as a share."""
    own, other = (list(families(results)[name]["failures"].values()) for name in (first, second))
    pairs = list(combinations(own, 2)) if first == second else list(product(own, other))
    shares = [len({*one} & {*two}) / max(len({*one} | {*two}), 1) for one, two in pairs]
    return float(np.mean(shares)) if shares else 1.0


def collective_models(results: Results, kind: int) -> list[Mapping[str, Any]]:
    """Return the models of all families after one set each; the source of the set is left out."""
    return [
        one
        for family in families(results).values()
        if f"collective {kind}" in family
        for one in family[f"collective {kind}"]["models"]
        if not one["is_source"]
    ]


def collective_measured(results: Results, kind: int) -> Measured:
    given = collective_models(results, kind)
    pairs = [
        (one["held_out"], one["random_held_out"])
        for one in given
        if one["held_out"] is not None and one["random_held_out"] is not None
    ]
    if not pairs:
        return Measured(note="There is only one model.")
    mine, between = average([own for own, _ in pairs]), gain(*zip(*pairs, strict=True))
    return Measured(
        value=mine.mean,
        low=mine.low,
        high=mine.high,
        beside=average([one for _, one in pairs]).mean,
        beside_name=ARM_WORDS[RANDOM],
        gain_low=between.low,
        gain_high=between.high,
        if_lower=WEAK_HEAD,
    )


def relatives(results: Results) -> list[float]:
    found = [one.get("collective 1", {}).get("relative") for one in families(results).values()]
    return [float(value) for value in found if value is not None]


def sweep_rows(results: Results) -> list[Mapping[str, Any]]:
    """Return held-out and test of every lambda and k, means over the swept networks."""
    given: list[Mapping[str, Any]] = results["sweep"]["rows"]
    found: list[Mapping[str, Any]] = []
    for weight, k in dict.fromkeys((one["lambda"], one["k"]) for one in given):
        own = [one["arms"][REFINE] for one in given if (one["lambda"], one["k"]) == (weight, k)]
        means = {
            name: float(np.mean([one[name] for one in own if one[name] is not None]))
            for name in ("held_out", "clean", "test_after", "test_before")
        }
        found.append({"lambda": weight, "k": k, **means})
    return found


def balanced_lambda(results: Results, k: int = 3) -> float:
    """Return the largest lambda with which the test accuracy is the best one reached or within half a point of it."""
    own = [one for one in sweep_rows(results) if one["k"] == k]
    best = max(one["test_after"] for one in own)
    return float(max(one["lambda"] for one in own if one["test_after"] >= best - 0.5))


def enough_values(results: Results, weight: float = 0.5) -> int:
    """Return the smallest k that reaches nine tenths of the held-out failures that the largest one resolves."""
    own = [one for one in sweep_rows(results) if one["lambda"] == weight]
    most = max(one["held_out"] for one in own)
    return int(min(one["k"] for one in own if one["held_out"] >= ENOUGH * most))


def measured(results: Results) -> Mapping[str, Measured]:
    return dict(_measured(results))


def _measured(results: Results) -> Iterator[tuple[str, Measured]]:
    names = list(families(results))
    first, others = models(results, names[:N_FIRST]), models(results, names[N_FIRST:])
    every = models(results)
    note = f"over {len(every)} networks of {len(names)} families"
    yield "held_out", beside(every, "held_out", RANDOM, if_lower=WEAK_HEAD, note=note)
    yield "seed", beside(every, "seed", RANDOM, if_lower=WEAK_HEAD, note=note)
    yield "clean", _clean(every)
    yield (
        "failure",
        beside(
            every,
            "failure",
            RANDOM,
            if_higher="test failures here have the same cause as seed failures",
        ),
    )
    for key, name in (("random_seed", "seed"), ("random_held_out", "held_out")):
        yield (
            key,
            plain_measured(
                average(column(every, RANDOM, name)),
                if_lower="the generator draws a bare class as training images show it, so they add nothing new",
            ),
        )
    gains = [
        a - b
        for a, b in zip(
            column(every, REFINE, "held_out"), column(every, "plain", "held_out"), strict=True
        )
    ]
    n_large = sum(one >= LARGE_GAIN for one in gains)
    yield (
        "least_gain",
        Measured(
            value=min(gains),
            if_lower="the weakest family has no features of the object that a last layer could use",
            note=f"beyond retraining alone; {n_large} of {len(gains)} networks gain {LARGE_GAIN} points or more",
        ),
    )
    if "colour" in results:
        colours: list[Mapping[str, Any]] = results["colour"]["models"]
        yield "colour_held_out", beside(colours, "held_out", RANDOM)
        yield "colour_clean", _clean(colours)
        yield "colour_random", plain_measured(average(column(colours, RANDOM, "held_out")))
    if others:
        yield "other_held_out", beside(others, "held_out", RANDOM, if_lower=WEAK_HEAD)
        yield "other_random", plain_measured(average(column(others, RANDOM, "held_out")))
    yield "collective_1", collective_measured(results, 1)
    yield "collective_2", collective_measured(results, 2)
    yield (
        "relative",
        plain_measured(
            average(relatives(results)),
            if_higher="all networks here fail for one planted reason, so that one set serves them all",
        ),
    )
    yield from _rest(results, first or every, every)


def _clean(given: Sequence[Mapping[str, Any]]) -> Measured:
    alone = average(column(given, "plain", "clean")).mean
    return plain_measured(
        average(column(given, REFINE, "clean")),
        if_lower=FEW_CLEAN,
        note=f"retraining alone keeps {alone:.1f}",
    )


def _rest(
    results: Results, first: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Measured]]:
    changes = [
        one["arms"][REFINE]["test_after"] - one["arms"][REFINE]["test_before"] for one in every
    ]
    yield (
        "test_gain",
        plain_measured(
            average(changes),
            if_higher="here a large share of all failures has the planted cause",
            note="of own sets, over all networks",
        ),
    )
    within, across = overlaps(results)
    low = "networks trained from scratch differ more than pretrained ones that share their training"
    yield "iou_family", plain_measured(average(within), if_lower=low)
    yield (
        "iou_all",
        plain_measured(
            average(across),
            if_higher="weak networks fail on most images, which raises any overlap",
            note=f"within a family {average(within).mean:.0f}",
        ),
    )
    for arm in (PREDEFINED, DIRECTIONS, CUTMIX):
        found = average(column(first, arm, "held_out"))
        words = (
            {
                "if_higher": "captions of directions name the planted value, and the same generator draws it"
            }
            if arm == DIRECTIONS
            else {}
        )
        yield (
            arm,
            plain_measured(found, **words)
            if found.n_units
            else Measured(note="This arm is not part of the small version."),
        )
    if "sweep" not in results:
        return
    yield (
        "lambda",
        Measured(
            value=balanced_lambda(results),
            note="the largest that costs no more than half a point of the best test accuracy",
        ),
    )
    yield (
        "k",
        Measured(
            value=float(enough_values(results)),
            note="the smallest with 90 % of what the most values give",
        ),
    )
    yield "inaturalist", Measured(note="iNaturalist has no stand-in of its own; see Table 2.")
