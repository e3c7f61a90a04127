"""What the steps of the Refine protocol come to: the figures of the paper, its tables and plots."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from weakspot.data.charts import heat_map
from weakspot.project.refine.training import CUTMIX, DIRECTIONS, PREDEFINED, RANDOM, REFINE
from weakspot_lab.charts import line_chart
from weakspot_lab.reproduce.averages import against, average, mean_of
from weakspot_lab.reproduce.figures import Measured
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Results

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
    mine, theirs = ([pair[place] for pair in pairs] for place in (0, 1))
    return against(mine, theirs, ARM_WORDS[other], **words)


ARM_WORDS = {
    RANDOM: "images of the bare class",
    PREDEFINED: "a fixed list of backgrounds",
    DIRECTIONS: "Directions",
    CUTMIX: "CutMix",
    "plain": "retraining alone",
}


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
    mine, theirs = zip(*pairs, strict=True)
    return against(mine, theirs, ARM_WORDS[RANDOM], if_lower=WEAK_HEAD)


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


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper."""
    names, every = list(families(results)), models(results)
    first, others = models(results, names[:N_FIRST]) or every, models(results, names[N_FIRST:])
    mine, alone = (column(every, arm, "held_out") for arm in (REFINE, "plain"))
    gains = [own - other for own, other in zip(mine, alone, strict=True)]
    changes = [
        one["arms"][REFINE]["test_after"] - one["arms"][REFINE]["test_before"] for one in every
    ]
    within, across = overlaps(results)
    note = f"over {len(every)} networks of {len(names)} families"
    nothing_new = (
        "the generator draws a bare class as training images show it, so they add nothing new"
    )
    found = {
        "held_out": beside(every, "held_out", RANDOM, if_lower=WEAK_HEAD, note=note),
        "seed": beside(every, "seed", RANDOM, if_lower=WEAK_HEAD, note=note),
        "clean": _clean(every),
        "failure": beside(
            every,
            "failure",
            RANDOM,
            if_higher="test failures here have the same cause as seed failures",
        ),
        "random_seed": mean_of(column(every, RANDOM, "seed"), if_lower=nothing_new),
        "random_held_out": mean_of(column(every, RANDOM, "held_out"), if_lower=nothing_new),
        "least_gain": Measured(
            value=min(gains),
            if_lower="the weakest family has no features of the object that a last layer could use",
            note=f"beyond retraining alone; {sum(one >= LARGE_GAIN for one in gains)} of {len(gains)} networks gain "
            f"{LARGE_GAIN} points or more",
        ),
        "collective_1": collective_measured(results, 1),
        "collective_2": collective_measured(results, 2),
        "relative": mean_of(
            relatives(results),
            if_higher="all networks here fail for one planted reason, so that one set serves them all",
        ),
        "test_gain": mean_of(
            changes,
            if_higher="here a large share of all failures has the planted cause",
            note="of own sets, over all networks",
        ),
        "iou_family": mean_of(
            within,
            if_lower="networks trained from scratch differ more than pretrained ones that share their training",
        ),
        "iou_all": mean_of(
            across,
            if_higher="weak networks fail on most images, which raises any overlap",
            note=f"within a family {average(within).mean:.0f}",
        ),
        **{arm: _other_arm(first, arm) for arm in (PREDEFINED, DIRECTIONS, CUTMIX)},
    }
    if "colour" in results:
        colours: list[Mapping[str, Any]] = results["colour"]["models"]
        found |= {
            "colour_held_out": beside(colours, "held_out", RANDOM),
            "colour_clean": _clean(colours),
            "colour_random": mean_of(column(colours, RANDOM, "held_out")),
        }
    if others:
        found |= {
            "other_held_out": beside(others, "held_out", RANDOM, if_lower=WEAK_HEAD),
            "other_random": mean_of(column(others, RANDOM, "held_out")),
        }
    return found | (_swept(results) if "sweep" in results else {})


