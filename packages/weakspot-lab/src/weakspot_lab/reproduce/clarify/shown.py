"""Tables and plots of the Clarify protocol, in the form of the paper."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.data.charts import ChartPoint, scatter
from weakspot_lab.charts import bar_groups
from weakspot_lab.reproduce.averages import average
from weakspot_lab.reproduce.clarify.arms import AVERAGE, CLARIFY, GAP, OWN, WORST
from weakspot_lab.reproduce.clarify.outcome import SHOWN, arms_of, shared_arms
from weakspot_lab.reproduce.protocol import PaperTable, Results

PERCENT = 100.0
NOT_IN_PAPER = "The paper states nothing for MetaShift: its arms are measured on it in the same way, and no figure stands beside them."
PAIRS = dict(zip(OWN, CLARIFY, strict=True))


def tables(results: Results) -> list[PaperTable]:
    """Return the paper's tables with our figures."""
    known = {kind: own for kind in SHOWN if (own := arms_of(results, kind))}
    found = []
    if known:
        names = shared_arms([one for own in known.values() for one in own])
        rows = []
        for arm in names:
            cells: list[str | float | None] = [arm]
            for own in known.values():
                cells += [
                    average([float(one[arm][what]) for one in own]).mean
                    for what in (WORST, AVERAGE, GAP)
                ]
            rows.append(tuple(cells))
        header = (
            "method",
            *(f"{SHOWN[kind]} {what}" for kind in known for what in ("WG", "Avg", "Gap")),
        )
        found.append(
            PaperTable(
                title="Tables 1, 4 and 6: worst group, average and gap over given groups, percent",
                header=header,
                rows=tuple(rows),
                note="All arms are measured by the same function on the same test samples; the average weighs groups as training has "
                "them. Phrases were not confirmed by anybody, so every repair from them is exploratory.",
            )
        )
    if people := {
        kind: results[f"annotators-{kind}"] for kind in SHOWN if f"annotators-{kind}" in results
    }:
        found.append(_annotator_table(people))
    if many := results.get("many"):
        found += [_many_table(many), _ranking_table(many)]
    return found


def _annotator_table(people: Mapping[str, Mapping[str, Any]]) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    for kind, found in people.items():
        said = {one["words"]: one for one in found["annotators"]}
        counts = Counter(one["words"] for one in found["annotators"])
        rows += [
            (SHOWN[kind], words, f"{number}", f"{said[words]['score']:.2f}", said[words][WORST])
            for words, number in counts.most_common()
        ]
    return PaperTable(
        title="Sec. 5.2 and Fig. 5: best phrases of simulated annotators, Error Score and worst given group after retraining",
        header=("data set", "words", "annotators", "Error Score", "WG"),
        rows=tuple(rows),
        note="Worst groups are measured by the same function, on the same groups and test samples, as those of the arms.",
    )


def _ranking_table(many: Mapping[str, Any]) -> PaperTable:
    return PaperTable(
        title="Sec. 5.3 and App. B: spurious correlations of a thousand classes, and how suggestions rank them",
        header=("what", "classes"),
        rows=(
            ("planted", f"{many['planted']}"),
            ("suggested", f"{many['suggested classes']}"),
            ("planted ones among the suggested", f"{many['in reach']}"),
            ("accepted by a simulated annotator", f"{many['accepted']}"),
            ("accepted phrase is the first automatic keyword", f"{many['automatic first']}"),
            ("accepted phrase is among the first ten", f"{many['automatic in ten']}"),
        ),
    )


def _many_table(many: Mapping[str, Any]) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    for name, one in (("Clarify", many["words"]), ("Bias-to-Text", many["automatic"])):
        if one is not None:
            rows.append(
                (
                    name,
                    *(
                        average(
                            [float("nan") if value is None else value for value in one[key]]
                        ).mean
                        for key in ("minority before", "minority after", "majority before")
                    ),
                    one["overall before"],
                    one["overall after"],
                )
            )
    return PaperTable(
        title="Fig. 7 and 9: splits by accepted and by automatic keywords, a thousand classes, percent",
        header=(
            "keywords",
            "minority before",
            "minority after",
            "majority before",
            "overall before",
            "overall after",
        ),
        rows=tuple(rows),
    )


def plots(results: Results) -> dict[str, str]:
    """Return the worst group of every arm as bars, and Error Score against worst group of annotators."""
    drawn: dict[str, str] = {}
    known = {SHOWN[kind]: own for kind in SHOWN if (own := arms_of(results, kind))}
    if known:
        arms = shared_arms([one for own in known.values() for one in own])
        drawn["table-1-worst-group.svg"] = bar_groups(
            {
                arm: {
                    name: float(np.mean([one[arm][WORST] for one in own])) / PERCENT
                    for name, own in known.items()
                }
                for arm in arms
            },
            title="Table 1 and 4: accuracy of the worst given group",
        )
    points = [
        ChartPoint(
            name="",
            across=float(one["score"]),
            up=float(one[WORST]) / PERCENT,
            series=name,
        )
        for kind, name in SHOWN.items()
        for one in results.get(f"annotators-{kind}", {}).get("annotators", [])
    ]
    if points:
        drawn["fig-5-annotators.svg"] = scatter(
            points,
            title="Fig. 5: simulated annotators",
            x_label="Error Score of the best phrase",
            y_label="accuracy of the worst group after retraining",
        )
    return drawn


def notes(results: Results) -> list[str]:
    """Return how our own strategies, which keep the share of every class, compare with the weights that the paper publishes."""
    said = [NOT_IN_PAPER] if arms_of(results, "pets") else []
    for kind, name in SHOWN.items():
        own = arms_of(results, kind)
        if own and all(arm in shared_arms(own) for pair in PAIRS.items() for arm in pair):
            words = [
                f"{ours.split(',')[0]} {_mean(own, ours):.1f} against {_mean(own, published):.1f}"
                for ours, published in PAIRS.items()
            ]
            said.append(
                f"{name}: worst group with our strategies, which keep the share of every class, against the published weights, which "
                f"even out the classes too: {'; '.join(words)} %."
            )
    return said


def _mean(own: Sequence[Mapping[str, Any]], arm: str) -> float:
    return average([float(one[arm][WORST]) for one in own]).mean
