"""Which problems of the benchmark are run."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot_lab.bench.photographs import SOURCES, photograph_problems
from weakspot_lab.bench.problem import BenchProblem, ProblemKind
from weakspot_lab.bench.worlds import EXACT, KINDS, NOISY, planted_problem

PLANTED = {"planted": EXACT, "planted-noisy": NOISY}


@dataclass(frozen=True, kw_only=True)
class BenchChoice:
    """Problems by name.

    Args:
        problems: `planted`, `planted-noisy`, or names of photographs.
        kinds: planted kinds; empty for all.
        n_worlds: planted worlds of every kind.
        n_samples: samples of a planted world.
        seed: of the worlds.
    """

    problems: tuple[str, ...] = ("planted",)
    kinds: tuple[str, ...] = ()
    n_worlds: int = 5
    n_samples: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        known = (*PLANTED, *SOURCES)
        unknown = [name for name in self.problems if name not in known]
        if unknown:
            raise ConfigError(
                "There are no such benchmark problems.",
                given=unknown,
                fix=f"Choose from {list(known)}.",
            )
        strange = [kind for kind in self.kinds if kind not in KINDS]
        if strange:
            raise ConfigError(
                "There are no such kinds of problem.",
                given=strange,
                fix=f"Choose from {list(KINDS)}.",
            )

    @property
    def n_problems(self) -> int:
        planted = (
            sum(name in PLANTED for name in self.problems)
            * len(self.kinds or KINDS)
            * self.n_worlds
        )
        return planted + sum(len(SOURCES[name].hidden) for name in self.problems if name in SOURCES)

    def command(self, methods: Sequence[str] = ()) -> str:
        words = ["weakspot", "lab", "bench"]
        for option, values in (
            ("--problems", self.problems),
            ("--kind", self.kinds),
            ("--method", tuple(methods)),
        ):
            words += [word for value in values for word in (option, value)]
        return shlex.join(
            [
                *words,
                "--worlds",
                str(self.n_worlds),
                "--samples",
                str(self.n_samples),
                "--seed",
                str(self.seed),
            ]
        )


def chosen_problems(
    choice: BenchChoice, *, progress: StageProgress = no_stage_progress
) -> Iterator[BenchProblem]:
    """Yield the problems one after the other; each is made when it is asked for."""
    for name in choice.problems:
        if name not in PLANTED:
            yield from photograph_problems(name, seed=choice.seed, progress=progress)
            continue
        for kind in choice.kinds or KINDS:
            for number in range(choice.n_worlds):
                yield planted_problem(
                    cast(ProblemKind, kind),
                    number,
                    source=PLANTED[name],
                    n_samples=choice.n_samples,
                    seed=choice.seed,
                )
