"""The tables and plots of the Search paper, filled with what was measured."""

from collections.abc import Iterator, Mapping
from typing import Any

from weakspot_lab.charts import bar_groups
from weakspot_lab.reproduce.protocol import PaperTable, Results
from weakspot_lab.reproduce.search.numbers import clusters_of, found_pairs, rate, ratio, rows_of

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
    yield _transfer(results)


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


def _transfer(results: Results) -> PaperTable:
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
