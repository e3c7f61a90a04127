"""Experiment: every strategy on grocery photographs of which one kind is nearly missing from training."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from repair_results.arms import Workshop
from repair_results.case import RepairCase, repair_case
from repair_results.figures import Figures, in_order
from repair_results.proving import TRUE, given_slices
from repair_results.strategies import strategy_figures, words_figures
from repair_results.table import change_table, markdown, notes, percent
from weakspot.core.arrays import IntArray, generator
from weakspot.core.dataset import Split
from weakspot.core.run import StageProgress
from weakspot.run.settings import Settings
from weakspot_lab.bench.photographs import SOURCES as PHOTOGRAPHS
from weakspot_lab.bench.photographs import photograph_problems
from weakspot_lab.bench.problem import BenchProblem
from weakspot_lab.bench.worlds import halve_problem

NAME = "groceries"
SOURCES = (TRUE, "directions")
SHARES = {Split.VALIDATION: 0.5, Split.POOL: 0.2, Split.TEST: 0.3}
FOUND = "slices found"
BUDGET = 40


def grocery_case(problem: BenchProblem, *, seed: int) -> RepairCase:
    """Return a problem laid out for repair: what was not trained on is validation, pool and test, the hidden kind in all three."""
    (truth,) = problem.truths
    rows = np.sort(np.concatenate([problem.discovery.rows, problem.confirmation.rows]))
    training = np.setdiff1d(problem.samples.rows, rows)
    parts: dict[Split, list[IntArray]] = {split: [] for split in SHARES}
    labels = problem.samples.dataset.labels
    for group in np.unique(2 * labels[rows] + truth.inside[rows]):
        own = generator(seed, "repair results", NAME, str(group)).permutation(
            rows[2 * labels[rows] + truth.inside[rows] == group]
        )
        ends = np.round(np.cumsum(list(SHARES.values())) * len(own)).astype(np.int64)
        for split, part in zip(SHARES, np.split(own, ends[:-1]), strict=True):
            parts[split].append(part)
    split_rows = {split: np.sort(np.concatenate(found)) for split, found in parts.items()}
    return repair_case(
        halve_problem(problem, split_rows[Split.VALIDATION], seed=seed),
        {Split.TRAIN: training, **split_rows},
    )


@lru_cache(maxsize=1)
def _problems(seed: int, progress: StageProgress) -> tuple[BenchProblem, ...]:
    return tuple(photograph_problems(NAME, seed=seed, progress=progress))


@dataclass(frozen=True, kw_only=True)
class GroceriesExperiment:
    """Strategies on photographs, one hidden kind after the other.

    Args:
        n_runs: draws of training photographs.
        budget: photographs that may be taken from the pool.
        seed: of the first draw.
    """

    n_runs: int = 5
    budget: int = BUDGET
    seed: int = 0

    @property
    def name(self) -> str:
        """Return the name."""
        return NAME

    @property
    def command(self) -> str:
        """Return the command that runs it."""
        words = [
            "python",
            "benchmarks/repair.py",
            self.name,
            "--runs",
            str(self.n_runs),
            "--seed",
            str(self.seed),
        ]
        return shlex.join(words)

    def units(self) -> Sequence[str]:
        """Return one unit a hidden kind and draw."""
        kinds = PHOTOGRAPHS[NAME].hidden
        return [f"{kind}, run {number}" for number in range(self.n_runs) for kind in kinds]

    def measure(self, unit: str, progress: StageProgress) -> tuple[Figures, ...]:
        """Return the figures of every arm for one hidden kind; none where the classifier generalises to it."""
        kind, run = unit.split(", run ")
        seed, place = self.seed + int(run), list(PHOTOGRAPHS[NAME].hidden).index(kind)
        problem = next((one for one in _problems(seed, progress) if one.number == place), None)
        if problem is None:
            return ()
        case = grocery_case(problem, seed=seed)
        found: list[Figures] = []
        for source in SOURCES:
            given = given_slices(case, source, Settings(seed=seed))
            found.append(
                Figures(
                    unit=unit, part=source, arm=FOUND, values={"slices": float(len(given.slices))}
                )
            )
            if given.slices:
                shop = Workshop(case=case, given=given, budget=self.budget, seed=seed)
                found += [*strategy_figures(shop, unit), words_figures(shop, unit)]
        return tuple(found)

    def page(self, figures: Sequence[Figures]) -> str:
        """Return the mean over all hidden kinds, then every kind by itself."""
        text = [
            f"# Repairing hidden kinds of groceries ({self.n_runs} draws, {self.budget} photographs may be added)",
            "",
        ]
        for part in in_order(figures, lambda one: one.part):
            counts = [
                one.values["slices"] for one in figures if (one.part, one.arm) == (part, FOUND)
            ]
            text += [
                f"## {part}",
                "",
                f"Problems with a slice to repair: {sum(map(bool, counts))} of {len(counts)}.",
                "",
            ]
            text += [
                change_table(figures, part),
                "",
                notes(figures, part),
                "",
                "### By kind: accuracy before, then after",
                "",
            ]
            text += [_by_kind(figures, part), ""]
        return "\n".join(text)


def _by_kind(figures: Sequence[Figures], part: str) -> str:
    own = [one for one in figures if one.part == part and "slice after" in one.values]
    kinds = in_order(own, _kind)
    rows = [["before", *(_mean(own, kind, "plain", "slice before") for kind in kinds)]]
    rows += [
        [arm, *(_mean(own, kind, arm, "slice after") for kind in kinds)]
        for arm in in_order(own, lambda one: one.arm)
    ]
    return markdown(["arm", *kinds], rows)


def _kind(one: Figures) -> str:
    return one.unit.split(",", maxsplit=1)[0]


def _mean(figures: Sequence[Figures], kind: str, arm: str, name: str) -> str:
    values = [one.values[name] for one in figures if _kind(one) == kind and one.arm == arm]
    return percent(float(np.mean(values)) if values else None)
