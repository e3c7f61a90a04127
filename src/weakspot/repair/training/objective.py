"""The penalised loss of a layer, with groups of which only the worst served counts, and the descent to its lowest point.

The descent is L-BFGS with a preconditioner, few pairs in single precision, and steps that never go up.
"""

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.heads import Head, WorstGroupObjective

CHUNK_BYTES = 1 << 22
FEW_CLASSES = 64

SUMMED_AT_ONCE = 32


Slopes = tuple[DoubleArray, FloatArray, FloatArray, DoubleArray]
"""The loss of each sample [n]; how the weighted loss of a layer changes along weights [c, d] and biases [c]; and its bends.

Bends are [c] or [c, c], how sharply the loss bends along classes: the weighted mean of p (1 - p), and for few classes that exclude
each other also of - p q between them.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Samples with targets, and how much each counts.

    Args:
        features: [n, d], read in chunks and never copied as a whole.
        targets: codes [n] for single-label tasks, which labels each sample has [n, c] for multi-label ones.
        shares: [n], what each sample counts; they sum to one.
        n_classes: how many.
        task: softmax or one sigmoid per label.
    """

    features: FloatArray
    targets: AnyArray
    shares: DoubleArray
    n_classes: int
    task: Task

    @classmethod
    def of(
        cls,
        features: FloatArray,
        targets: AnyArray,
        weights: AnyArray,
        *,
        task: Task,
        n_classes: int | None,
    ) -> "Problem":
        """Return the problem, or say what is wrong with it."""
        features, targets, weights = (
            np.asarray(features),
            np.asarray(targets),
            np.asarray(weights, dtype=np.float64),
        )
        _check_shapes(features, targets, weights)
        _check_weights(weights)
        if n_classes is None and targets.ndim < 2:  # noqa: PLR2004
            raise DataError(
                "Class codes say nothing of how many classes there are.", fix="Give n_classes."
            )
        n_classes = targets.shape[1] if n_classes is None else n_classes
        checked = _codes if task is Task.SINGLE_LABEL else _label_matrix
        return cls(
            features=features,
            targets=checked(targets, n_classes),
            shares=weights / weights.sum(),
            n_classes=n_classes,
            task=task,
        )

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def support(self) -> DoubleArray:
        """Return the share [c] of samples that have each label."""
        if self.task is Task.SINGLE_LABEL:
            return np.asarray(
                np.bincount(self.targets, self.shares, self.n_classes), dtype=np.float64
            )
        return np.asarray(self.shares @ self.targets, dtype=np.float64)

    def check_features(self) -> None:
        """Refuse features that are not numbers."""
        if not all(np.isfinite(values).all() for _, values in self.chunks()):
            raise DataError(
                "Some features are missing or not finite.",
                fix="Leave out samples without features.",
            )

    def chunks(self, *, are_copied: bool = True) -> Iterator[tuple[slice, FloatArray]]:
        """Yield places and features of some samples at a time, so few that their logits stay in the processor's cache.

        Fewer still if features are copied, which they are where they are not in single precision.
        """
        is_view = not are_copied and self.features.dtype == np.float32
        n_rows = max(
            1,
            CHUNK_BYTES
            // (4 * (self.n_classes if is_view else max(self.n_classes, self.n_features))),
        )
        for first in range(0, len(self.features), n_rows):
            part = slice(first, min(first + n_rows, len(self.features)))
            yield part, np.asarray(self.features[part], dtype=np.float32)


def check_start(start: Head | None, problem: Problem) -> None:
    """Refuse a layer to start from that does not fit features and classes."""
    wanted = (problem.n_classes, problem.n_features)
    if start is not None and (start.weights.shape != wanted or start.bias.shape != wanted[:1]):
        raise DataError(
            "The last layer to start from has another shape than features and classes ask for.",
            given=start.weights.shape,
            fix=f"It must be {wanted}: give the features that this layer was made for.",
        )


