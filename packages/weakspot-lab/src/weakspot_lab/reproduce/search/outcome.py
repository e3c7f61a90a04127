"""What the steps of the Search protocol come to: the figures of the paper, its tables and plots."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weakspot_lab.charts import bar_groups
from weakspot_lab.reproduce.averages import average
from weakspot_lab.reproduce.figures import Measured
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Results
from weakspot_lab.reproduce.search.victims import FIRST, PRETRAINED, SECOND

SURE = 0.05
COMMON = (
    "the paper's generator hardly ever makes its network fail with the reference caption (0.6 % and less), a small network fails "
    "there often, so that no caption can raise its rate as much"
)
TIED = "the other network was trained on the same tied scenes, so that it fails for the same reason"


def rows_of(results: Results, step: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = results[step]["rows"]
    return found


def found_pairs(results: Results) -> list[Mapping[str, Any]]:
    return [row for row in rows_of(results, "pairs") if "caption" in row]


def rate(counted: Mapping[str, int], name: str) -> float:
    """Return a rate in %; half a failure is added, so that a ratio to none has a value."""
    return 100.0 * (counted[name] + 0.5) / (counted["n_images"] + 1.0)


def ratio(row: Mapping[str, Any], name: str, look: str = "first") -> float:
    return rate(row[f"{look} found"], name) / rate(row[f"{look} reference"], name)


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper; steps that were not run are passed over."""
    every, found = rows_of(results, "pairs"), found_pairs(results)
    named = [one for row in every for one in row["is_planted"]]
    figures = {
        "pairs_found": Measured(
            value=100.0 * len(found) / max(len(every), 1),
            if_lower="for the other pairs no caption is proven within the budget of images",
            note=f"{len(found)} of {len(every)} pairs; a caption counts when it is proven at a false discovery rate of 5 %",
        )
    }
    if found and named:
        figures["named"] = Measured(
            value=100.0 * float(np.mean(named)), note=f"{sum(named)} of {len(named)} captions"
        )
    if found:
        figures |= _ratios(found)
    if found and all("second p" in row for row in found):
        figures |= _second(found)
    if "clusters" in results:
        clusters = clusters_of(results)
        figures["clusters_named"] = Measured(
            value=100.0 * float(np.mean([one["is_planted"] for one in clusters]))
            if clusters
            else None,
            note=f"{len(clusters)} clusters",
        )
    return figures | (_transfer(results["transfer"]) if "transfer" in results else {})


