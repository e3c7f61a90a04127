"""How far one set of images is from another, by their embeddings: Frechet and kernel distance (FID and KID in Inception space)."""

from collections.abc import Mapping

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, generator
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.record import Record

OFFSET = 1.0
MAX_SUBSET = 1000
N_SUBSETS = 40
MIN_BLOCKS = 4
MIN_IMAGES = 2
N_EQUAL_DRAWS = 5
EXTRAPOLATION_SIZES = 6
ENOUGH_TIMES = 4


class KernelDistance(Record):
    """Squared maximum mean discrepancy with the kernel (x.y / d + 1)^3, without bias; it can be a little below 0.

    Args:
        value: mean over all subsets.
        standard_error: of the value, from subsets that have no image in common; None if there are too few images to tell.
        n_subsets: how many subsets were looked at.
        subset_size: images of the smaller set in one of them.
    """

    value: float
    standard_error: float | None
    n_subsets: int
    subset_size: int


class SetDistance(Record):
    """One set of images beside the reference.

    Args:
        name: of the set.
        space: the encoder in whose space it was measured.
        n_images: images of the set that have an embedding.
        n_reference: images of the reference that have one.
        dimension: of the embeddings.
        frechet: Frechet distance of all images; only comparable between sets of the same size.
        frechet_equal: the same on equally many images of every set, mean of a few draws.
        n_equal: how many those are.
        frechet_unbiased: extrapolated to endlessly many images; None where there are too few for that.
        kernel: kernel distance.
    """

    name: str
    space: str
    n_images: int
    n_reference: int
    dimension: int
    frechet: float
    frechet_equal: float
    n_equal: int
    frechet_unbiased: float | None
    kernel: KernelDistance

    @property
    def warning(self) -> str:
        """Return what to know about the Frechet distance, empty if there are images enough."""
        fewest = min(self.n_images, self.n_reference)
        if fewest >= ENOUGH_TIMES * self.dimension:
            return ""
        missing = (
            "fewer images than dimensions, so that covariances lack rank"
            if fewest <= self.dimension
            else "few images"
        )
        return (
            f"{self.name}: {fewest} images for {self.dimension} dimensions: {missing}. The Frechet distance of all is too large; "
            "compare sets by that of equally many, or by the kernel distance."
        )


def frechet_distance(first: AnyArray, second: AnyArray) -> float:
    """Return the squared Frechet distance between normal fits to embeddings [n, d] and [m, d].

    The trace of the root of the product of covariances is the sum of the singular values of the product of their factors. That
    needs neither a matrix root nor a small number on the diagonal, and stays exact where there are fewer embeddings than axes.

    Raises:
        DataError: if the embeddings are of different lengths or not finite.
        NotEnoughDataError: if a set has fewer than two embeddings.
    """
    one, other = _check(first, second)
    one_mean, other_mean = one.mean(axis=0), other.mean(axis=0)
    one_factor, other_factor = _factor(one - one_mean), _factor(other - other_mean)
    common = np.linalg.svd(one_factor @ other_factor.T, compute_uv=False).sum()
    spread = (one_factor**2).sum() + (other_factor**2).sum() - 2.0 * common
    return max(float(((one_mean - other_mean) ** 2).sum() + spread), 0.0)


def _factor(centred: DoubleArray) -> DoubleArray:
    """Return F [min(n, d), d] with F^T F the covariance."""
    n_rows, n_columns = centred.shape
    factor = np.linalg.qr(centred, mode="r") if n_rows > n_columns else centred
    return np.asarray(factor / np.sqrt(n_rows - 1), dtype=np.float64)


def unbiased_frechet(first: AnyArray, second: AnyArray, *, seed: int) -> float | None:
    """Return the Frechet distance extrapolated to endlessly many images, None where there are too few.

    The bias is nearly proportional to 1/n once there are clearly more embeddings than dimensions: a line through the distances of
    random subsets of several sizes is followed to 1/n = 0. With fewer than four times as many as dimensions that line is not
    straight, and nothing is said.
    """
    one, other = _check(first, second)
    fewest = min(len(one), len(other))
    if fewest < ENOUGH_TIMES * max(one.shape[1], EXTRAPOLATION_SIZES):
        return None
    random = generator(seed, "unbiased Frechet distance")
    shares = 1.0 / np.linspace(1.0, 2.0, EXTRAPOLATION_SIZES)
    found = [
        frechet_distance(_drawn(one, share, random), _drawn(other, share, random))
        for share in shares
    ]
    slope_and_intercept = np.polyfit(1.0 / shares, np.array(found), 1)
    return max(float(slope_and_intercept[1]), 0.0)


def _drawn(embeddings: DoubleArray, share: float, random: np.random.Generator) -> DoubleArray:
    return embeddings[random.permutation(len(embeddings))[: round(share * len(embeddings))]]


