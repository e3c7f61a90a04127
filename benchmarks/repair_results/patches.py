"""A small classifier's features for tiny images: learnt from unlabelled training images, in seconds, with numpy alone.

After Coates and Ng, *Learning Feature Representations with K-means* (2012): patches are brought to the same contrast and whitened,
k-means finds filters, an image is described by how near its patches are to every filter, summed over the four quadrants.
"""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import ByteArray, DoubleArray, FloatArray, IntArray, generator

MIN_VARIANCE = 10.0
CHUNK = 128


@dataclass(frozen=True, kw_only=True)
class PatchLearner:
    """How filters are learnt.

    Args:
        n_filters: how many.
        side: pixels of a patch.
        stride: pixels between patches when images are described.
        n_patches: how many random patches filters are learnt from.
        n_rounds: of k-means.
        smoothing: added to variances before whitening.
    """

    n_filters: int = 300
    side: int = 6
    stride: int = 2
    n_patches: int = 40_000
    n_rounds: int = 12
    smoothing: float = 0.1

    def learnt(self, images: ByteArray, *, seed: int) -> "PatchFeatures":
        """Return features learnt from images [n, height, width, 3], without labels."""
        draws = generator(seed, "patches")
        patches = _contrast(_random_patches(images, self, draws))
        centre = patches.mean(axis=0)
        values, axes = np.linalg.eigh(np.cov((patches - centre).T).astype(np.float64))
        whitening = ((axes / np.sqrt(np.maximum(values, 0.0) + self.smoothing)) @ axes.T).astype(
            np.float32
        )
        filters = _spherical_means((patches - centre) @ whitening, self, draws)
        return PatchFeatures(learner=self, centre=centre, whitening=whitening, filters=filters)


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchFeatures:
    """Learnt filters.

    Args:
        learner: how they were learnt.
        centre: mean patch [d].
        whitening: [d, d].
        filters: unit vectors [f, d] in whitened space.
    """

    learner: PatchLearner
    centre: FloatArray
    whitening: FloatArray
    filters: FloatArray

    def of(self, images: ByteArray) -> FloatArray:
        """Return features [n, 4 f] of images [n, height, width, 3]."""
        parts = [
            self._chunk(images[start : start + CHUNK]) for start in range(0, len(images), CHUNK)
        ]
        return (
            np.concatenate(parts)
            if parts
            else np.zeros((0, 4 * len(self.filters)), dtype=np.float32)
        )

    def _chunk(self, images: ByteArray) -> FloatArray:
        learner = self.learner
        windows = np.lib.stride_tricks.sliding_window_view(
            images, (learner.side, learner.side), axis=(1, 2)
        )
        windows = windows[:, :: learner.stride, :: learner.stride]
        n_images, height, width = windows.shape[:3]
        patches = _contrast(windows.reshape(n_images * height * width, -1).astype(np.float32))
        mapping = self.whitening @ self.filters.T
        nearness = (patches @ mapping - self.centre @ mapping).reshape(n_images, height, width, -1)
        np.maximum(nearness, 0.0, out=nearness)
        middle, centre = (height + 1) // 2, (width + 1) // 2
        quadrants = [
            nearness[:, rows, columns].sum(axis=(1, 2))
            for rows in _halves(middle)
            for columns in _halves(centre)
        ]
        return np.concatenate(quadrants, axis=1, dtype=np.float32)


def _halves(middle: int) -> tuple[slice, slice]:
    return slice(0, middle), slice(middle, None)


def _contrast(patches: FloatArray) -> FloatArray:
    centred = patches - patches.mean(axis=1, keepdims=True)
    return np.asarray(
        centred / np.sqrt(centred.var(axis=1, keepdims=True) + MIN_VARIANCE), dtype=np.float32
    )


def _random_patches(
    images: ByteArray, learner: PatchLearner, draws: np.random.Generator
) -> FloatArray:
    """Return patches [m, d] in the order of channels, rows and columns, as windows have them."""
    height, width = images.shape[1:3]
    chosen: IntArray = draws.integers(0, len(images), learner.n_patches)
    tops = draws.integers(0, height - learner.side + 1, learner.n_patches)
    lefts = draws.integers(0, width - learner.side + 1, learner.n_patches)
    steps = np.arange(learner.side)
    rows, columns = (
        tops[:, None, None] + steps[None, :, None],
        lefts[:, None, None] + steps[None, None, :],
    )
    patches = images[chosen[:, None, None], rows, columns]
    return np.asarray(
        patches.transpose(0, 3, 1, 2).reshape(learner.n_patches, -1), dtype=np.float32
    )


def _spherical_means(
    embeddings: FloatArray, learner: PatchLearner, draws: np.random.Generator
) -> FloatArray:
    """Return unit filters [f, d]: every patch pulls on the filter it is most like, by how like it is."""
    filters = _unit(
        draws.standard_normal((learner.n_filters, embeddings.shape[1])).astype(np.float32)
    )
    for _ in range(learner.n_rounds):
        likeness = embeddings @ filters.T
        best = np.abs(likeness).argmax(axis=1)
        confused_with = np.zeros((learner.n_filters, embeddings.shape[1]), dtype=np.float32)
        np.add.at(
            confused_with, best, embeddings * likeness[np.arange(len(embeddings)), best][:, None]
        )
        filters = _unit(filters + confused_with)
    return filters


def _unit(embeddings: FloatArray | DoubleArray) -> FloatArray:
    return np.asarray(
        embeddings / np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12),
        dtype=np.float32,
    )
