"""What the steps of the HiBug protocol come to: the figures of the paper, its tables and plots."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weakspot_lab.charts import bar_groups, line_chart
from weakspot_lab.reproduce.averages import Average, against, average, mean_of, percents
from weakspot_lab.reproduce.figures import Measured
from weakspot_lab.reproduce.hibug.choosing import WAYS
from weakspot_lab.reproduce.hibug.measuring import SHARES
from weakspot_lab.reproduce.hibug.tasks import PAPER_NAMES, TASKS, TaskName
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Results

THRESHOLDS = {"07": 0.5, "08": 0.6}
"""For the paper's 0.7 and 0.8: predictions of planted classifiers follow the spurious value less closely."""
ATTRIBUTES, DOMINO = "attributes", "mixture"
KINDS = ("correlation", "rare", "noisy-label")
NOT_TOLD = "values of size and place are told too badly from these embeddings to become attributes, so nothing can name them"
EASIER = "a planted scene has few attributes, and the right one is among them"
HARDER = (
    "small networks from scratch fail far more often than the paper's, here and after every choice"
)
BOTH = "slices of attribute values hold both classes, and a background that misleads one class helps the other"
CHANCE = "slices of few validation images are low by chance"
WIDE = 1.96
PAPER_SIZES = (1000, 5000, 10000)
VALIDATION = ("15k", "10k", "5k", "1k", "0.5k")


def rows_of(results: Results, kind: str, method: str) -> list[Mapping[str, Any]]:
    given: list[Mapping[str, Any]] = results[f"dcbench-{kind}"]["rows"]
    return [row for row in given if row["method"] == method]


def percent(rows: Sequence[Mapping[str, Any]], name: str) -> Average:
    return average([100.0 * float(row[name]) for row in rows])


def tasks_in(results: Results, step: str) -> tuple[TaskName, ...]:
    """Return the tasks of which a step was run: all of the stand-in, one of the paper's own data."""
    return tuple(task for task in TASKS if f"{step}-{task}" in results)


def measured(results: Results) -> dict[str, Measured]:
    """Return what was measured for every figure of the paper; steps that were not run are passed over."""
    return {
        key: one
        for figures in (_slices, _selection, _settings, _generation)
        for key, one in figures(results).items()
    }


def settings_in(results: Results) -> tuple[str, ...]:
    """Return the kinds of problems of dcbench, or like them, of which a step was run."""
    return tuple(kind for kind in KINDS if f"dcbench-{kind}" in results)


def thresholds_of(results: Results) -> Mapping[str, float]:
    """Return how strongly predictions must follow a value: the paper's thresholds on dcbench, lower ones on planted problems."""
    found: Mapping[str, float] = results["dcbench-correlation"].get("thresholds", THRESHOLDS)
    return found


def strong_rows(results: Results, method: str, threshold: float) -> list[Mapping[str, Any]]:
    """Return the correlations that predictions follow by a threshold or more."""
    rows = rows_of(results, "correlation", method)
    return [row for row in rows if row["strength"] is not None and row["strength"] >= threshold]


def _settings(results: Results) -> dict[str, Measured]:
    """Return the figures on problems of dcbench, or like them."""
    found: dict[str, Measured] = {}
    kinds = settings_in(results)
    if "correlation" in kinds:
        for key, threshold in thresholds_of(results).items():
            strong, domino = (
                strong_rows(results, method, threshold) for method in (ATTRIBUTES, DOMINO)
            )
            note = f"{len(strong)} problems in which predictions follow the value by {threshold} or more"
            for name in ("attribute", "word"):
                found[f"{name}_{key}"] = _beside_domino(strong, domino, name, note)
    if "rare" in kinds:
        rare, domino = (rows_of(results, "rare", method) for method in (ATTRIBUTES, DOMINO))
        for key, name in (("rare_case", "attribute"), ("rare_word", "word")):
            found[key] = _beside_domino(rare, domino, name, f"{len(rare)} problems")
    for kind in kinds:
        if kind != "noisy-label":
            own = rows_of(results, kind, DOMINO)
            note = "of confirmed slices, over all problems"
            found[f"domino_{kind}"] = _mean(percents(own, "precision_at_10"), if_higher=EASIER)
            found[f"domino_{kind}_word"] = _mean(percents(own, "word"), if_higher=EASIER, note=note)
    return found


def _beside_domino(
    own: Sequence[Mapping[str, Any]], domino: Sequence[Mapping[str, Any]], name: str, note: str
) -> Measured:
    if not own:
        return NONE_CAME_UP
    mine, theirs = percents(own, name), percents(domino, name)
    return against(mine, theirs, "Domino's mixture", if_lower=NOT_TOLD, if_higher=EASIER, note=note)


def _mean(values: Sequence[float], **words: str) -> Measured:
    return mean_of(values, **words) if average(values).n_units else NONE_CAME_UP


NONE_CAME_UP = Measured(note="No problem of this kind came up.")


