"""Soft regions of high loss: a spot of light is moved and narrowed until what it lights up has the largest mean loss.

After d'Eon, d'Eon, Wright and Leyton-Brown, *The Spotlight: A General Method for Discovering Systematic Errors in Deep Learning
Models* (2022). `docs/reference/methods.md` says where this departs from the paper and why.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, unit_rows
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.bounds import Bounds, Count, Level, NonNegativeInt, check_bounds
from weakspot.core.class_embeddings import obstacle, separating_cut, with_embeddings
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.needs import Need
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import BallRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association
from weakspot.discover.spotlight.light import LEAST_SPREAD, Field, Spot, brightest

METHOD = "spotlight"
SMALLEST_CONFIDENCE = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scene:
    """Samples that spots are looked for in.

    Args:
        title: names the random draws.
        embeddings: unit vectors [n, d].
        losses: [n].
        parts: class problems and where their samples are.
    """

    title: str
    embeddings: FloatArray
    losses: DoubleArray
    parts: tuple[tuple[ClassProblem, slice], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ball:
    centre: DoubleArray
    threshold: float
    n_inside: int
    strength: float


@dataclass(frozen=True, kw_only=True)
class SpotlightDiscoverer:
    """Finds slices as balls of embeddings in which the loss is high.

    After d'Eon, d'Eon, Wright and Leyton-Brown, *The Spotlight: A General Method for Discovering Systematic Errors in Deep
    Learning Models* (2022).

    Args:
        space: which embeddings are read.
        n_spots: spots a class; after each, what it lit up counts less.
        spot_share: least size of a spot (its sum of weights) as a share of the samples.
        min_spot: least size of a spot in samples.
        per_class: whether every class gets spots of its own; otherwise spots are looked for among all samples at once.
        loss: `log`: minus the logarithm of the truth's probability; `failure`: one for failures, zero for others. Without
            probabilities it is `failure`.
        cut: where membership begins. `separating`: at the distance that separates failures best; `half`: where the weight
            falls to half of its maximum.
        n_starts: how many samples of high loss a spot is started from, besides the middle of the samples and of their losses.
        min_members: slices with fewer samples are not reported.
        min_failures: classes and slices with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        max_samples: spots are looked for in a random part of more samples than this.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = SpotlightDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 16)
    """

    space: str = "clip"
    n_spots: Count = 3
    spot_share: Level = 0.02
    min_spot: Annotated[float, Bounds(ge=1)] = 20.0
    per_class: bool = True
    loss: Literal["log", "failure"] = "log"
    cut: Literal["separating", "half"] = "separating"
    n_starts: NonNegativeInt = 4
    min_members: Count = 5
    min_failures: Count = 2
    min_right: Count = 2
    max_samples: Count = 10_000

    def __post_init__(self) -> None:
        check_bounds(self)

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
        """Return the spots that gather failures of a class, and a note for every class without any."""
        del assistants
        found_on = DataUse.of(samples)
        usable, notes = self._usable(samples, criterion)
        slices: list[FailureSlice] = []
        n_considered = 0
        for scene in self._scenes(usable, seed):
            spots = list(self._spots(scene, seed))
            n_considered += len(spots) * len(scene.parts)
            for problem, places in scene.parts:
                tried = [
                    self._membership(problem, spot.held_out_scores[places], spot) for spot in spots
                ]
                found = [
                    self._slice(samples, problem, item, found_on)
                    for item in tried
                    if item is not None
                ]
                slices += found
                if not found:
                    notes.append(
                        ClassNote(
                            class_name=problem.title, note=_nothing(problem, has_spots=bool(spots))
                        )
                    )
        slices.sort(key=lambda item: -round(item.strength or 0.0, 9))
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _usable(
        self, samples: SampleSet, criterion: FailureCriterion
    ) -> tuple[list[tuple[ClassProblem, FloatArray]], list[ClassNote]]:
        usable: list[tuple[ClassProblem, FloatArray]] = []
        notes: list[ClassNote] = []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known, embeddings = with_embeddings(samples, problem, self.space)
            n_without = len(problem.rows) - len(known.rows)
            note = obstacle(
                known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without
            )
            if note:
                notes.append(ClassNote(class_name=problem.title, note=note))
            else:
                usable.append((known, unit_rows(embeddings)))
        return usable, notes

    def _scenes(self, usable: list[tuple[ClassProblem, FloatArray]], seed: int) -> Iterator[_Scene]:
        bundles = [[item] for item in usable] if self.per_class else [usable] if usable else []
        for bundle in bundles:
            title = "\n".join(problem.title for problem, _ in bundle)
            draws = generator(seed, METHOD, "samples", title)
            share = self.max_samples / max(sum(len(problem.rows) for problem, _ in bundle), 1)
            chosen = [_part(problem, embeddings, share, draws) for problem, embeddings in bundle]
            ends = np.cumsum([len(problem.rows) for problem, _ in chosen])
            places = [
                slice(int(end) - len(problem.rows), int(end))
                for (problem, _), end in zip(chosen, ends, strict=True)
            ]
            yield _Scene(
                title=title,
                embeddings=np.concatenate([embeddings for _, embeddings in chosen]),
                losses=np.concatenate([losses_of(problem, self.loss) for problem, _ in chosen]),
                parts=tuple(zip((problem for problem, _ in chosen), places, strict=True)),
            )

    def _spots(self, scene: _Scene, seed: int) -> Iterator[Spot]:
        draws = generator(seed, METHOD, scene.title)
        losses = scene.losses
        size = min(max(self.min_spot, self.spot_share * len(losses)), len(losses) / 2)
        spread = float(np.var(scene.embeddings, axis=0, dtype=np.float64).sum())
        for _ in range(self.n_spots if spread > LEAST_SPREAD and size >= 1.0 else 0):
            if losses.max() - losses.min() <= LEAST_SPREAD:
                return
            spot = brightest(
                Field.of(scene.embeddings, losses), size, n_starts=self.n_starts, draws=draws
            )
            yield spot
            losses = losses * (1.0 - spot.weights / spot.weights.max())

    def _membership(self, problem: ClassProblem, scores: DoubleArray, spot: Spot) -> _Ball | None:
        threshold: float | None = -2.0 * np.log(2.0 / spot.weights.max()) / spot.precision
        if self.cut == "separating":
            threshold = separating_cut(scores, problem.failed, min_inside=self.min_members)
        if threshold is None:
            return None
        inside: BoolArray = scores >= threshold
        strength = association(problem.failed, inside)
        if (
            inside.sum() < self.min_members
            or problem.failed[inside].sum() < self.min_failures
            or strength <= 0
        ):
            return None
        return _Ball(
            centre=spot.centre,
            threshold=float(threshold),
            n_inside=int(inside.sum()),
            strength=strength,
        )

    def _slice(
        self, samples: SampleSet, problem: ClassProblem, ball: _Ball, found_on: DataUse
    ) -> FailureSlice:
        rule = BallRule(
            space=self.space,
            encoder_id=samples.space(self.space).encoder_id,
            centre=PackedArray.of(ball.centre),
            threshold=ball.threshold,
        )
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters=asdict(self),
            found_on=found_on,
            strength=ball.strength,
            n_found=ball.n_inside,
        )


def losses_of(problem: ClassProblem, loss: Literal["log", "failure"]) -> DoubleArray:
    """Return the loss of every sample; a probability of the truth below 1e-4 counts as 1e-4."""
    confidence = problem.confidence.astype(np.float64)
    if loss == "failure" or not np.isfinite(confidence).all():
        return problem.failed.astype(np.float64)
    return np.asarray(-np.log(np.clip(confidence, SMALLEST_CONFIDENCE, 1.0)), dtype=np.float64)


def _part(
    problem: ClassProblem, embeddings: FloatArray, share: float, draws: np.random.Generator
) -> tuple[ClassProblem, FloatArray]:
    if share >= 1.0:
        return problem, embeddings
    kept = np.sort(draws.permutation(len(problem.rows))[: max(1, round(share * len(problem.rows)))])
    return problem.only(kept), embeddings[kept]


def _nothing(problem: ClassProblem, *, has_spots: bool) -> str:
    if not has_spots:
        return "The embeddings or the losses of all samples are alike."
    return (
        f"The {problem.n_failed} failures among {len(problem.rows)} samples gather around no point."
    )