def check_group_objectives(
    group_objectives: tuple[WorstGroupObjective, ...], n_samples: int
) -> None:
    """Refuse groups that overlap or reach beyond the samples."""
    positions = [group for group_objective in group_objectives for group in group_objective]
    everything: IntArray = np.concatenate(positions) if positions else np.zeros(0, np.int64)
    if not len(everything):
        return
    if everything.min() < 0 or everything.max() >= n_samples:
        raise DataError(
            "A worst-group objective names samples that are not trained on.",
            given=(int(everything.min()), int(everything.max())),
        )
    if np.bincount(everything).max() > 1:
        raise DataError(
            "No sample may be in two groups of worst-group objectives.",
            given=int(np.bincount(everything).argmax()),
        )


def _check_shapes(features: AnyArray, targets: AnyArray, weights: AnyArray) -> None:
    if not len(features):
        raise NotEnoughDataError(
            "There is no labelled sample to train the last layer on.", fix="Label training samples."
        )
    if features.ndim != 2:  # noqa: PLR2004
        raise DataError("Features must be a table of samples and dimensions.", given=features.shape)
    if not len(features) == len(targets) == len(weights):
        raise DataError(
            "Features, targets and weights must have the same length.",
            given=(len(features), len(targets), len(weights)),
        )


def _check_weights(weights: DoubleArray) -> None:
    if not np.isfinite(weights).all():
        raise DataError(
            "Some weights are missing or not finite.", given=int((~np.isfinite(weights)).sum())
        )
    if np.any(weights < 0) or not weights.sum() > 0:
        raise DataError(
            "Weights must not be negative, and not all zero.",
            given=(float(weights.min()), float(weights.sum())),
            fix="Choose at least one sample that counts.",
        )


def _codes(targets: AnyArray, n_classes: int) -> IntArray:
    if targets.ndim == 1 and targets.dtype.kind in "iu":
        if targets.min() < 0 or targets.max() >= n_classes:
            raise DataError(
                "Every sample of a single-label task needs exactly one label.",
                given=(int(targets.min()), int(targets.max())),
                fix=f"Codes go from 0 to {n_classes - 1}; leave out unlabelled samples.",
            )
        return targets.astype(np.int64)
    matrix = _label_matrix(targets, n_classes)
    if not np.all(np.count_nonzero(matrix, axis=1) == 1):
        raise DataError(
            "Every sample of a single-label task needs exactly one label.",
            fix="Leave out unlabelled samples.",
        )
    return np.asarray(matrix.argmax(axis=1), dtype=np.int64)


def _label_matrix(targets: AnyArray, n_classes: int) -> BoolArray:
    if targets.ndim != 2 or targets.shape[1] != n_classes:  # noqa: PLR2004
        raise DataError(
            "Targets must say for every class whether a sample has it.",
            given=targets.shape,
            fix=f"{n_classes} columns.",
        )
    return np.asarray(targets, dtype=np.bool_)


MAX_WORKERS = 16
MIN_PRODUCTS = 5e6


