"""Soft regions of high loss: a spot of light is moved and narrowed until what it lights up has the largest mean loss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, generator, unit_rows
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, Level, NonNegativeInt
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem, FailureCriterion
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import BallRule
from weakspot.core.samples import Need, SampleSet, separating_cut
from weakspot.core.slices import FailureSlice
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


MIN_CONFIDENCE = 1e-4
ALIKE = "The embeddings or the losses of all samples are alike."
BESIDE_OTHERS: dict[str, JsonValue] = {"max_samples": 2_000}
"""Beside other methods it need not see every sample of a large class; named alone it does."""


@dataclass(frozen=True, kw_only=True)
class SpotlightDiscoverer(ClassDiscoverer):
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

    method = "spotlight"
    needs = (Need.EMBEDDINGS,)
    strongest_first = True
    auto_place = 6
    auto_parameters = BESIDE_OTHERS
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
        classes = list(self.classes(samples, criterion, seed=seed))
        usable = [of for of in classes if not of.obstacle]
        scenes = [[of] for of in usable] if self.per_class else [usable] if usable else []
        found = [of.noted(of.obstacle) for of in classes if of.obstacle]
        return self.gathered([*found, *(part for scene in scenes for part in self._looked(scene))])

    def _looked(self, scene: list[ClassSamples]) -> Iterator[Discovery]:
        """Yield what the spots of a scene, that is of samples that spots are looked for in together, say of each of its classes."""
        title = "\n".join(of.problem.title for of in scene)
        draws = generator(scene[0].seed, self.method, "samples", title)
        share = self.max_samples / max(sum(len(of.problem.rows) for of in scene), 1)
        parts = [_part(of, share, draws) for of in scene]
        embeddings = np.concatenate([unit_rows(of.embeddings) for of in parts])
        losses = np.concatenate([losses_of(of.problem, self.loss) for of in parts])
        draws = generator(scene[0].seed, self.method, title)
        spots = list(self._spots(embeddings, losses, draws))
        first = 0
        for of in parts:
            places = slice(first, first + len(of.problem.rows))
            first = places.stop
            tried = [self._slice(of, spot, spot.held_out_scores[places]) for spot in spots]
            slices = tuple(slice_ for slice_ in tried if slice_ is not None)
            if slices:
                yield Discovery(slices=slices, n_considered=len(spots))
                continue
            counts = f"The {of.problem.n_failed} failures among {len(of.problem.rows)} samples"
            note = f"{counts} gather around no point." if spots else ALIKE
            yield of.noted(note, n_considered=len(spots))

    def _spots(
        self, embeddings: FloatArray, losses: DoubleArray, draws: np.random.Generator
    ) -> Iterator[Spot]:
        size = min(max(self.min_spot, self.spot_share * len(losses)), len(losses) / 2)
        spread = float(np.var(embeddings, axis=0, dtype=np.float64).sum())
        for _ in range(self.n_spots if spread > MIN_SPREAD and size >= 1.0 else 0):
            if losses.max() - losses.min() <= MIN_SPREAD:
                return
            field = Field.of(embeddings, losses)
            spot = brightest(field, size, n_starts=self.n_starts, draws=draws)
            yield spot
            losses = losses * (1.0 - spot.weights / spot.weights.max())

    def _slice(self, of: ClassSamples, spot: Spot, scores: DoubleArray) -> FailureSlice | None:
        """Return the slice of what a spot lights up in a class; None if too few of its failures are among it."""
        failed = of.problem.failed
        threshold: float | None = -2.0 * np.log(2.0 / spot.weights.max()) / spot.precision
        if self.cut == "separating":
            threshold = separating_cut(scores, failed, min_inside=self.min_members)
        if threshold is None:
            return None
        inside: BoolArray = scores >= threshold
        n_inside, strength = int(inside.sum()), association(failed, inside)
        if n_inside < self.min_members or failed[inside].sum() < self.min_failures or strength <= 0:
            return None
        rule = BallRule(
            space=self.space,
            encoder_id=of.encoder_id,
            centre=PackedArray.of(spot.centre),
            threshold=float(threshold),
        )
        return self.slice_of(of, rule, strength=strength, n_found=n_inside)


def losses_of(problem: ClassProblem, loss: Literal["log", "failure"]) -> DoubleArray:
    """Return the loss of every sample; a probability of the truth below 1e-4 counts as 1e-4."""
    confidence = problem.confidence.astype(np.float64)
    if loss == "failure" or not np.isfinite(confidence).all():
        return problem.failed.astype(np.float64)
    return np.asarray(-np.log(np.clip(confidence, MIN_CONFIDENCE, 1.0)), dtype=np.float64)


def _part(of: ClassSamples, share: float, draws: np.random.Generator) -> ClassSamples:
    if share >= 1.0:
        return of
    n_samples = len(of.problem.rows)
    return of.only(np.sort(draws.permutation(n_samples)[: max(1, round(share * n_samples))]))