def _slices(results: Results) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for task in tasks_in(results, "slices"):
        values: list[float | None] = results[f"slices-{task}"]["pool_accuracy"]
        counts: list[int] = results[f"slices-{task}"]["pool_counts"]
        found[f"{task}_all"] = (
            Measured(note="No slice is so far below.")
            if values[0] is None
            else Measured(value=values[0], if_lower=HARDER)
        )
        for place in range(1, len(values)):
            found[f"{task}_below_{place - 1}"] = _inside(values, counts, place, task)
    if "slices-few" in results:
        sizes: list[list[int]] = results["slices-few"]["by_size"]
        for key, (n_rows, number) in zip(VALIDATION, sizes, strict=True):
            found[f"size_{key}"] = Measured(
                value=float(number), note=f"with {n_rows} validation images"
            )
        found["size_ratio"] = Measured(
            value=sizes[0][1] / max(sizes[-1][1], 1),
            if_lower=f"there are only {results['slices-few']['n_slices']} combinations here, and most are seen early",
        )
    return found


def _inside(
    values: Sequence[float | None], counts: Sequence[int], place: int, task: TaskName
) -> Measured:
    """Return the accuracy inside chosen slices against that of all slices, with the error of drawing so few of so many."""
    value, beside = values[place], values[0]
    if value is None or beside is None:
        return Measured(note="No slice is so far below.")
    error = WIDE * math.sqrt(beside * (100.0 - beside) * (1.0 / counts[place] - 1.0 / counts[0]))
    return Measured(
        value=value,
        beside=beside,
        beside_name="all slices",
        gain_low=value - beside - error,
        gain_high=value - beside + error,
        if_lower=HARDER,
        if_absent=BOTH if task == "two" else CHANCE,
        note=f"{counts[place]} of {counts[0]} images",
    )


def _selection(results: Results) -> dict[str, Measured]:
    own = tasks_in(results, "selection")
    tables: dict[str, Mapping[str, list[float]]] = {
        task: results[f"selection-{task}"]["scratch"] for task in own
    }
    if "two" in own:
        tables["tuned"] = results["selection-two"]["tuned"]
    found: dict[str, Measured] = {}
    for task, errors in tables.items():
        means = {way: average(one).mean for way, one in errors.items()}
        best = min(("random", "coreset"), key=lambda way: means[way])
        lowest = min((way for way in means if way != "original"), key=lambda way: means[way])
        for way in ("original", "random", "coreset"):
            found[f"{task}_{way}"] = mean_of(errors[way], if_higher=HARDER)
        found[f"{task}_hibug"] = against(
            errors["hibug"],
            errors[best],
            f"{best}, the better of the paper's two references",
            if_higher=HARDER,
            if_absent="what the worst slices add is less than what spread over the pool adds",
            note=f"lowest of all ways: {lowest}, {means[lowest]:.1f}",
        )
    if own:
        counts = [results[f"selection-{task}"]["after"] for task in own]
        before, after = (sum(one[place] for one in counts) for place in (0, 1))
        found["fixed"] = (
            Measured(value=100.0 * after / before, beside=100.0, beside_name="before repair")
            if before
            else Measured(note="No slice was ten points below.")
        )
    return found


def _generation(results: Results) -> dict[str, Measured]:
    rows: list[Mapping[str, Any]] = results["generation"]["rows"] if "generation" in results else []
    bare, told = ([row for row in rows if row["way"] == way] for way in ("class name", "hibug"))
    found: dict[str, Measured] = {}
    for number, plain, slices in zip(PAPER_SIZES, bare, told, strict=False):
        words = {"if_higher": HARDER, "note": f"with {plain['n_images']} images"}
        name = "images of the bare class"
        found |= {
            f"generated_class_{number}": Measured(value=plain["error_on_generated"], **words),
            f"generated_hibug_{number}": Measured(
                value=slices["error_on_generated"],
                beside=plain["error_on_generated"],
                beside_name=name,
                **words,
            ),
            f"retrained_class_{number}": mean_of(plain["errors"], **words),
            f"retrained_hibug_{number}": against(slices["errors"], plain["errors"], name, **words),
        }
    return found


WAY_WORDS = {
    "hibug": "HiBug's rule, all combinations",
    "confirmed": "confirmed slices (weakspot)",
    "uncertainty": "uncertainty",
}


def tables(results: Results) -> tuple[PaperTable, ...]:
    return tuple(_tables(results))


def _tables(results: Results) -> Iterator[PaperTable]:
    if settings_in(results):
        yield _settings_table(results)
    if "generation" in results:
        yield _generation_table(results)
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
    yield _selection_table(results)
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


def _settings_table(results: Results) -> PaperTable:
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


def _selection_table(results: Results) -> PaperTable:
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


def _generation_table(results: Results) -> PaperTable:
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


OUTCOME = Outcome(measured=measured, tables=tables, plots=plots)