def one_thread_each() -> AbstractContextManager[object]:
    """Return a context in which every matrix product runs in the thread that asks for it.

    Threads that wait for each other at every small step lose a hundredfold on a machine that does other work as well.
    """
    limit = _controller(len(sys.modules)).limit
    return limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _controller(_n_imported: int) -> Any:
    """Return who sets the threads of the libraries that are loaded; looked for again after further imports only, since it takes long."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()


@contextmanager
def workers_for(problem: Problem) -> Iterator[Executor | None]:
    """Yield threads that chunks of a problem are shared out to, None if each product is large enough to be shared out itself."""
    is_few = problem.n_classes <= FEW_CLASSES
    with one_thread_each() if is_few else nullcontext():
        if not is_few or problem.features.size * problem.n_classes < MIN_PRODUCTS:
            yield None
            return
        n_cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        with ThreadPoolExecutor(min(MAX_WORKERS, n_cores)) as threads:
            yield threads


MIN_DEVIATION = 1e-6
LARGE_CENTRE = 30.0
MAX_TURNED, SMALL_WIDTH = 4_096, 512
ROWS_A_FEATURE = 16
FIRST_SAMPLES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """Centre and deviation of features, and their principal directions, applied to layers [c, d + 1] instead of to the features.

    Args:
        centre: [d] mean of the samples.
        deviation: [d] standard deviation, one where a feature is constant.
        directions: [d, d] principal directions of standardised features as columns; None where finding them does not pay.
        spectrum: [d] mean square of standardised features along each direction.
    """

    centre: DoubleArray
    deviation: DoubleArray
    directions: FloatArray | None
    spectrum: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> "Coordinates":
        """Measure the features of a problem."""
        centre, deviation = _moments(problem)
        directions, spectrum = _principal(problem, centre, deviation)
        return cls(centre=centre, deviation=deviation, directions=directions, spectrum=spectrum)

    @classmethod
    def plain_features(cls, width: int) -> "Coordinates":
        return cls(
            centre=np.zeros(width),
            deviation=np.ones(width),
            directions=None,
            spectrum=np.ones(width, np.float32),
        )

    @property
    def subtracted(self) -> FloatArray | None:
        """Return the centre if it is so far from zero that single precision needs it subtracted from features, else None."""
        is_far = np.abs(self.centre) > LARGE_CENTRE * self.deviation
        return self.centre.astype(np.float32) if is_far.any() else None

    def inwards(self, head: Head) -> FloatArray:
        """Return the layer [c, d + 1] in these coordinates that answers like a head on plain features."""
        weights = np.asarray(head.weights, dtype=np.float64)
        inner = (weights * self.deviation).astype(np.float32)
        turned = inner if self.directions is None else inner @ self.directions
        return np.column_stack([turned, (head.bias + weights @ self.centre).astype(np.float32)])

    def plain(self, layer: FloatArray, *, is_centred: bool) -> tuple[FloatArray, FloatArray]:
        """Return weights [c, d] and bias [c] for features as they are, or with the centre subtracted."""
        turned = layer[:, :-1]
        weights: FloatArray = turned if self.directions is None else turned @ self.directions.T
        weights = np.divide(weights, self.deviation.astype(np.float32), dtype=np.float32)
        bias = layer[:, -1] if is_centred else layer[:, -1] - weights @ self.centre
        return weights, bias.astype(np.float32)

    def outwards(self, layer: FloatArray, task: Task) -> Head:
        weights, bias = self.plain(layer, is_centred=False)
        return Head(weights=weights, bias=bias, task=task)

    def slope(self, weights: FloatArray, bias: FloatArray, *, is_centred: bool) -> FloatArray:
        """Return the slope [c, d + 1] in these coordinates for those along plain weights [c, d], which it uses up, and bias."""
        if not is_centred:
            weights -= np.outer(bias, self.centre.astype(np.float32))
        weights /= self.deviation.astype(np.float32)
        found = np.empty((len(bias), weights.shape[1] + 1), np.float32)
        found[:, :-1] = weights if self.directions is None else weights @ self.directions
        found[:, -1] = bias
        return found


def _moments(problem: Problem) -> tuple[DoubleArray, DoubleArray]:
    """Return mean and standard deviation of features, by sums around the mean of the first samples."""
    shift = np.asarray(problem.features[:FIRST_SAMPLES], dtype=np.float32).mean(axis=0)
    sums, squares = np.zeros(problem.n_features), np.zeros(problem.n_features)
    with np.errstate(all="ignore"):
        for _, values in problem.chunks():
            around = values - shift
            sums += np.ones(len(around), np.float32) @ around
            squares += np.einsum("ij,ij->j", around, around)
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        raise DataError(
            "Some features are missing or not finite.", fix="Leave out samples without features."
        )
    mean = sums / len(problem.features)
    centre = mean + shift
    deviation = np.sqrt(np.maximum(squares / len(problem.features) - mean**2, 0.0))
    least = MIN_DEVIATION * np.maximum(np.abs(centre), deviation.max())
    return centre, np.where(deviation > least, deviation, 1.0)


def _principal(
    problem: Problem, centre: DoubleArray, deviation: DoubleArray
) -> tuple[FloatArray | None, FloatArray]:
    """Return principal directions and the spectrum of standardised features, from samples drawn evenly by what they count."""
    width, n_samples = problem.n_features, len(problem.features)
    if width > (min(SMALL_WIDTH, n_samples) if n_samples < 4 * width else MAX_TURNED):
        return None, np.ones(width, np.float32)
    n_generated = min(n_samples, max(ROWS_A_FEATURE * width, MAX_TURNED))
    drawn = np.searchsorted(
        np.cumsum(problem.shares), (np.arange(n_generated) + 0.5) / n_generated
    ).clip(0, n_samples - 1)
    products = np.zeros((width, width), np.float32)
    for first in range(0, n_generated, MAX_TURNED // 2):
        values = np.asarray(
            problem.features[drawn[first : first + MAX_TURNED // 2]], dtype=np.float32
        )
        values -= centre.astype(np.float32)
        values /= deviation.astype(np.float32)
        products += values.T @ values
    with one_thread_each():
        spectrum, directions = np.linalg.eigh(products / np.float32(n_generated))
    return np.ascontiguousarray(directions), np.maximum(spectrum, 0).astype(np.float32)


class ChunkedLoss:
    """Losses of a problem; logits exist for one chunk only, transposed to [c, rows], so that sums over classes run along rows.

    Products are taken in single precision and summed in a fixed order, whoever works on them; sums of losses are taken in double
    precision.
    """

    def __init__(
        self, problem: Problem, centre: FloatArray | None = None, workers: Executor | None = None
    ) -> None:
        self._problem = problem
        self._centre = centre
        self._workers = workers
        self._is_softmax = problem.task is Task.SINGLE_LABEL
        self._buffer: FloatArray = np.zeros(0, np.float32)

    def losses(self, weights: FloatArray, bias: FloatArray) -> DoubleArray:
        """Return the loss [n] of each sample."""
        found = np.empty(len(self._problem.features))
        for part, values in self._chunks():
            logits = self._logits(self._centred(values), weights, bias)
            found[part] = (_softmax if self._is_softmax else _sigmoid)(
                logits, self._problem.targets[part]
            )
        return found

    def slopes(self, weights: FloatArray, bias: FloatArray, shares: DoubleArray) -> Slopes:
        """Return losses, and slope and curvature of their sum weighted by shares [n]."""
        losses, counts = np.empty(len(self._problem.features)), shares.astype(np.float32)
        by_weights, by_bias = np.zeros_like(weights), np.zeros_like(bias)
        bends = np.zeros((len(bias),) * (2 if self._is_softmax and len(bias) <= FEW_CLASSES else 1))

        def measured(chunk: tuple[slice, FloatArray]) -> Slopes:
            part, values = chunk
            inputs, targets, counted = (
                self._centred(values),
                self._problem.targets[part],
                counts[part],
            )
            likely = self._logits(inputs, weights, bias)
            own_losses = (_softmax if self._is_softmax else _sigmoid)(likely, targets)
            part_bends = _bends(likely, counted, is_square=bends.ndim > 1)
            _subtract_targets(likely, targets, counted, is_softmax=self._is_softmax)
            return own_losses, likely @ inputs, likely.sum(axis=1), part_bends

        chunks = list(self._chunks())
        for (part, _), one in zip(
            chunks,
            (map if self._workers is None else self._workers.map)(measured, chunks),
            strict=True,
        ):
            losses[part] = one[0]
            by_weights += one[1]
            by_bias += one[2]
            bends += one[3]
        return losses, by_weights, by_bias, bends

    def _chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        return self._problem.chunks(
            are_copied=self._workers is not None or self._centre is not None
        )

    def _centred(self, values: FloatArray) -> FloatArray:
        return values if self._centre is None else values - self._centre

    def _logits(self, inputs: FloatArray, weights: FloatArray, bias: FloatArray) -> FloatArray:
        wanted = len(bias) * len(inputs)
        if self._workers is None and len(self._buffer) < wanted:
            self._buffer = np.empty(wanted, np.float32)
        kept = self._buffer if self._workers is None else np.empty(wanted, np.float32)
        logits = kept[:wanted].reshape(len(bias), len(inputs))
        np.matmul(weights, inputs.T, out=logits)
        logits += bias[:, None]
        return logits


def _softmax(logits: FloatArray, codes: AnyArray) -> DoubleArray:
    """Turn logits [c, rows] into probabilities in place and return losses [rows]."""
    logits -= logits.max(axis=0)
    picked = logits[codes, np.arange(len(codes))]
    np.exp(logits, out=logits)
    totals = np.zeros(logits.shape[1])
    for first in range(0, len(logits), SUMMED_AT_ONCE):
        totals += logits[first : first + SUMMED_AT_ONCE].sum(axis=0)
    logits *= (1.0 / totals).astype(np.float32)
    return np.asarray(np.log(totals) - picked, dtype=np.float64)


def _sigmoid(logits: FloatArray, targets: AnyArray) -> DoubleArray:
    """Turn logits [c, rows] into probabilities in place and return losses [rows], summed over labels."""
    powers = np.exp(-np.abs(logits))
    losses = np.log1p(powers) + np.where(targets.T, np.maximum(-logits, 0), np.maximum(logits, 0))
    np.divide(np.where(logits > 0, np.float32(1), powers), 1 + powers, out=logits)
    return np.asarray(losses.sum(axis=0, dtype=np.float64))


def _bends(likely: FloatArray, counted: FloatArray, *, is_square: bool) -> DoubleArray:
    """Return how sharply the loss bends along classes for probabilities [c, rows]."""
    means = likely @ counted
    if is_square:
        return np.asarray(np.diag(means) - (likely * counted) @ likely.T, dtype=np.float64)
    return np.asarray(means - np.einsum("ij,ij,j->i", likely, likely, counted), dtype=np.float64)


def _subtract_targets(
    likely: FloatArray, targets: AnyArray, counted: FloatArray, *, is_softmax: bool
) -> None:
    """Turn probabilities [c, rows] into weighted residuals in place."""
    likely *= counted
    if is_softmax:
        likely[targets, np.arange(len(targets))] -= counted
    else:
        likely -= targets.T * counted


MIN_TEMPERATURE = 1e-7


Rivals = tuple[float, list[tuple[IntArray, DoubleArray]]]
"""What the samples of several groups count together, and the positions of each group with what each sample counts inside it.