def kernel_distance(
    first: AnyArray, second: AnyArray, *, seed: int, n_subsets: int = N_SUBSETS
) -> KernelDistance:
    """Return the kernel distance between embeddings [n, d] and [m, d].

    Both sets are cut at random into subsets that have nothing in common, some times over. The mean over subsets is free of bias;
    subsets of one cut are independent, which gives an honest standard error.

    Args:
        first: embeddings of one set.
        second: embeddings of the other.
        seed: decides the cuts.
        n_subsets: about how many subsets are looked at in all.

    Raises:
        DataError: if the embeddings are of different lengths or not finite.
        NotEnoughDataError: if a set has fewer than two embeddings.
    """
    one, other = _check(first, second)
    fewest, most = sorted((len(one), len(other)))
    n_blocks = min(max(MIN_BLOCKS, -(-most // MAX_SUBSET)), fewest // MIN_IMAGES)
    random = generator(seed, "kernel distance")
    means, squared_errors = [], []
    for _ in range(max(1, round(n_subsets / n_blocks))):
        cuts = zip(
            _cut(len(one), n_blocks, random), _cut(len(other), n_blocks, random), strict=True
        )
        values = np.array([_discrepancy(one[rows], other[columns]) for rows, columns in cuts])
        means.append(values.mean())
        squared_errors.append(values.var(ddof=1) / n_blocks if n_blocks > 1 else np.nan)
    error = float(np.sqrt(np.mean(squared_errors)))
    return KernelDistance(
        value=float(np.mean(means)),
        standard_error=error if np.isfinite(error) else None,
        n_subsets=n_blocks * len(means),
        subset_size=fewest // n_blocks,
    )


def _cut(n_rows: int, n_blocks: int, random: np.random.Generator) -> list[AnyArray]:
    """Return random rows in blocks of the same size, at most `MAX_SUBSET`; what does not fill a block is left out."""
    size = min(n_rows // n_blocks, MAX_SUBSET)
    return list(random.permutation(n_rows)[: size * n_blocks].reshape(n_blocks, size))


def _discrepancy(one: DoubleArray, other: DoubleArray) -> float:
    """Return the unbiased squared maximum mean discrepancy of two sets."""
    within = _mean_without_diagonal(_kernel(one, one)) + _mean_without_diagonal(
        _kernel(other, other)
    )
    return within - 2.0 * float(_kernel(one, other).mean())


def _kernel(one: DoubleArray, other: DoubleArray) -> DoubleArray:
    base = one @ other.T / one.shape[1] + OFFSET
    # Three products are many times faster than a power of floating-point numbers.
    return np.asarray(base * base * base, dtype=np.float64)


def _mean_without_diagonal(values: DoubleArray) -> float:
    n_rows = len(values)
    return float((values.sum() - np.trace(values)) / (n_rows * (n_rows - 1)))


def distances_to(
    reference: AnyArray, sets: Mapping[str, AnyArray], *, space: str, seed: int
) -> tuple[SetDistance, ...]:
    """Return how far every set is from the reference, in the order of sets.

    Args:
        reference: embeddings [n, d] of the reference; rows that are not finite are left out, here and in sets.
        sets: embeddings by name; a set with fewer than two is left out.
        space: the encoder that made them.
        seed: decides which images are drawn where not all are taken.
    """
    known = _finite(reference)
    usable = {
        name: found
        for name, embeddings in sets.items()
        if len(found := _finite(embeddings)) >= MIN_IMAGES
    }
    n_equal = min([len(known), *map(len, usable.values())])
    return tuple(
        SetDistance(
            name=name,
            space=space,
            n_images=len(embeddings),
            n_reference=len(known),
            dimension=embeddings.shape[1],
            frechet=frechet_distance(embeddings, known),
            frechet_equal=_equal_frechet(embeddings, known, n_equal, seed),
            n_equal=n_equal,
            frechet_unbiased=unbiased_frechet(embeddings, known, seed=seed),
            kernel=kernel_distance(embeddings, known, seed=seed),
        )
        for name, embeddings in usable.items()
    )


def _equal_frechet(
    embeddings: DoubleArray, reference: DoubleArray, n_equal: int, seed: int
) -> float:
    random = generator(seed, "equally many pictures")
    is_whole = n_equal == len(embeddings) == len(reference)
    found = [
        frechet_distance(
            embeddings[random.permutation(len(embeddings))[:n_equal]],
            reference[random.permutation(len(reference))[:n_equal]],
        )
        for _ in range(1 if is_whole else N_EQUAL_DRAWS)
    ]
    return float(np.mean(found))


def _finite(embeddings: AnyArray) -> DoubleArray:
    values = np.asarray(embeddings, dtype=np.float64)
    return np.asarray(values[np.isfinite(values).all(axis=1)])


def _check(first: AnyArray, second: AnyArray) -> tuple[DoubleArray, DoubleArray]:
    one, other = (np.asarray(embeddings, dtype=np.float64) for embeddings in (first, second))
    is_table = one.ndim == other.ndim == 2  # noqa: PLR2004 - rows and columns
    if not is_table or one.shape[1] != other.shape[1]:
        raise DataError(
            "Only embeddings of the same length can be compared.", given=(one.shape, other.shape)
        )
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise DataError(
            "A distance needs embeddings of finite numbers.",
            fix="Leave out images that have no embedding.",
        )
    if min(len(one), len(other)) < MIN_IMAGES:
        raise NotEnoughDataError(
            "A distance needs two images or more on both sides.", given=(len(one), len(other))
        )
    return one, other