def _ratios(found: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    ratios = [ratio(row, "failures") for row in found]
    totals = average(ratios)
    targets = sorted(ratio(row, "target") for row in found)
    chosen = {"low": targets[0], "mid": float(np.median(targets)), "high": targets[-1]}
    labels = [list(row["labels"]["reference"].values()) for row in found]
    first = [max(counts) / sum(counts) for counts in labels if counts]
    reference = {"beside": 1.0, "beside_name": "the reference caption", "if_lower": COMMON}
    return {
        "total_ratio": Measured(
            value=float(np.median(ratios)),
            gain_low=None if totals.low is None else totals.low - 1.0,
            gain_high=None if totals.high is None else totals.high - 1.0,
            note=f"median of {len(found)} pairs",
            **reference,
        ),
        **{
            f"target_ratio_{key}": Measured(value=value, **reference)
            for key, value in chosen.items()
        },
        "main_confusion": Measured(value=100.0 * float(np.mean(first)) if first else None),
    }


def _second(found: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    looks = [
        float(np.mean([rate(row[f"{look} reference"], "failures") for row in found]))
        for look in ("first", "second")
    ]
    rises = [ratio(row, "failures", "second") > 1.0 for row in found]
    sure = [row["second p"] <= SURE for row in found]
    return {
        "second_generator": Measured(
            value=100.0 * float(np.mean(rises)),
            if_lower="the look of the second generator alone raises the failure rate of the reference caption from "
            f"{looks[0]:.0f} to {looks[1]:.0f} %, which leaves captions less room",
            note=f"{sum(rises)} of {len(rises)}; 60 images each",
        ),
        "second_sure": Measured(
            value=100.0 * float(np.mean(sure)), note=f"Fisher's exact test, {SURE}, 60 images each"
        ),
    }


def clusters_of(results: Results) -> list[Mapping[str, Any]]:
    """Return the clusters of one wrong label that have a caption."""
    return [
        one
        for row in rows_of(results, "clusters")
        for one in row["clusters"]
        if one["predicted"] and one["caption"]
    ]


def _transfer(given: Mapping[str, Any]) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for key, victim in (("first", FIRST), ("second", SECOND)):
        rates: Mapping[str, float] = given["sets"][victim]["rates"]
        other = f"{victim}, other seed"
        if other in rates:
            found[f"transfer_same_{key}"] = Measured(
                value=rates[other],
                beside=given["errors"][other],
                beside_name="its error on scenes at large",
                if_higher=TIED,
                note=f"{given['sets'][victim]['n_images']} images that {victim} gets wrong",
            )
        if own := [rates[name] for name in PRETRAINED if name in rates]:
            found |= {
                f"transfer_pretrained_{key}_{end}": Measured(
                    value=choose(own),
                    if_lower="networks pretrained on scenes in which nothing is tied hardly rely on the background",
                    if_higher="their last layer still learnt from tied scenes",
                )
                for end, choose in (("low", min), ("high", max))
            }
    return found


MAX_LABELS = 5


def tables(results: Results) -> tuple[PaperTable, ...]:
    return tuple(_tables(results))


def _tables(results: Results) -> Iterator[PaperTable]:
    yield PaperTable(
        title="Table 1: failure rates of the reference caption and of the caption found",
        header=("true label", "target label", "caption found", "reference: total", "found: total", "ratio",
                "reference: target", "found: target", "ratio ", "images of the search"),
        rows=tuple(_pair(row) for row in rows_of(results, "pairs")),
        note="Rates in %, on 400 images each that the search has not seen; half a failure is added to every count, so that a "
        "ratio to none has a value.",
    )  # fmt: skip
    yield PaperTable(
        title="Figure 2: what failures are taken for",
        header=("true label", "reference caption", "caption found"),
        rows=tuple(
            (row["class"], *(_labels(row["labels"][words]) for words in ("reference", "found")))
            for row in found_pairs(results)
        ),
    )
    if "transfer" not in results:
        return
    yield PaperTable(
        title="Section 4.1: the same captions with a second generator",
        header=("true label", "caption", "reference: total", "found: total", "reference: target", "found: target", "p"),
        rows=tuple(
            (
                row["class"],
                row["caption"],
                *(rate(row[f"second {words}"], name) for name in ("failures", "target") for words in ("reference", "found")),
                f"{row['second p']:.3g}",
            )
            for row in found_pairs(results)
        ),
    )  # fmt: skip
    yield PaperTable(
        title="Clusters of failures by wrong label, largest first",
        header=("wrong label", "images", "caption", "names what is tied to that label"),
        rows=tuple(
            (
                one["predicted"],
                f"{one['size']}",
                one["caption"],
                "yes" if one["is_planted"] else "no",
            )
            for one in sorted(clusters_of(results), key=lambda one: -one["size"])[:30]
        ),
    )
    yield _transfer_table(results)


def _pair(row: Mapping[str, Any]) -> tuple[str | float | None, ...]:
    if "caption" not in row:
        empty: tuple[None, ...] = (None,) * 6
        return (row["class"], row["target"], "none proven", *empty, f"{row['n_images']}")
    cells: list[str | float] = []
    for name in ("failures", "target"):
        cells += [rate(row[f"first {words}"], name) for words in ("reference", "found")]
        cells.append(f"{ratio(row, name):.2f}")
    return (row["class"], row["target"], row["caption"], *cells, f"{row['n_images']}")


def _labels(counts: Mapping[str, int]) -> str:
    total = max(sum(counts.values()), 1)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(
        f"{name} {100 * number / total:.0f} %" for name, number in ordered[:MAX_LABELS]
    )


def _transfer_table(results: Results) -> PaperTable:
    sets: Mapping[str, Any] = results["transfer"]["sets"]
    errors: Mapping[str, float] = results["transfer"]["errors"]
    return PaperTable(
        title="Figure 4: failure rates of sets of failures on other networks",
        header=("network", *(f"set of {name} ({one['n_images']})" for name, one in sets.items()), "error on scenes at large"),
        rows=tuple(
            (name, *(one["rates"].get(name) for one in sets.values()), error)
            for name, error in errors.items()
        ),
        note=f"From {results['transfer']['n_captions']} captions, at most 20 images of each.",
    )  # fmt: skip


def plots(results: Results) -> Mapping[str, str]:
    """Return Figures 2 and 4 in the paper's style."""
    pairs = {
        f"{row['class']}: {row['caption']}": {
            "reference caption": rate(row["first reference"], "target") / 100,
            "caption found": rate(row["first found"], "target") / 100,
        }
        for row in found_pairs(results)
    }
    title = "Figure 2: taken for the target label"
    found = {"pairs.svg": bar_groups(pairs, title=title)} if pairs else {}
    if "transfer" not in results:
        return found
    sets: Mapping[str, Any] = results["transfer"]["sets"]
    errors: Mapping[str, float] = results["transfer"]["errors"]
    bars = {
        name: {
            **{
                f"failures of {one}": own["rates"].get(name, 0.0) / 100 for one, own in sets.items()
            },
            "scenes at large": error / 100,
        }
        for name, error in errors.items()
    }
    title = "Figure 4: failure rates on other networks"
    return {**found, "transfer.svg": bar_groups(bars, title=title)}


OUTCOME = Outcome(measured=measured, tables=tables, plots=plots)