Only the worst of these groups counts; a group whose samples all count nothing takes no part.
"""


def _rivals(group_objective: WorstGroupObjective, shares: DoubleArray) -> Rivals:
    totals = [float(shares[group].sum()) for group in group_objective]
    groups = [
        (group, shares[group] / total)
        for group, total in zip(group_objective, totals, strict=True)
        if total > 0
    ]
    return sum(totals), groups


class GroupObjectives:
    """The loss in which each set of groups counts by its worst group, and samples in no group by themselves."""

    def __init__(
        self, group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray
    ) -> None:
        every = (_rivals(group_objective, shares) for group_objective in group_objectives)
        self._rivals = [(share, groups) for share, groups in every if groups]
        self._free = shares.copy()
        for _, groups in self._rivals:
            for group, _ in groups:
                self._free[group] = 0.0

    def __bool__(self) -> bool:
        return bool(self._rivals)

    def worst(self, losses: DoubleArray) -> float:
        """Return the loss that counts, for losses [n] of samples."""
        return float(self._free @ losses) + sum(
            share * float(_means(groups, losses).max()) for share, groups in self._rivals
        )

    def temperatures(self, losses: DoubleArray, part: float) -> tuple[float, ...]:
        """Return for each set of groups how soft its maximum may be to lie at most a part above the true one."""
        return tuple(
            max(
                part * float(_means(groups, losses).max()) / np.log(1.0 + len(groups)),
                MIN_TEMPERATURE,
            )
            for _, groups in self._rivals
        )

    def softened(
        self, losses: DoubleArray, temperatures: tuple[float, ...]
    ) -> tuple[float, DoubleArray]:
        """Return the loss with soft maxima, and how much each sample [n] counts in it."""
        value, counts = float(self._free @ losses), self._free.copy()
        for (share, groups), temperature in zip(self._rivals, temperatures, strict=True):
            means = _means(groups, losses)
            powers = np.exp((means - means.max()) / temperature)
            value += share * float(means.max() + temperature * np.log(powers.sum()))
            for (group, inner), power in zip(groups, powers / powers.sum(), strict=True):
                counts[group] = share * power * inner
        return value, counts

    @property
    def sharpest(self) -> tuple[float, ...]:
        """Return temperatures at which soft maxima are true ones."""
        return (MIN_TEMPERATURE,) * len(self._rivals)


def _means(groups: Sequence[tuple[IntArray, DoubleArray]], losses: DoubleArray) -> DoubleArray:
    return np.array([float(inner @ losses[group]) for group, inner in groups])


def group_losses(
    group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray, losses: DoubleArray
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            float(shares[group] @ losses[group] / shares[group].sum())
            if shares[group].sum() > 0
            else float("nan")
            for group in group_objective
        )
        for group_objective in group_objectives
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What a function is at a layer.

    Args:
        value: the function itself.
        worth: what the layer is judged by; larger is worse. Another number than the value where that is only a smooth stand-in.
        gradient: [c, d + 1].
        bends: [c] how sharply it bends along each axis.
        axes: [c, c] combinations of classes as columns; None where classes themselves are the axes.
    """

    value: float
    worth: float
    gradient: FloatArray
    bends: FloatArray
    axes: FloatArray | None = None