def _clean(given: Sequence[Mapping[str, Any]]) -> Measured:
    alone = average(column(given, "plain", "clean")).mean
    return mean_of(
        column(given, REFINE, "clean"),
        if_lower=FEW_CLEAN,
        note=f"retraining alone keeps {alone:.1f}",
    )


def _other_arm(given: Sequence[Mapping[str, Any]], arm: str) -> Measured:
    values = column(given, arm, "held_out")
    if not values:
        return Measured(note="This arm is not part of the small version.")
    named = "captions of directions name the planted value, and the same generator draws it"
    return mean_of(values, if_higher=named if arm == DIRECTIONS else "")


def _swept(results: Results) -> dict[str, Measured]:
    return {
        "lambda": Measured(
            value=balanced_lambda(results),
            note="the largest that costs no more than half a point of the best test accuracy",
        ),
        "k": Measured(
            value=float(enough_values(results)),
            note="the smallest with 90 % of what the most values give",
        ),
        "inaturalist": Measured(note="iNaturalist has no stand-in of its own; see Table 2."),
    }


TABLE_2 = ("clean", "failure", "seed", "held_out")


def tables(results: Results) -> tuple[PaperTable, ...]:
    return tuple(_tables(results))


def _tables(results: Results) -> Iterator[PaperTable]:
    yield _individual("Tables 2 and 7: individual refinement, background", _by_family(results))
    if "colour" in results:
        colours = [("", one) for one in _colours(results)]
        yield _individual("Table 3: individual refinement, colour", colours)
    if all("collective 1" in one for one in families(results).values()):
        yield _collective(results)
        yield _values(results)
    yield from _overlaps(results)
    yield _arms(results)
    if "many" in results and "sweep" in results:
        yield _many(results)
        yield _sweep(results)


def _overlaps(results: Results) -> Iterator[PaperTable]:
    """Yield failures in common: of families where every failure was kept, of the user's own models where their overlaps were."""
    known = families(results)
    names = list(known)
    if any(one["failures"] for one in known.values()):
        shares = [[overlap_of(results, one, other) for other in names] for one in names]
    else:
        (given,) = known.values()
        names, shares = [one["name"] for one in given["models"]], given["overlaps"]
    if shares:
        yield PaperTable(
            title="Figure 4 b: failures in common (intersection over union), percent",
            header=("", *names),
            rows=tuple(
                (name, *(100 * value for value in line))
                for name, line in zip(names, shares, strict=True)
            ),
            note="Of two different models each; of one with itself it is 100."
            if len(names) > len(known)
            else "Of two different models each, the mean.",
        )


def _by_family(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, one) for name, found in families(results).items() for one in found["models"]]


def _colours(results: Results) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = results["colour"]["models"]
    return found


def _individual(title: str, rows: list[tuple[str, Mapping[str, Any]]]) -> PaperTable:
    header = (
        "model",
        "family",
        "test before",
        *TABLE_2,
        "random seed",
        "random held-out",
        "test after",
    )
    return PaperTable(
        title=title,
        header=tuple(word.replace("held_out", "held-out") for word in header),
        rows=tuple(
            (
                one["name"],
                family,
                one["arms"][REFINE]["test_before"],
                *(one["arms"][REFINE][name] for name in TABLE_2),
                one["arms"][RANDOM]["seed"],
                one["arms"][RANDOM]["held_out"],
                one["arms"][REFINE]["test_after"],
            )
            for family, one in rows
        ),
        note="All in %. Before refinement seed and held-out are zero by construction.",
    )


def _collective(results: Results) -> PaperTable:
    rows = []
    for family, found in families(results).items():
        for first, second in zip(
            found["collective 1"]["models"], found["collective 2"]["models"], strict=True
        ):
            source = ", source" if second["is_source"] else ""
            rows.append(
                (
                    f"{first['name']} ({family}{source})",
                    first["own_held_out"],
                    first["clean"],
                    first["seed"],
                    first["held_out"],
                    second["clean"],
                    second["seed"],
                    second["held_out"],
                    first["random_held_out"],
                )
            )
    return PaperTable(
        title="Table 4: collective refinement",
        header=(
            "model", "own held-out", "1: clean", "1: seed", "1: held-out", "2: clean", "2: seed", "2: held-out",
            "random held-out",
        ),
        rows=tuple(rows),
        note="Type 1: values of the failures of all networks of the family; type 2: of one, the source.",
    )  # fmt: skip


