"""Problems like those of dcbench: a spurious feature, a rare case, wrong labels; how often attribute and word are found."""

from collections.abc import Iterable, Iterator

import numpy as np
from pydantic import JsonValue

from weakspot.core.dataset import Split
from weakspot.testing.planted import (
    DEFAULT_CLASSES,
    PlantedProblem,
    PlantedWorld,
    label_noise,
    plant,
)
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS
from weakspot_lab.bench.problem import BenchProblem, ProblemKind
from weakspot_lab.bench.running import BenchPlan, run_bench
from weakspot_lab.bench.scores import MethodScore
from weakspot_lab.bench.worlds import SHARES, world_problem
from weakspot_lab.reproduce.protocol import Context, StepResult

METHODS = ("attributes", "mixture")
NOISE = 0.25
SOURCE = "planted, noisy embedder"
FACTORS_USED = ("background", "colour", "lighting", "size", "position")
RHO = (0.95, 0.98, 0.99, 0.995, 0.999)
RARE = (0.0, 0.01, 0.02, 0.05)
N_SAMPLES, N_SMALL = 6000, 1800
PAPER_THRESHOLDS = {"07": 0.7, "08": 0.8}
"""How strongly predictions must follow the spurious value, by the keys of the paper's figures."""


def measure_setting(context: Context, kind: ProblemKind, n_worlds: int) -> StepResult:
    """Run the attribute method, and Domino's mixture beside it, on all problems of one kind."""
    return score_rows(
        (number, *setting_problem(context, kind, number)) for number in range(n_worlds)
    )


def score_rows(problems: Iterable[tuple[int, BenchProblem, float | None]]) -> StepResult:
    """Return one row for every problem and method; problems come with their number and strength."""
    rows: list[JsonValue] = []
    plan = BenchPlan(methods=METHODS, measure_memory=False)
    for number, problem, strength in problems:
        for score in run_bench([problem], plan):
            if score.method in METHODS:
                rows.append({"number": number, "strength": strength, **_score(score)})
    return {"rows": rows}


def setting_problem(
    context: Context, kind: ProblemKind, number: int
) -> tuple[BenchProblem, float | None]:
    """Return a problem, and how strongly predictions follow the spurious value (None without one)."""
    seed = context.seed_of(kind, str(number))
    world = plant(
        _planted(kind, number),
        context.request.pick(N_SAMPLES, N_SMALL),
        seed=seed,
        embedding_noise=NOISE,
        split_shares=SHARES,
    )
    strength = followed(world) if kind == "correlation" else None
    return world_problem(world, kind, number, source=SOURCE, seed=seed), strength


def _planted(kind: ProblemKind, number: int) -> PlantedProblem:
    if kind == "noisy-label":
        return label_noise(0.1)
    factor = FACTORS_USED[number % len(FACTORS_USED)]
    values = FACTORS[factor]
    first = number % len(DEFAULT_CLASSES)
    strengths = RHO if kind == "correlation" else RARE
    return PlantedProblem(
        kind="spurious" if kind == "correlation" else "rare",
        strength=strengths[number // len(FACTORS_USED) % len(strengths)],
        class_name=DEFAULT_CLASSES[first],
        rival=DEFAULT_CLASSES[(first + 1) % len(DEFAULT_CLASSES)],
        factor=factor,
        value=values[number % len(values)],
        usual_value=values[(number + 1) % len(values)],
    )


def followed(world: PlantedWorld) -> float:
    """Return the correlation of the two classes' predictions with the two planted values, on evaluation samples."""
    problem, dataset = world.problem, world.dataset
    rows = dataset.rows_of(Split.VALIDATION, Split.TEST)
    assert dataset.predictions is not None
    said = dataset.predictions[rows]
    shown = world.codes[rows, FACTOR_NAMES.index(problem.factor)]
    values = [FACTORS[problem.factor].index(one) for one in (problem.value, problem.usual_value)]
    classes = [dataset.class_code(one) for one in (problem.rival, problem.class_name)]
    kept = np.isin(said, classes) & np.isin(shown, values)
    if not kept.any():
        return 0.0
    found = np.corrcoef(said[kept] == classes[0], shown[kept] == values[0])[0, 1]
    return float(found) if np.isfinite(found) else 0.0


def _score(score: MethodScore) -> dict[str, JsonValue]:
    names = [one.name for one in score.truths if one.name is not None]
    return {
        "method": score.method,
        "confirmed": any(one.is_confirmed for one in score.truths),
        "word": any(one.is_synonym for one in names),
        "attribute": any(one.is_same_attribute for one in names),
        "precision_at_10": float(np.mean([one.precision_at_10 for one in score.truths] or [0.0])),
        "n_confirmed": score.n_confirmed,
        "n_false": score.n_false,
        "note": score.note,
    }


def of_method(rows: list[dict[str, JsonValue]], method: str) -> Iterator[dict[str, JsonValue]]:
    return (row for row in rows if row["method"] == method)
