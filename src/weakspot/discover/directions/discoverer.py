"""Failures as directions: linear classifiers tell the samples of a class that fail from those that do not.

After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).
`docs/reference/methods.md` says where this departs from the paper and why.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from weakspot.core.arrays import FloatArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.bounds import (
    Bounds,
    Count,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveFraction,
    check_bounds,
)
from weakspot.core.class_embeddings import obstacle, with_embeddings
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.groups import several_to_a_group
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.directions.sources import scaling_rule, stratified_part

if TYPE_CHECKING:
    from weakspot.discover.directions.search import Direction

METHOD = "directions"
MOST_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class DirectionsDiscoverer:
    """Finds the samples of a class that lie far along a failure direction; several directions when failures are of several kinds.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).

    Args:
        space: which embeddings are read.
        costs: values of the SVM's constant C that are tried.
        cost_slack: a smaller C is preferred when it is worse than the best by at most so many standard errors; 0 takes the best.
        n_folds: folds by which C is chosen.
        n_repeats: how often these folds are drawn anew for the final choice of C.
        n_outer_folds: folds by which strength is measured; they take no part in choosing C.
        n_permutations: how often predictions are shuffled at most to find the chance of such a strength; 0 for never.
        n_directions: most directions a class can have; 1 gives the paper's single one.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        min_strength: directions that are weaker on held-out folds are not reported; 0.5 is guessing.
        max_p: failures are only divided into kinds, and one of several directions only kept, when chance explains it no more often.
        cut: where membership begins. `held-out`: at the score that separates failures best on held-out folds; `boundary`: at the
            SVM's own boundary.
        max_samples: classes with more samples are fitted on a random part that keeps the share of failures.
        max_null_samples: chance is measured on at most so many samples of a class.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = DirectionsDiscoverer(costs=(0.01,), n_permutations=19).discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 16)
    """

    space: str = "clip"
    costs: tuple[Positive, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    cost_slack: NonNegative = 1.0
    n_folds: Annotated[int, Bounds(ge=2)] = 2
    n_repeats: Count = 3
    n_outer_folds: Annotated[int, Bounds(ge=2)] = 5
    n_permutations: NonNegativeInt = 99
    n_directions: Count = 3
    min_failures: Annotated[int, Bounds(ge=2)] = 2
    min_right: Annotated[int, Bounds(ge=2)] = 2
    min_strength: float = 0.5
    max_p: PositiveFraction = 0.05
    cut: Literal["held-out", "boundary"] = "held-out"
    max_samples: Annotated[int, Bounds(ge=4)] = 20_000
    max_null_samples: Annotated[int, Bounds(ge=4)] = 500

    def __post_init__(self) -> None:
        none = [] if self.costs else ["The setting costs must hold at least one number."]
        check_bounds(self, problems=none)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.EMBEDDINGS,)

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NOBODY,
    ) -> Discovery:
        """Return slices of every class whose failures share directions, strongest first, and a note for every other class."""
        del assistants
        scaling, use = scaling_rule(samples, self.space), DataUse.of(samples)
        problems = class_problems(samples.dataset, samples.rows, criterion)

        def look(problem: ClassProblem) -> Discovery:
            return self._look(samples, problem, scaling, use, seed)

        # Solvers let go of the interpreter, and classes do not know of each other: threads change the time, never the result.
        with ThreadPoolExecutor(max_workers=min(MOST_THREADS, os.cpu_count() or 1)) as pool:
            answers = list(pool.map(look, problems))
        slices = [found for answer in answers for found in answer.slices]
        return Discovery(
            slices=tuple(sorted(slices, key=lambda found: -(found.strength or 0.0))),
            notes=tuple(note for answer in answers for note in answer.notes),
            n_considered=sum(answer.n_considered for answer in answers),
        )

    def _look(
        self,
        samples: SampleSet,
        problem: ClassProblem,
        scaling: LinearRule,
        use: DataUse,
        seed: int,
    ) -> Discovery:
        known, raw = with_embeddings(samples, problem, self.space)
        n_without = len(problem.rows) - len(known.rows)
        note = obstacle(
            known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without
        )
        if note:
            return Discovery(slices=(), notes=(ClassNote(class_name=problem.title, note=note),))
        directions, n_judged = self._directions(scaling.scaled(raw), known, seed=seed)
        if directions[0].strength <= self.min_strength:
            note = (
                f"The {known.n_failed} failures among {len(known.rows)} samples share no direction "
                f"(balanced accuracy {directions[0].strength:.2f} on held-out folds, 0.5 is guessing)."
            )
            return Discovery(
                slices=(),
                notes=(ClassNote(class_name=problem.title, note=note),),
                n_considered=n_judged,
            )
        settings = {
            **asdict(self),
            "costs": list(self.costs),
            "seed": seed,
            "n_directions_found": len(directions),
        }
        slices = []
        for found in directions:
            rule = found.rule(scaling)
            slices.append(
                FailureSlice(
                    class_name=problem.class_name,
                    side=problem.side,
                    rule=rule,
                    method=METHOD,
                    parameters={
                        **settings,
                        "chosen_cost": found.cost,
                        "n_failures_fitted": found.n_failures,
                    },
                    found_on=use,
                    strength=found.strength,
                    strength_p=found.strength_p,
                    n_found=int(rule.members(samples, known.rows).sum()),
                )
            )
        return Discovery(slices=tuple(slices), n_considered=n_judged)

    def _directions(
        self, embeddings: FloatArray, problem: ClassProblem, *, seed: int
    ) -> "tuple[list[Direction], int]":
        from weakspot.discover.directions.search import ClassSearch
        from weakspot.discover.directions.sources import class_data, plan_of

        search = ClassSearch(
            plan=plan_of(
                self.costs,
                n_folds=self.n_folds,
                n_outer_folds=self.n_outer_folds,
                slack=self.cost_slack,
            ),
            n_repeats=self.n_repeats,
            n_permutations=self.n_permutations,
            n_directions=self.n_directions,
            min_strength=self.min_strength,
            max_p=self.max_p,
            cut=self.cut,
        )
        draws = generator(seed, METHOD, problem.title)
        kept = stratified_part(problem.failed, self.max_samples, draws)
        data = class_data(
            embeddings[kept],
            problem.failed[kept],
            None if problem.groups is None else several_to_a_group(problem.groups[kept]),
            max_null_samples=self.max_null_samples,
            draws=draws,
        )
        return search.run(data, draws)
