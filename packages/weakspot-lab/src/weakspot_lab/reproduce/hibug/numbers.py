"""What the steps of the HiBug protocol say about the figures of the paper."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weakspot_lab.reproduce.averages import Average, against, average
from weakspot_lab.reproduce.figures import Measured
from weakspot_lab.reproduce.hibug.tasks import TASKS, TaskName
from weakspot_lab.reproduce.protocol import Results

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


def shown(found: Average, **words: Any) -> Measured:
    if not found.n_units:
        return Measured(note="No problem of this kind came up.")
    return Measured(value=found.mean, low=found.low, high=found.high, **words)


def tasks_in(results: Results, step: str) -> tuple[TaskName, ...]:
    """Return the tasks of which a step was run: all of the stand-in, one of the paper's own data."""
    return tuple(task for task in TASKS if f"{step}-{task}" in results)


def measured(results: Results) -> Mapping[str, Measured]:
    """Return what was measured for every figure of the paper; steps that were not run are passed over."""
    found = {
        **dict(_slices(results)),
        **dict(_selection(results)),
        **dict(_correlations(results)),
        **dict(_rare_cases(results)),
        **dict(_domino(results)),
    }
    return found | (dict(_generation(results)) if "generation" in results else {})


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


def _correlations(results: Results) -> Iterator[tuple[str, Measured]]:
    if "correlation" not in settings_in(results):
        return
    for key, threshold in thresholds_of(results).items():
        strong, domino = (
            strong_rows(results, method, threshold) for method in (ATTRIBUTES, DOMINO)
        )
        note = (
            f"{len(strong)} problems in which predictions follow the value by {threshold} or more"
        )
        for name in ("attribute", "word"):
            if not strong:
                yield f"{name}_{key}", Measured(note="No problem of this kind came up.")
                continue
            yield (
                f"{name}_{key}",
                against(
                    [100.0 * row[name] for row in strong],
                    [100.0 * row[name] for row in domino],
                    "Domino's mixture",
                    if_lower=NOT_TOLD,
                    if_higher=EASIER,
                    note=note,
                ),
            )


def _rare_cases(results: Results) -> Iterator[tuple[str, Measured]]:
    if "rare" not in settings_in(results):
        return
    rare, domino = (rows_of(results, "rare", method) for method in (ATTRIBUTES, DOMINO))
    for key, name in (("rare_case", "attribute"), ("rare_word", "word")):
        yield (
            key,
            against(
                [100.0 * row[name] for row in rare],
                [100.0 * row[name] for row in domino],
                "Domino's mixture",
                if_lower=NOT_TOLD,
                if_higher=EASIER,
                note=f"{len(rare)} problems",
            ),
        )


def _domino(results: Results) -> Iterator[tuple[str, Measured]]:
    for kind in settings_in(results):
        if kind == "noisy-label":
            continue
        own = rows_of(results, kind, DOMINO)
        yield f"domino_{kind}", shown(percent(own, "precision_at_10"), if_higher=EASIER)
        yield (
            f"domino_{kind}_word",
            shown(
                percent(own, "word"),
                if_higher=EASIER,
                note="of confirmed slices, over all problems",
            ),
        )


def _slices(results: Results) -> Iterator[tuple[str, Measured]]:
    for task in tasks_in(results, "slices"):
        found = results[f"slices-{task}"]
        values: list[float | None] = found["pool_accuracy"]
        counts: list[int] = found["pool_counts"]
        keys = ("all", "below_0", "below_1", "below_2")
        for key, value, count in zip(keys, values, counts, strict=True):
            if value is None:
                yield f"{task}_{key}", Measured(note="No slice is so far below.")
            elif key == "all":
                yield f"{task}_{key}", Measured(value=value, if_lower=HARDER)
            else:
                yield f"{task}_{key}", _inside(value, count, values[0], counts[0], task)
    if "slices-few" not in results:
        return
    sizes: list[list[int]] = results["slices-few"]["by_size"]
    for key, (n_rows, number) in zip(VALIDATION, sizes, strict=True):
        yield f"size_{key}", Measured(value=float(number), note=f"with {n_rows} validation images")
    yield (
        "size_ratio",
        Measured(
            value=sizes[0][1] / max(sizes[-1][1], 1),
            if_lower=f"there are only {results['slices-few']['n_slices']} combinations here, and most are seen early",
        ),
    )


def _inside(value: float, count: int, beside: float | None, n_all: int, task: TaskName) -> Measured:
    """Return the accuracy inside chosen slices against that of all slices, with the error of drawing so few of so many."""
    assert beside is not None
    error = WIDE * math.sqrt(beside * (100.0 - beside) * (1.0 / count - 1.0 / n_all))
    return Measured(
        value=value,
        beside=beside,
        beside_name="all slices",
        gain_low=value - beside - error,
        gain_high=value - beside + error,
        if_lower=HARDER,
        if_absent=BOTH if task == "two" else CHANCE,
        note=f"{count} of {n_all} images",
    )


def _selection(results: Results) -> Iterator[tuple[str, Measured]]:
    own = tasks_in(results, "selection")
    tables: dict[str, Any] = {task: results[f"selection-{task}"]["scratch"] for task in own}
    if "two" in own:
        tables["tuned"] = results["selection-two"]["tuned"]
    for task, given in tables.items():
        errors: Mapping[str, list[float]] = given
        for way in ("original", "random", "coreset"):
            yield f"{task}_{way}", shown(average(errors[way]), if_higher=HARDER)
        best = min(("random", "coreset"), key=lambda way: average(errors[way]).mean)
        others = {way: average(one).mean for way, one in errors.items() if way != "original"}
        lowest = min(others, key=lambda way: others[way])
        yield (
            f"{task}_hibug",
            against(
                errors["hibug"],
                errors[best],
                f"{best}, the better of the paper's two references",
                if_higher=HARDER,
                if_absent="what the worst slices add is less than what spread over the pool adds",
                note=f"lowest of all ways: {lowest}, {others[lowest]:.1f}",
            ),
        )
    if not own:
        return
    counts = [results[f"selection-{task}"]["after"] for task in own]
    before, after = (sum(one[place] for one in counts) for place in (0, 1))
    yield (
        "fixed",
        (
            Measured(value=100.0 * after / before, beside=100.0, beside_name="before repair")
            if before
            else Measured(note="No slice was ten points below.")
        ),
    )


def _generation(results: Results) -> Iterator[tuple[str, Measured]]:
    rows: list[Mapping[str, Any]] = results["generation"]["rows"]
    bare = [row for row in rows if row["way"] == "class name"]
    told = [row for row in rows if row["way"] == "hibug"]
    for number, plain, slices in zip(PAPER_SIZES, bare, told, strict=False):
        note = f"with {plain['n_images']} images"
        yield (
            f"generated_class_{number}",
            Measured(value=plain["error_on_generated"], if_higher=HARDER, note=note),
        )
        yield (
            f"generated_hibug_{number}",
            Measured(
                value=slices["error_on_generated"],
                beside=plain["error_on_generated"],
                beside_name="images of the bare class",
                if_higher=HARDER,
                note=note,
            ),
        )
        yield (
            f"retrained_class_{number}",
            shown(average(plain["errors"]), if_higher=HARDER, note=note),
        )
        yield (
            f"retrained_hibug_{number}",
            against(
                slices["errors"],
                plain["errors"],
                "images of the bare class",
                if_higher=HARDER,
                note=note,
            ),
        )