HALF_A_SAMPLE = 0.5
MIN_BEND = 1e-6
PATIENCE_STEPS = 20


class PenalisedLoss:
    """The loss of layers [c, d + 1] in given coordinates.

    Layers of classes that no sample has (`held`) stay as they are, and the mean of the other biases with them: otherwise the
    distance between the two would grow without end. Where no class is held, that mean changes nothing, and stays as well.

    Args:
        problem: what is trained on.
        coordinates: in which layers are given.
        group_objectives: groups of which only the worst counts.
        anchor: [c, d + 1] what the quadratic penalty pulls layers to, None for nothing.
        holds_bias: whether it pulls biases as well.
        workers: threads that chunks are shared out to.
    """

    def __init__(
        self,
        problem: Problem,
        coordinates: Coordinates,
        group_objectives: GroupObjectives,
        *,
        anchor: FloatArray | None = None,
        holds_bias: bool = False,
        workers: Executor | None = None,
    ) -> None:
        self._problem = problem
        self._coordinates = coordinates
        self._group_objectives = group_objectives
        self._held = held_classes(problem)
        self._is_centred = coordinates.subtracted is not None
        self._loss = ChunkedLoss(problem, coordinates.subtracted, workers)
        self._anchor = anchor
        self._holds_bias = holds_bias
        self.penalty = 0.0
        self.temperatures: tuple[float, ...] = ()

    def losses(self, layer: FloatArray) -> DoubleArray:
        """Return the loss [n] of each sample."""
        return self._loss.losses(*self._coordinates.plain(layer, is_centred=self._is_centred))

    def soften(self, layer: FloatArray, part: float) -> None:
        """Replace maxima over groups by smooth ones that lie at most a part above them."""
        self.temperatures = self._group_objectives.temperatures(self.losses(layer), part)

    def evaluate(self, layer: FloatArray) -> Evaluation:
        """Return value, gradient and curvature at a layer."""
        counts = self._problem.shares
        if self._group_objectives:
            value, counts = self._group_objectives.softened(self.losses(layer), self.temperatures)
        weights, bias = self._coordinates.plain(layer, is_centred=self._is_centred)
        losses, by_weights, by_bias, bends = self._loss.slopes(weights, bias, counts)
        worth = (
            self._group_objectives.worst(losses)
            if self._group_objectives
            else float(counts @ losses)
        )
        gradient = self._coordinates.slope(by_weights, by_bias, is_centred=self._is_centred)
        pulled = self._add_pull(layer, gradient)
        self._project(gradient)
        axes = None
        if bends.ndim > 1:
            along, combined = np.linalg.eigh(bends)
            bends, axes = np.maximum(along, 0.0), combined.astype(np.float32)
        return Evaluation(
            value=(value if self._group_objectives else worth) + pulled,
            worth=worth + pulled,
            gradient=gradient,
            bends=bends.astype(np.float32),
            axes=axes,
        )

    def precondition(self, embedding: FloatArray, here: Evaluation) -> FloatArray:
        """Return an embedding divided by how sharply the loss bends along classes and directions, were both independent."""
        bends, axes = here.bends[:, None], here.axes
        found = np.empty_like(embedding)
        np.multiply(bends, self._coordinates.spectrum, out=found[:, :-1])
        found[:, -1:] = bends
        found += np.float32(self.penalty + MIN_BEND)
        np.divide(embedding if axes is None else axes.T @ embedding, found, out=found)
        if axes is not None:
            found = axes @ found
        self._project(found)
        return found

    def _add_pull(self, layer: FloatArray, gradient: FloatArray) -> float:
        width = layer.shape[1] if self._holds_bias else layer.shape[1] - 1
        away = (
            layer[:, :width].copy()
            if self._anchor is None
            else layer[:, :width] - self._anchor[:, :width]
        )
        squares = np.einsum("ij,ij->i", away, away)
        away *= np.float32(self.penalty)
        gradient[:, :width] += away
        return 0.5 * self.penalty * float(squares.sum(dtype=np.float64))

    def _project(self, embedding: FloatArray) -> None:
        has_held = bool(self._held.any())
        if has_held:
            embedding[self._held] = 0.0
        if self._problem.task is Task.SINGLE_LABEL and (has_held or not self._holds_bias):
            embedding[~self._held, -1] -= embedding[~self._held, -1].mean()


