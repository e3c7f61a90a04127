"""The tables and plots of the HiBug paper, filled with what was measured."""

from collections.abc import Iterator, Mapping
from typing import Any

from weakspot_lab.charts import bar_groups, line_chart
from weakspot_lab.reproduce.averages import average
from weakspot_lab.reproduce.hibug.choosing import WAYS
from weakspot_lab.reproduce.hibug.measuring import SHARES
from weakspot_lab.reproduce.hibug.numbers import (
    ATTRIBUTES,
    DOMINO,
    percent,
    rows_of,
    settings_in,
    strong_rows,
    tasks_in,
    thresholds_of,
)
from weakspot_lab.reproduce.hibug.tasks import PAPER_NAMES
from weakspot_lab.reproduce.protocol import PaperTable, Results

WAY_WORDS = {
    "hibug": "HiBug's rule, all combinations",
    "confirmed": "confirmed slices (weakspot)",
    "uncertainty": "uncertainty",
}


def tables(results: Results) -> tuple[PaperTable, ...]:
    return tuple(_tables(results))


def _tables(results: Results) -> Iterator[PaperTable]:
    if settings_in(results):
        yield _settings(results)
    if "generation" in results:
        yield _generation(results)
    if not tasks_in(results, "slices"):
        return
    yield _thresholds(results)
    yield PaperTable(
        title="Table 3: accuracy on further images of slices",
        header=("task", "all slices", "model acc.", "model acc. - 0.1", "model acc. - 0.2", "slices", "values told right"),
        rows=tuple(
            (
                f"{task} (for {PAPER_NAMES[task]})",
                *results[f"slices-{task}"]["pool_accuracy"],
                f"{results[f'slices-{task}']['n_slices']}",
                results[f"slices-{task}"]["assigned_right"],
            )
            for task in tasks_in(results, "slices")
        ),
    )  # fmt: skip
    yield _selection(results)
    yield PaperTable(
        title="Table 6: error slices by size of the validation set",
        header=("task", *(f"{100 * share:.0f} %" for share in SHARES)),
        rows=tuple(
            (task, *(f"{count}" for _, count in results[f"slices-{task}"]["by_size"]))
            for task in tasks_in(results, "slices")
        ),
    )
    yield PaperTable(
        title="Figure 9: slices ten points below the network, on test images, before and after repair by selection",
        header=("task", "before", "after"),
        rows=tuple(
            (task, *(f"{number}" for number in results[f"selection-{task}"]["after"]))
            for task in tasks_in(results, "slices")
        ),
    )


def _thresholds(results: Results) -> PaperTable:
    counts = {
        task: results[f"slices-{task}"]["by_threshold"] for task in tasks_in(results, "slices")
    }
    limits = [limit for limit, _ in next(iter(counts.values()))]
    return PaperTable(
        title="Figure 3: error slices by threshold of validation accuracy",
        header=("task", *(f"at most {100 * limit:.0f} %" for limit in limits)),
        rows=tuple(
            (f"{task} (for {PAPER_NAMES[task]})", *(f"{number}" for _, number in found))
            for task, found in counts.items()
        ),
    )


def _settings(results: Results) -> PaperTable:
    rows: list[tuple[str | float | None, ...]] = []
    for method, words in ((ATTRIBUTES, "attributes"), (DOMINO, "mixture (Domino)")):
        for kind in settings_in(results):
            given = rows_of(results, kind, method)
            limits = [*thresholds_of(results).values()] if kind == "correlation" else []
            for limit in (None, *limits):
                own = given if limit is None else strong_rows(results, method, limit)
                named = "" if limit is None else f", followed by {limit} or more"
                is_named = kind != "noisy-label"
                rows.append(
                    (
                        f"{kind}{named}",
                        words,
                        f"{len(own)}",
                        percent(own, "attribute").mean if own and is_named else None,
                        percent(own, "word").mean if own and is_named else None,
                        percent(own, "confirmed").mean if own else None,
                        percent(own, "precision_at_10").mean if own else None,
                    )
                )
    return PaperTable(
        title="Table 1 and Section 4.1: settings like those of dcbench",
        header=("setting", "method", "problems", "find attr.", "find des.", "confirmed", "precision at 10"),
        rows=tuple(rows),
        note="Wrong labels have no name: no attribute tells them, so that only the mixture finds them; the product names them by "
        "other means (suspect labels).",
    )  # fmt: skip


def _selection(results: Results) -> PaperTable:
    tables: dict[str, Mapping[str, Any]] = {
        f"{task} (for {PAPER_NAMES[task]}), from scratch": results[f"selection-{task}"]["scratch"]
        for task in tasks_in(results, "slices")
    }
    if "selection-two" in results:
        tables["two (for Lipstick), fine-tuned"] = results["selection-two"]["tuned"]
    budgets = {results[f"selection-{task}"]["budget"] for task in tasks_in(results, "selection")}
    rows = [
        (task, *(average(found[way]).mean for way in ("original", *WAYS)))
        for task, found in tables.items()
    ]
    failing = [
        (
            f"{task}: of the chosen, failures of the original",
            None,
            *(results[f"selection-{task}"]["failing"][way][1] for way in WAYS),
        )
        for task in tasks_in(results, "slices")
    ]
    notes = [
        f"{task}, {WAY_WORDS.get(way, way)}: {note}."
        for task in tasks_in(results, "slices")
        for way, note in results[f"selection-{task}"]["notes"].items()
        if note
    ]
    return PaperTable(
        title="Table 4: error after retraining the whole network, equal budgets",
        header=("task", "original", *(WAY_WORDS.get(way, way) for way in WAYS)),
        rows=(*rows, *failing),
        note=f"Budget {max(budgets)} images of the pool; means over first weights. {' '.join(notes)}",
    )


def _generation(results: Results) -> PaperTable:
    rows: list[Mapping[str, Any]] = results["generation"]["rows"]
    original = average(results["generation"]["original"]).mean
    return PaperTable(
        title="Table 5: generated images",
        header=("prompt", "images", "error on generated", "test error after retraining"),
        rows=tuple(
            (
                row["way"],
                f"{row['n_images']}",
                row["error_on_generated"],
                average(row["errors"]).mean,
            )
            for row in rows
        ),
        note=f"Without generated images the test error is {original:.1f}.",
    )


def plots(results: Results) -> Mapping[str, str]:
    """Return Figure 3 and Table 4 as charts."""
    if not tasks_in(results, "slices"):
        return {}
    thresholds = {
        f"{task} (for {PAPER_NAMES[task]})": [
            (float(limit), float(number))
            for limit, number in results[f"slices-{task}"]["by_threshold"]
        ]
        for task in tasks_in(results, "slices")
    }
    errors: dict[str, Mapping[str, float]] = {
        task: {
            WAY_WORDS.get(way, way): average(results[f"selection-{task}"]["scratch"][way]).mean
            / 100
            for way in ("original", *WAYS)
        }
        for task in tasks_in(results, "slices")
    }
    return {
        "slices.svg": line_chart(
            thresholds,
            title="Figure 3: error slices by threshold",
            x_label="validation accuracy at most",
            y_label="slices",
        ),
        "selection.svg": bar_groups(errors, title="Table 4: test error after retraining"),
    }
