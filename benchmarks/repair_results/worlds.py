"""Experiment: every strategy on planted worlds with a correlation of 0.95, true and discovered slices."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from repair_results.arms import Workshop
from repair_results.case import RepairCase, repair_case
from repair_results.figures import Figures, in_order
from repair_results.proving import TRUE, given_slices
from repair_results.strategies import strategy_figures
from repair_results.table import CHANGES, change_table, notes
from weakspot.core.arrays import generator
from weakspot.core.dataset import Split
from weakspot.core.run import StageProgress
from weakspot.run.settings import Settings
from weakspot_lab.bench.problem import ProblemKind, with_attributes
from weakspot_lab.bench.worlds import planted_problem

SOURCES = (TRUE, "directions", "attributes")
FOUND = "slices found"


def world_case(kind: ProblemKind, number: int, *, n_samples: int, seed: int) -> RepairCase:
    """Return a planted world laid out for repair: half of its fresh samples are the pool, half are measured on."""
    problem = with_attributes(
        planted_problem(kind, number, n_samples=n_samples, seed=seed), Settings()
    )
    fresh = problem.fresh.rows if problem.fresh is not None else np.zeros(0, dtype=np.int64)
    mixed = generator(seed, "repair results", "fresh", str(number)).permutation(fresh)
    halves = np.concatenate([problem.discovery.rows, problem.confirmation.rows])
    parts = {
        Split.TRAIN: problem.samples.dataset.rows_of(Split.TRAIN),
        Split.VALIDATION: np.sort(halves),
        Split.POOL: np.sort(mixed[: len(mixed) // 2]),
        Split.TEST: np.sort(mixed[len(mixed) // 2 :]),
    }
    return repair_case(problem, parts)


@dataclass(frozen=True, kw_only=True)
class WorldsExperiment:
    """Strategies that only weigh training samples, on worlds whose class, rival and backgrounds change from number to number.

    Args:
        n_worlds: how many worlds.
        n_samples: samples of a world, two fifths of them for training; twice as many fresh ones come on top.
        seed: of the worlds.
    """

    n_worlds: int = 20
    n_samples: int = 10_000
    seed: int = 0

    @property
    def name(self) -> str:
        """Return the name."""
        return "worlds"

    @property
    def command(self) -> str:
        """Return the command that runs it."""
        words = [
            "python",
            "benchmarks/repair.py",
            self.name,
            "--worlds",
            str(self.n_worlds),
            "--samples",
            str(self.n_samples),
        ]
        return shlex.join([*words, "--seed", str(self.seed)])

    def units(self) -> Sequence[str]:
        """Return one unit a world."""
        return [f"correlation {number}" for number in range(self.n_worlds)]

    def measure(self, unit: str, progress: StageProgress) -> tuple[Figures, ...]:
        """Return the figures of every arm on one world, for true and for discovered slices."""
        del progress
        case = world_case(
            "correlation",
            int(unit.rsplit(maxsplit=1)[-1]),
            n_samples=self.n_samples,
            seed=self.seed,
        )
        found: list[Figures] = []
        for source in SOURCES:
            given = given_slices(case, source, Settings(seed=self.seed))
            found.append(
                Figures(
                    unit=unit, part=source, arm=FOUND, values={"slices": float(len(given.slices))}
                )
            )
            if given.slices:
                found += strategy_figures(Workshop(case=case, given=given, seed=self.seed), unit)
        return tuple(found)

    def page(self, figures: Sequence[Figures]) -> str:
        """Return one table a source of slices."""
        changes = {**CHANGES, "training mix change": "overall in the training mix, points"}
        text = [f"# Repairing planted correlations (rho 0.95, {self.n_worlds} worlds)", ""]
        for part in in_order(figures, lambda one: one.part):
            counts = [
                one.values["slices"] for one in figures if (one.part, one.arm) == (part, FOUND)
            ]
            text += [
                f"## {part}",
                "",
                f"Worlds with a slice to repair: {sum(map(bool, counts))} of {len(counts)}.",
                "",
            ]
            text += [change_table(figures, part, changes), "", notes(figures, part), ""]
        return "\n".join(text)
