"""A base for discoverers that look at one class after the other: they say what the slices of a class are, it does the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import FloatArray, IntArray, generator
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import check_bounds
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import Rule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, with_embeddings
from weakspot.core.slices import DataUse, FailureSlice, SliceName


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassSamples:
    """One class as a method sees it.

    Args:
        samples: all samples that the method may look at.
        problem: those of the class, and which of them failed; a method that reads embeddings sees those that have one, by sample id.
        embeddings: of these [n, d]; [n, 0] for a method that reads none.
        space: where the embeddings are from.
        obstacle: why nothing can be said of the class, or an empty text.
        found_on: what slices say they were found on.
    """

    samples: SampleSet
    problem: ClassProblem
    embeddings: FloatArray
    space: str
    obstacle: str
    found_on: DataUse
    seed: int
    assistants: Assistants = field(default=NO_ASSISTANTS)

    @property
    def encoder_id(self) -> str:
        return self.samples.space(self.space).encoder_id

    def only(self, places: IntArray) -> "ClassSamples":
        """Return some of the samples, in the order given."""
        return replace(self, problem=self.problem.only(places), embeddings=self.embeddings[places])

    def noted(self, *notes: str, n_considered: int = 0) -> Discovery:
        """Return that no slice was found, and why."""
        told = tuple(ClassNote(class_name=self.problem.title, note=note) for note in notes)
        return Discovery(slices=(), notes=told, n_considered=n_considered)


@dataclass(frozen=True, kw_only=True)
class ClassDiscoverer:
    """Looks at one class after the other; a method inherits from it, names its parameters and gives `slices_of`.

    Of the parameters it reads three itself, if a method has them: `space`, where embeddings are read by methods that need them, and
    `min_failures` and `min_right`, without which a class gets a note instead of slices.
    """

    method: ClassVar[str]
    """Name that it is registered under."""
    is_baseline: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ()
    """What it cannot work without."""
    strongest_first: ClassVar[bool] = False
    """Whether the slices of all classes are sorted by strength; otherwise they come class by class."""
    auto_place: ClassVar[int | None] = None
    """Its place among the methods of `auto`, quick ones first; None if it is not one of them."""
    auto_parameters: ClassVar[Mapping[str, JsonValue]] = {}
    """What `auto` sets where the user sets nothing."""

    def __post_init__(self) -> None:
        check_bounds(self)

    def slices_of(self, of: ClassSamples) -> Discovery:
        """Return the slices of a class without an obstacle, or notes."""
        raise NotImplementedError

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the slices of every class, and a note for every class without any."""
        classes = self.classes(samples, criterion, seed=seed, assistants=assistants)
        return self.gathered(self.looked_at(of) for of in classes)

    def classes(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Iterator[ClassSamples]:
        """Yield every class, with embeddings in memory as long as it is looked at."""
        use = DataUse.of(samples)
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            yield self.class_samples(samples, problem, use, seed=seed, assistants=assistants)

    def class_samples(
        self,
        samples: SampleSet,
        problem: ClassProblem,
        found_on: DataUse,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> ClassSamples:
        own: Mapping[str, Any] = vars(self)
        space, all_rows = str(own.get("space", "")), len(problem.rows)
        embeddings = np.zeros((all_rows, 0), dtype=np.float32)
        if Need.EMBEDDINGS in self.needs:
            problem, embeddings = with_embeddings(samples, problem, space)
        return ClassSamples(
            samples=samples,
            problem=problem,
            embeddings=embeddings,
            space=space,
            obstacle=obstacle(
                problem,
                min_failures=own.get("min_failures", 1),
                min_right=own.get("min_right", 1),
                n_without=all_rows - len(problem.rows),
            ),
            found_on=found_on,
            seed=seed,
            assistants=assistants,
        )

    def looked_at(self, of: ClassSamples) -> Discovery:
        """Return slices of a class, or at least one note."""
        found = of.noted(of.obstacle) if of.obstacle else self.slices_of(of)
        if found.slices or found.notes:
            return found
        return of.noted("Nothing stood out.", n_considered=found.n_considered)

    def gathered(self, parts: Iterable[Discovery]) -> Discovery:
        """Return what was found in all classes."""
        parts = list(parts)
        slices = [slice_ for part in parts for slice_ in part.slices]
        if self.strongest_first:
            slices.sort(key=lambda slice_: -round(slice_.strength or 0.0, 9))
        return Discovery(
            slices=tuple(slices),
            notes=tuple(note for part in parts for note in part.notes),
            n_considered=sum(part.n_considered for part in parts),
        )

    def random(self, of: ClassSamples, *names: str) -> np.random.Generator:
        """Return the random numbers of a class, or of a named step of it."""
        return generator(of.seed, self.method, *names, of.problem.title)

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Return the parameters as a run record holds them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def slice_of(
        self,
        of: ClassSamples,
        rule: Rule,
        *,
        strength: float | None = None,
        strength_p: float | None = None,
        n_found: int | None = None,
        names: Sequence[SliceName] = (),
        more: Mapping[str, JsonValue] | None = None,
    ) -> FailureSlice:
        """Return a slice of a class.

        Args:
            of: the class.
            rule: who is a member.
            strength: see `FailureSlice`, as for what follows.
            strength_p: chance of at least this strength.
            n_found: members; counted where it is left out.
            names: words.
            more: what is stored beside the parameters.
        """
        if n_found is None:
            n_found = int(rule.members(of.samples, of.problem.rows).sum())
        return FailureSlice(
            class_name=of.problem.class_name,
            side=of.problem.side,
            rule=rule,
            method=self.method,
            parameters={**self.parameters, **(more or {})},
            found_on=of.found_on,
            strength=strength,
            strength_p=strength_p,
            n_found=n_found,
            names=tuple(names),
        )
