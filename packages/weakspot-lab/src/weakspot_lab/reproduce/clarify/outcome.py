"""What the steps of the Clarify protocol come to: the figures of the paper, its tables and plots."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.data.charts import ChartPoint, scatter
from weakspot_lab.charts import bar_groups
from weakspot_lab.reproduce.averages import average, gain, mean_of
from weakspot_lab.reproduce.clarify.arms import AVERAGE, CLARIFY, GAP, OWN, WORST
from weakspot_lab.reproduce.figures import Measured, read_figures
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Results

PAPER = "clarify"
SETS = {"birds": "Waterbirds", "faces": "CelebA"}
SHOWN = SETS | {"pets": "MetaShift"}
"""What tables show: the paper's data sets, and one for which it states no figure."""
MEASURES = {"worst": WORST, "average": AVERAGE, "gap": GAP}
COMPARED = {
    "Clarify (slice-balanced)": "ERM",
    "Clarify (worst-slice)": "ERM",
    "DFR (subsample)": "ERM",
    "DFR (upsample)": "ERM",
    "Group DRO": "ERM",
    "Group Prompt": "Class Prompt",
    "RoboShot-like": "Class Prompt",
    "ERM, class-balanced": "ERM",
    "ERM, worst-class": "ERM",
    "WiSE-FT-like": "ERM",
    "ERM Adapter": "ERM",
}
NOT_BUILT = Measured(note="Not measured here: contrastive adapters are not built.")
NOT_ON_DATA = Measured(note="Not measured on this data: see the stand-in.")
PROMPTS = ("Class Prompt", "Group Prompt")
PLANTED_WORDS = "planted words name the attribute more plainly than CLIP's do"


def arms_of(results: Results, kind: str) -> list[Mapping[str, Any]]:
    """Return the arms of every world of a data set."""
    return [found for name, found in results.items() if name.rsplit("-", 1)[0] == kind]


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper."""
    found = {one.key: NOT_ON_DATA for one in read_figures(PAPER).figures}
    for kind, name in SETS.items():
        own = arms_of(results, kind)
        found |= _arm_figures(own, name) if own else {}
        people = results.get(f"annotators-{kind}")
        found |= _annotator_figures(people, name) if people else {}
    gains = [_prompt_gain(results, kind) for kind in SETS]
    known = [one for one in gains if one is not None]
    if known:
        found["gain"] = Measured(
            value=sum(known) / len(known),
            beside=0.0,
            beside_name="zero-shot prompts",
            if_absent=_prompt_reason(results),
        )
    many = results.get("many")
    return found | (_many_figures(many) if many else {})


def _prompt_reason(results: Results) -> str:
    """Return that prompts are better here than in the paper, if they are, on the mean of both data sets."""
    stated = {one.key: one.value or 0.0 for one in read_figures(PAPER).figures}
    ahead = []
    for kind, name in SETS.items():
        if own := arms_of(results, kind):
            ours = max(average(_values(own, arm, WORST)).mean for arm in PROMPTS)
            ahead.append(ours - max(stated[f"{name} {arm} worst"] for arm in PROMPTS))
    mean = sum(ahead) / len(ahead) if ahead else 0.0
    if mean <= 0:
        return ""
    return f"planted prompts serve the worst group {mean:.0f} points better than CLIP's do in the paper"


def shared_arms(own: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the arms that could be measured in every world."""
    return [arm for arm in own[0] if all(arm in one for one in own)]


def _values(own: Sequence[Mapping[str, Any]], arm: str, what: str) -> list[float]:
    return [float(one[arm][what]) for one in own]


def _arm_figures(own: Sequence[Mapping[str, Any]], name: str) -> dict[str, Measured]:
    found = {}
    for arm in shared_arms(own):
        for short, what in MEASURES.items():
            values, words = _values(own, arm, what), {}
            if arm in COMPARED and short != "average":
                words = _compared(name, arm, short, values, _values(own, COMPARED[arm], what))
            if arm in (*PROMPTS, "RoboShot-like") and short == "worst":
                words["if_higher"] = PLANTED_WORDS
            found[f"{name} {arm} {short}"] = mean_of(values, **words)
    found[f"{name} Contrastive Adapter worst"] = NOT_BUILT
    phrases = [list(one["Clarify (worst-slice)"]["phrases"].values()) for one in own]
    found[f"{name} expert score"] = mean_of([max(one) for one in phrases])
    return found


def _compared(
    name: str, arm: str, short: str, values: Sequence[float], others: Sequence[float]
) -> dict[str, Any]:
    """Return the comparison with the arm's reference where the paper finds it better; otherwise only how both compare."""
    rival = COMPARED[arm]
    stated = {one.key: one.value for one in read_figures(PAPER).figures}
    own, other = stated.get(f"{name} {arm} {short}"), stated.get(f"{name} {rival} {short}")
    between = gain(values, others)
    if own is None or other is None:
        return {}
    is_better = own < other if short == "gap" else own > other
    if is_better:
        return {
            "beside": average(others).mean,
            "beside_name": rival,
            "gain_low": between.low,
            "gain_high": between.high,
        }
    return {"note": f"{_from(between.mean)} {rival} here, {_from(own - other)} it in the paper"}


def _from(difference: float) -> str:
    return f"{abs(difference):.1f} points {'above' if difference > 0 else 'below'}"


def _annotator_figures(people: Mapping[str, Any], name: str) -> dict[str, Measured]:
    worst, score = ([float(one[what]) for one in people["annotators"]] for what in (WORST, "score"))
    return {
        f"{name} annotators": mean_of(
            worst,
            beside=float(people["ERM"]),
            beside_name="ERM",
            note="annotators are simulated: five words of a list each, the best kept",
        ),
        f"{name} best annotator": Measured(value=max(worst)),
        f"{name} score": mean_of(score),
    }


def _prompt_gain(results: Results, kind: str) -> float | None:
    """Return the worst group by annotators minus that of the better prompts, in points."""
    own, people = arms_of(results, kind), results.get(f"annotators-{kind}")
    if not own or not people:
        return None
    worst = average([float(one[WORST]) for one in people["annotators"]]).mean
    prompts = max(average(_values(own, arm, WORST)).mean for arm in PROMPTS)
    return worst - prompts


def _many_figures(many: Mapping[str, Any]) -> dict[str, Measured]:
    words, automatic = many["words"], many["automatic"]
    found = {
        "accepted": Measured(
            value=float(many["accepted"]),
            note=f"of {many['planted']} that were planted; {many['in reach']} of them were among the suggested classes",
        ),
        "automatic first": Measured(value=float(many["automatic first"])),
        "automatic ten": Measured(value=float(many["automatic in ten"])),
    }
    for key, one in (("minority", words), ("automatic", automatic)):
        if one is None:
            continue
        before = [float("nan") if value is None else value for value in one["minority before"]]
        after = [float("nan") if value is None else value for value in one["minority after"]]
        between = gain(after, before)
        found[f"{key} before"] = Measured(value=average(before).mean)
        found[f"{key} after"] = Measured(
            value=average(after).mean,
            note=f"retraining changes it by {between.mean:+.1f} points",
            beside=average(before).mean,
            beside_name="before",
            gain_low=between.low,
            gain_high=between.high,
        )
    if words is not None:
        found["overall"] = Measured(value=words["overall after"] - words["overall before"])
    return found


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


OUTCOME = Outcome(measured=measured, tables=tables, plots=plots, notes=notes)