def _many(results: Results) -> PaperTable:
    given: list[Mapping[str, Any]] = results["many"]["rows"]
    rows = [
        (
            f"{one['n_models']}",
            *(
                average([model[name] for model in one["models"] if model[name] is not None]).mean
                for name in ("own_held_out", "held_out", "random_held_out", "clean")
            ),
            one["relative"],
            one["common"],
        )
        for one in given
    ]
    return PaperTable(
        title="One set of images for 2 to 40 models of all families",
        header=("models", "own held-out", "collective held-out", "random held-out", "clean", "relative", "failed by all"),
        rows=tuple(rows),
        note="Relative: failures that the one set resolves as a part of those that own sets resolve; failed by all: of the test "
        "images that any of the models gets wrong.",
    )  # fmt: skip


def _arms(results: Results) -> PaperTable:
    every = models(results)
    names = list(dict.fromkeys(name for one in every for name in one["arms"]))
    rows = []
    for name in names:
        cells = [average(column(every, name, one)).mean for one in (*TABLE_2, "test_after")]
        rows.append((ARM_WORDS.get(name, name), *cells))
    return PaperTable(
        title="Tables 9 and 11: other ways, means over all networks",
        header=("way", "clean", "failure", "seed", "held-out", "test after"),
        rows=tuple(rows),
        note="As many images (or mixtures) as the refinement has.",
    )


def _sweep(results: Results) -> PaperTable:
    return PaperTable(
        title="Figure 5: lambda and k",
        header=("lambda", "k", "held-out", "clean", "test after"),
        rows=tuple(
            (f"{one['lambda']:g}", f"{one['k']}", one["held_out"], one["clean"], one["test_after"])
            for one in sweep_rows(results)
        ),
    )


def _values(results: Results) -> PaperTable:
    rows = []
    for family, found in families(results).items():
        words = ", ".join(
            f"{value} {share:.0f} %" for value, share in found["collective 1"]["values"]
        )
        rows.append((family, words, found["collective 1"]["common"]))
    return PaperTable(
        title="Figure 4 a: the commonest values of failures that all networks of a family share",
        header=(
            "family",
            "values, share of the shared failures",
            "failed by all, of those failed by any",
        ),
        rows=tuple(rows),
    )


def plots(results: Results) -> Mapping[str, str]:
    """Return Figures 4 b and 5 in the paper's style."""
    names = list(families(results))
    if "sweep" not in results:
        return {}
    swept = sweep_rows(results)
    by_lambda = {
        f"{words}, k = 3": [(one["lambda"], one[name]) for one in swept if one["k"] == 3]  # noqa: PLR2004 - the paper's k
        for name, words in (("held_out", "held-out"), ("test_after", "test"), ("clean", "clean"))
    }
    by_k = {
        f"lambda = {weight:g}": [
            (one["k"], one["held_out"]) for one in swept if one["lambda"] == weight
        ]
        for weight in sorted({one["lambda"] for one in swept})
    }
    return {
        "lambda.svg": line_chart(
            by_lambda,
            title="Figure 5 a: how much generated images count",
            x_label="lambda",
            y_label="%",
            is_log=True,
        ),
        "overlap.svg": heat_map(
            names,
            [[overlap_of(results, one, other) for other in names] for one in names],
            title="Figure 4 b: failures in common",
        ),
        "k.svg": line_chart(
            by_k, title="Figure 5 b: values a class", x_label="k", y_label="held-out, %"
        ),
    }


OUTCOME = Outcome(measured=measured, tables=tables, plots=plots)