def held_classes(problem: Problem) -> BoolArray:
    """Return which classes [c] nothing can be learnt of: no sample that counts has them, or, of labels, all do."""
    support = problem.support
    is_missing = support <= 0
    if problem.task is Task.SINGLE_LABEL:
        return np.asarray(is_missing)
    lacking = problem.shares @ ~problem.targets
    return np.asarray(is_missing | (lacking <= 0))


def first_layer(head: Head | None, problem: Problem, coordinates: Coordinates) -> FloatArray:
    """Return the layer to begin with: the given one, or nothing but low biases for classes that no sample has."""
    if head is not None:
        return coordinates.inwards(head)
    layer = np.zeros((problem.n_classes, problem.n_features + 1), np.float32)
    low = np.log(HALF_A_SAMPLE / (1 + len(problem.features)))
    layer[held_classes(problem), -1] = -low
    layer[problem.support <= 0, -1] = low
    return layer


class Best:
    """The best layer met: by the loss on validation samples if there are any, else by the loss that is minimised."""

    def __init__(self, validation: Problem | None, coordinates: Coordinates) -> None:
        self._validation = validation
        self._coordinates = coordinates
        self._loss = (
            ChunkedLoss(validation, coordinates.subtracted) if validation is not None else None
        )
        self._since = 0
        self.layer: FloatArray | None = None
        self.worth = float("inf")
        self.judged = float("inf")

    def goes_on(self, layer: FloatArray, worth: float) -> bool:
        """Take note of a layer; False once validation samples have not gained for a while."""
        judged = self._judge(layer, worth)
        self._since += 1
        if judged < self.judged or self.layer is None:
            self.layer, self.worth, self.judged, self._since = layer, worth, judged, 0
        return self._validation is None or self._since < PATIENCE_STEPS

    def _judge(self, layer: FloatArray, worth: float) -> float:
        if self._validation is None or self._loss is None:
            return worth
        plain = self._coordinates.plain(layer, is_centred=self._coordinates.subtracted is not None)
        return float(self._validation.shares @ self._loss.losses(*plain))


