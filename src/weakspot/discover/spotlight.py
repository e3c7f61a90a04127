"""Soft regions of high loss: a spot of light is moved and narrowed until what it lights up has the largest mean loss."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, generator, unit_rows
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, Level, NonNegativeInt, check_bounds
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import BallRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, separating_cut, with_embeddings
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association

MIN_SPREAD = 1e-9
MIN_GAIN = 1e-6
MAX_PULL = 0.5
PRECISE = 1e-6
N_NEWTON = 40
N_STEPS = 20
N_TRIALS = 6
SHRINKING = 2.0
NARROW_LEVELS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Spot:
    """A region.

    Args:
        centre: [d].
        precision: of the Gaussian kernel.
        weights: [n], one at the centre and less further out.
        mean_loss: weighted mean loss.
        pulls: [n] how much every sample draws the centre to itself; negative where it drives it away.
        distances: [n] squared distances to the centre.
    """

    centre: DoubleArray
    precision: float
    weights: DoubleArray
    mean_loss: float
    pulls: DoubleArray
    distances: DoubleArray

    @property
    def held_out_scores(self) -> DoubleArray:
        """Return minus the squared distance [n] of every sample to where the centre would be without it.

        A centre that has come to rest is the mean of the embeddings weighted by their pulls, so taking one of them out moves it
        straight away. Without this the few samples that made a spot would look nearer to it than unseen ones of their kind.
        """
        total = float(self.pulls.sum())
        shares = self.pulls / total if total > MIN_SPREAD else np.zeros(len(self.pulls))
        return np.asarray(
            -self.distances / np.square(1.0 - np.clip(shares, -MAX_PULL, MAX_PULL)),
            dtype=np.float64,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """What a spot moves in: embeddings [n, d], the same in double precision, squared lengths [n] and losses [n] that count now."""

    embeddings: FloatArray
    doubles: DoubleArray
    lengths: DoubleArray
    losses: DoubleArray

    @classmethod
    def of(cls, embeddings: FloatArray, losses: DoubleArray) -> "Field":
        lengths = np.einsum("nd,nd->n", embeddings, embeddings).astype(np.float64)
        return cls(
            embeddings=embeddings,
            doubles=embeddings.astype(np.float64),
            lengths=lengths,
            losses=losses,
        )

    def distances(self, centre: DoubleArray) -> DoubleArray:
        """Return squared distances [n] to a centre."""
        products = self.embeddings @ centre.astype(np.float32)
        return np.asarray(
            np.maximum(self.lengths - 2.0 * products + float(centre @ centre), 0.0),
            dtype=np.float64,
        )

    def at(self, centre: DoubleArray, size: float, *, near: float | None = None) -> Spot:
        """Return the spot of the given size at a centre; its precision is looked for near that of another one."""
        distances = self.distances(centre)
        precision = precision_for(distances, size, near=near)
        weights = np.exp(-0.5 * precision * distances)
        outward = weights * distances
        level = float(self.losses @ outward) / max(float(outward.sum()), MIN_SPREAD)
        mean_loss = float(weights @ self.losses) / float(weights.sum())
        pulls = weights * (self.losses - level)
        found = {"weights": weights, "pulls": pulls, "distances": distances}
        return Spot(centre=centre, precision=precision, mean_loss=mean_loss, **found)


def brightest(field: Field, size: float, *, n_starts: int, draws: np.random.Generator) -> Spot:
    """Return the spot of the given size with the largest mean loss that is found from several starts."""
    sizes = [size]
    while sizes[-1] * SHRINKING < len(field.losses) / 2:
        sizes.append(sizes[-1] * SHRINKING)
    chances = field.losses / field.losses.sum()
    broad = [field.embeddings.mean(axis=0, dtype=np.float64), chances @ field.doubles]
    drawn = draws.choice(len(chances), size=n_starts, p=chances)
    starts = [(centre, sizes[::-1]) for centre in broad]
    starts += [
        (field.embeddings[place].astype(np.float64), sizes[:NARROW_LEVELS][::-1]) for place in drawn
    ]
    found = [_climb(field, centre, levels) for centre, levels in starts]
    return max(found, key=lambda spot: round(spot.mean_loss, 9))


def _climb(field: Field, centre: DoubleArray, sizes: list[float]) -> Spot:
    spot = field.at(centre, sizes[0])
    for size in sizes:
        spot = field.at(spot.centre, size, near=spot.precision)
        for _ in range(N_STEPS):
            better = _step(field, spot, size)
            if better is None:
                break
            spot = better
    return spot


def _step(field: Field, spot: Spot, size: float) -> Spot | None:
    """Return a spot of the same size with a larger mean loss, or None.

    The way goes along the gradient of the mean loss where the precision follows from the size. Its natural length is that
    to the pull-weighted mean; it is doubled first and then halved until it leads upwards.
    """
    total = float(np.abs(spot.pulls).sum())
    if total <= 0.0:
        return None
    way = (spot.pulls @ field.doubles - spot.pulls.sum() * spot.centre) / total
    for trial in range(N_TRIALS):
        moved = field.at(spot.centre + way * 0.5 ** (trial - 1), size, near=spot.precision)
        if moved.mean_loss > spot.mean_loss + MIN_GAIN:
            return moved
    return None


def precision_for(distances: DoubleArray, size: float, *, near: float | None = None) -> float:
    """Return the precision at which the weights of squared distances [n] sum to the size.

    Newton's steps on logarithms, kept between bounds that close in on the answer.

    >>> round(precision_for(np.array([0.0, 2.0]), 1.5), 4)
    0.6931
    """
    scale = max(float(distances.mean()), MIN_SPREAD)
    scaled = 0.5 * distances / scale
    low, high = -20.0, 20.0
    place = 0.0 if near is None else float(np.clip(np.log(near * scale), low, high))
    for _ in range(N_NEWTON):
        power = np.exp(place)
        weights = np.exp(-power * scaled)
        total = float(weights.sum())
        surplus = np.log(max(total, 1e-300) / size)
        low, high = (place, high) if surplus > 0 else (low, place)
        slope = power * float(weights @ scaled) / max(total, 1e-300)
        step = place + surplus / slope if slope > 0 else low
        place = step if low < step < high else (low + high) / 2
        if abs(surplus) < PRECISE:
            break
    return float(np.exp(place) / scale)


METHOD = "spotlight"
MIN_CONFIDENCE = 1e-4


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
        assistants: Assistants = NO_ASSISTANTS,
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
        for _ in range(self.n_spots if spread > MIN_SPREAD and size >= 1.0 else 0):
            if losses.max() - losses.min() <= MIN_SPREAD:
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
    return np.asarray(-np.log(np.clip(confidence, MIN_CONFIDENCE, 1.0)), dtype=np.float64)


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
