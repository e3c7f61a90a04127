"""A spot of light among embeddings: where it stands, how wide it is, and how it climbs to where losses are high."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray

LEAST_SPREAD = 1e-9
LEAST_GAIN = 1e-6
LARGEST_PULL = 0.5
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
        shares = self.pulls / total if total > LEAST_SPREAD else np.zeros(len(self.pulls))
        return np.asarray(
            -self.distances / np.square(1.0 - np.clip(shares, -LARGEST_PULL, LARGEST_PULL)),
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
        level = float(self.losses @ outward) / max(float(outward.sum()), LEAST_SPREAD)
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
        if moved.mean_loss > spot.mean_loss + LEAST_GAIN:
            return moved
    return None


def precision_for(distances: DoubleArray, size: float, *, near: float | None = None) -> float:
    """Return the precision at which the weights of squared distances [n] sum to the size.

    Newton's steps on logarithms, kept between bounds that close in on the answer.

    >>> round(precision_for(np.array([0.0, 2.0]), 1.5), 4)
    0.6931
    """
    scale = max(float(distances.mean()), LEAST_SPREAD)
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
