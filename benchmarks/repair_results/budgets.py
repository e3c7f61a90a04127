"""Experiment: samples chosen from a pool at several budgets, against a random choice of the same size."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from repair_results.arms import Workshop, pool_methods
from repair_results.figures import Figures, average, by_unit, in_order, paired
from repair_results.proving import TRUE, given_slices
from repair_results.strategies import PLAIN, arm_figures, selecting
from repair_results.table import markdown, notes, percent, points
from repair_results.worlds import world_case
from weakspot.core.run import StageProgress
from weakspot.run.settings import Settings
from weakspot_lab.bench.problem import ProblemKind

KINDS = ("rare", "correlation")
SOURCES = (TRUE, "directions")
BUDGETS = (10, 25, 50, 100, 200)
RANDOM = "pool-random"
RANDOM_DRAWS = 5


@dataclass(frozen=True, kw_only=True)
class BudgetsExperiment:
    """Pool strategies on planted worlds; all arms of a world share one penalty, so that they differ in what was added only.

    Args:
        n_worlds: worlds of every kind.
        n_samples: samples of a world, two fifths of them for training; as many fresh ones as there are samples are the pool.
        budgets: how many samples are added.
        seed: of the worlds.
    """

    n_worlds: int = 20
    n_samples: int = 4000
    budgets: tuple[int, ...] = BUDGETS
    seed: int = 0

    @property
    def name(self) -> str:
        """Return the name."""
        return "budgets"

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
        return [f"{kind} {number}" for kind in KINDS for number in range(self.n_worlds)]

    def measure(self, unit: str, progress: StageProgress) -> tuple[Figures, ...]:
        """Return the figures of every pool strategy at every budget on one world."""
        del progress
        kind, number = unit.split()
        case = world_case(
            cast(ProblemKind, kind), int(number), n_samples=self.n_samples, seed=self.seed
        )
        found: list[Figures] = []
        for source in SOURCES:
            given = given_slices(case, source, Settings(seed=self.seed))
            if given.slices:
                shop = Workshop(case=case, given=given, seed=self.seed)
                found.append(_labelled(_plain(shop, unit), kind, source, 0))
                shop = replace(shop, penalties=(found[-1].values["penalty"],))
                for budget in self.budgets:
                    found += (
                        _labelled(one, kind, source, budget)
                        for one in _arms(replace(shop, budget=budget), unit)
                    )
        return tuple(found)

    def page(self, figures: Sequence[Figures]) -> str:
        """Return accuracy and differences to random, one table a kind and source."""
        text = [f"# Choosing from a pool ({self.n_worlds} worlds of every kind)", ""]
        for kind in KINDS:
            for source in SOURCES:
                text += [f"## {kind}, {source}", "", *self._tables(figures, kind, source)]
        return "\n".join(text)

    def _tables(self, figures: Sequence[Figures], kind: str, source: str) -> Iterator[str]:
        plain = average(
            list(by_unit(figures, _part(kind, source, 0), PLAIN, "slice after").values())
        )
        if plain is None:
            yield "No slice was confirmed in any of these worlds.\n"
            return
        overall = average(
            list(by_unit(figures, _part(kind, source, 0), PLAIN, "overall after").values())
        )
        yield (
            f"{plain.n_units} worlds. Without additions: slice {percent(plain.mean)} %, "
            f"overall {percent(overall.mean if overall else None)} %."
        )
        for measure, title in (("slice after", "Slice"), ("overall after", "Overall")):
            yield f"\n{title}: accuracy with random additions, and difference to it in points, paired, 95 % interval over worlds.\n"
            yield markdown(
                ["strategy", *(f"{budget} added" for budget in self.budgets)],
                list(self._rows(figures, kind, source, measure)),
            )
            winners = self.winners(figures, kind, source, measure)
            yield f"\nAbove random at every budget, by the whole interval: {', '.join(winners) or 'none'}."
        yield ""
        yield from filter(
            None, [notes(figures, _part(kind, source, budget)) for budget in self.budgets]
        )

    def winners(
        self, figures: Sequence[Figures], kind: str, source: str, measure: str
    ) -> tuple[str, ...]:
        """Return the strategies whose interval of the difference to random lies above zero at every budget."""
        parts = [_part(kind, source, budget) for budget in self.budgets]
        base = {part: by_unit(figures, part, RANDOM, measure) for part in parts}

        def gains(arm: str, part: str) -> bool:
            found = paired(by_unit(figures, part, arm, measure), base[part])
            return found is not None and found.is_above_zero

        arms = in_order(
            [one for one in figures if one.part in parts and one.arm != RANDOM], lambda one: one.arm
        )
        return tuple(arm for arm in arms if all(gains(arm, part) for part in parts))

    def _rows(
        self, figures: Sequence[Figures], kind: str, source: str, measure: str
    ) -> Iterator[list[str]]:
        parts = [_part(kind, source, budget) for budget in self.budgets]
        base: Mapping[str, dict[str, float]] = {
            part: by_unit(figures, part, RANDOM, measure) for part in parts
        }
        means = [average(list(base[part].values())) for part in parts]
        yield [RANDOM, *(percent(mean.mean if mean else None) for mean in means)]
        for arm in in_order(
            [one for one in figures if one.part in parts and one.arm != RANDOM], lambda one: one.arm
        ):
            yield [
                arm,
                *(
                    points(paired(by_unit(figures, part, arm, measure), base[part]))
                    for part in parts
                ),
            ]


def _part(kind: str, source: str, budget: int) -> str:
    return f"{kind}, {source}, {budget}"


def _labelled(one: Figures, kind: str, source: str, budget: int) -> Figures:
    return one.model_copy(update={"part": _part(kind, source, budget)})


def _plain(shop: Workshop, unit: str) -> Figures:
    return arm_figures(shop, unit, PLAIN, selecting(shop, PLAIN))


def _arms(shop: Workshop, unit: str) -> Iterator[Figures]:
    """Yield every pool strategy; the random one as the mean of several draws, so that its luck does not decide."""
    for name in pool_methods():
        drawn = [
            replace(shop, seed=shop.seed + number)
            for number in range(RANDOM_DRAWS if name == RANDOM else 1)
        ]
        figures = [arm_figures(one, unit, name, selecting(one, name)) for one in drawn]
        yield figures[0].model_copy(update={"values": _mean([one.values for one in figures])})


def _mean(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in values])) for name in values[0]}