SUFFICIENT = 1e-4
MAX_TRIALS = 25
SHORTEST, LONGEST = 0.1, 0.5
ROUNDING = 2e-8
MAX_FLAT = 3
GAIN_SHARE = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Descent:
    """How a descent ended.

    Args:
        layer: where.
        n_steps: accepted steps.
        has_converged: whether it stopped by itself, because the gradient is small or single precision allows no more.
    """

    layer: FloatArray
    n_steps: int
    has_converged: bool


Pair = tuple[FloatArray, FloatArray, float]
"""A former step, the change of the gradient along it, and their product."""


def minimise(
    objective: PenalisedLoss,
    begin: FloatArray,
    watcher: Best,
    *,
    max_steps: int,
    tolerance: float,
    n_pairs: int = 10,
) -> Descent:
    """Descend from a layer until the gradient is small, nothing more can be gained, or the watcher has seen enough.

    Args:
        objective: what is minimised.
        begin: where to begin.
        watcher: sees every layer.
        max_steps: most steps.
        tolerance: it stops once no gradient component is larger, and no larger part of the value can be expected to be gained.
        n_pairs: how many former steps the second derivative is learnt from.
    """
    layer, n_flat = begin, 0
    pairs: deque[Pair] = deque(maxlen=n_pairs)
    here = objective.evaluate(layer)
    goes_on = watcher.goes_on(layer, here.worth)
    for n_steps in range(max_steps + 1):
        direction = _downhill(pairs, objective, here)
        gain = -0.5 * _product(here.gradient, direction)
        is_over = float(
            np.abs(here.gradient).max()
        ) <= tolerance and gain <= GAIN_SHARE * tolerance * abs(here.value)
        if n_flat >= MAX_FLAT or is_over:
            return Descent(layer=layer, n_steps=n_steps, has_converged=True)
        if not goes_on or n_steps == max_steps:
            break
        lower = _lower(objective, layer, here, direction)
        if lower is None:
            return Descent(layer=layer, n_steps=n_steps, has_converged=True)
        step, there = lower
        change = there.gradient - here.gradient
        bend = _product(step, change)
        if bend > np.finfo(np.float32).tiny * 1e6:
            pairs.append((step, change, bend))
        n_flat = n_flat + 1 if here.value - there.value <= ROUNDING * abs(here.value) else 0
        layer, here = layer + step, there
        goes_on = watcher.goes_on(layer, here.worth)
    return Descent(layer=layer, n_steps=n_steps, has_converged=False)


def _downhill(pairs: Sequence[Pair], objective: PenalisedLoss, here: Evaluation) -> FloatArray:
    """Return the downhill step that former steps suggest."""
    embedding, factors = here.gradient.copy(), []
    for step, change, bend in reversed(pairs):
        factors.append(_product(step, embedding) / bend)
        embedding -= np.float32(factors[-1]) * change
    embedding = objective.precondition(embedding, here)
    if pairs:
        _, change, bend = pairs[-1]
        embedding *= np.float32(bend / _product(change, objective.precondition(change, here)))
    for (step, change, bend), factor in zip(pairs, reversed(factors), strict=True):
        embedding += np.float32(factor - _product(change, embedding) / bend) * step
    return np.negative(embedding, out=embedding)


def _lower(
    objective: PenalisedLoss, layer: FloatArray, here: Evaluation, direction: FloatArray
) -> tuple[FloatArray, Evaluation] | None:
    """Return a step along a direction that goes down enough, None if single precision has none."""
    slope, length = _product(here.gradient, direction), 1.0
    if not slope < 0:
        return None
    for _ in range(MAX_TRIALS):
        step = direction * np.float32(length)
        there = objective.evaluate(layer + step)
        if there.value <= here.value + SUFFICIENT * length * slope:
            return step, there
        if -length * slope <= ROUNDING * abs(here.value):
            return None
        length *= _shorter(there.value - here.value, length * slope)
    return None


def _shorter(rise: float, slope: float) -> float:
    """Return by how much to shorten a step: to the lowest point of the parabola through both ends, within bounds."""
    bend = rise - slope
    return (
        min(LONGEST, max(SHORTEST, -slope / (2 * bend)))
        if np.isfinite(bend) and bend > 0
        else SHORTEST
    )


def _product(left: FloatArray, right: FloatArray) -> float:
    return float(np.vdot(left, right))
