"""What a network gives to probabilities that can be trusted: the one place where answers are checked.

A network's raw answer is settled once on a probe, then applied to every batch.

A retrained head is put into a classifier's own last layer here too, and only that is changed.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, generator
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import Classifier, ClassifierOutput


def labels_in(text: str) -> tuple[str, ...] | None:
    """Return class names from a JSON or Python list or mapping, or one a line; None if there are none."""
    parsed: object = None
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        break
    if isinstance(parsed, Mapping):
        return labels_in_order(parsed)
    if isinstance(parsed, list | tuple):
        return tuple(str(name) for name in parsed)
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    return lines if len(lines) > 1 else None


def labels_in_order(numbered: Mapping[Any, Any]) -> tuple[str, ...] | None:
    """Return names from a mapping of number to name, if the numbers are 0, 1, 2 and so on.

    >>> labels_in_order({"1": "dog", "0": "cat"})
    ('cat', 'dog')
    """
    try:
        by_number = {int(number): str(name) for number, name in numbered.items()}
    except (TypeError, ValueError):
        return None
    return (
        tuple(by_number[number] for number in range(len(by_number)))
        if set(by_number) == set(range(len(by_number)))
        else None
    )


SCORE_KINDS = ("auto", "logits", "probabilities")
SUM_TOLERANCE = 1e-2
RANGE_TOLERANCE = 1e-4
_MATRIX = 2
_PAIR = 2


def softmax(logits: AnyArray) -> FloatArray:
    """Return the soft-max of every row, for logits of any size.

    >>> softmax(np.array([[1000.0, 1000.0]])).tolist()
    [[0.5, 0.5]]
    """
    values = np.asarray(logits, dtype=np.float64)
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


def sigmoid(logits: AnyArray) -> FloatArray:
    """Return the logistic function of every number, for logits of any size."""
    return np.asarray(
        0.5 * (1.0 + np.tanh(0.5 * np.asarray(logits, dtype=np.float64))), dtype=np.float32
    )


def parsed_task(task: str) -> Task:
    if task not in tuple(Task):
        raise ConfigError(
            "There is no such task.",
            where="task",
            given=task,
            fix=f"Choose one of {[item.value for item in Task]}.",
        )
    return Task(task)


def parsed_score_kind(kind: str) -> str:
    if kind not in SCORE_KINDS:
        raise ConfigError(
            "scores says what the model gives.",
            where="scores",
            given=kind,
            fix=f"Choose one of {list(SCORE_KINDS)}.",
        )
    return kind


def score_kinds(asked: str, known: str | None = None) -> tuple[str, ...]:
    """Return what scores can be: what the user says, else what the model says, else both, logits first."""
    if asked != "auto":
        return (asked,)
    return (known,) if known is not None else ("logits", "probabilities")


def parsed_class_names(names: Any) -> tuple[str, ...] | None:
    """Return class names as a tuple of distinct strings, or None."""
    if names is None or (isinstance(names, list | tuple) and not names):
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigError(
            "class_names is a list of strings, in the order of the model's outputs.", given=names
        )
    repeated = (
        sorted({name for name in names if list(names).count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if repeated:
        raise ConfigError(
            "Two outputs of the model have the same class name.",
            where="class_names",
            given=repeated,
        )
    return tuple(names)


def looks_like_probabilities(scores: AnyArray, task: Task) -> bool:
    """Return whether scores [n, c] are probabilities already."""
    values = np.asarray(scores, dtype=np.float64)
    if not ((values >= -RANGE_TOLERANCE) & (values <= 1 + RANGE_TOLERANCE)).all():
        return False
    return task is Task.MULTI_LABEL or bool(
        np.allclose(values.sum(axis=1), 1.0, atol=SUM_TOLERANCE)
    )


def probabilities_from(scores: AnyArray, kind: str, task: Task) -> FloatArray:
    """Return probabilities [n, c] of scores that are `logits` or `probabilities`."""
    if kind == "probabilities":
        return np.asarray(scores, dtype=np.float32)
    return sigmoid(scores) if task is Task.MULTI_LABEL else softmax(scores)


def checked_probabilities(
    values: Any, *, n_rows: int, class_names: tuple[str, ...] | None, task: Task, where: str
) -> FloatArray:
    """Return probabilities [n, c] as float32 if they are probabilities, rows summing to one for single-label tasks.

    Raises:
        ModelError: with the first thing that is wrong and the row it is wrong in.
    """
    matrix = _as_matrix(values, n_rows=n_rows, name="probabilities", where=where)
    if class_names is not None and matrix.shape[1] != len(class_names):
        raise ModelError(
            f"The classifier gives {matrix.shape[1]} probabilities an image, but there are {len(class_names)} class names.",
            where=where,
            fix="Give one class name an output, in the order of the outputs.",
        )
    outside = np.flatnonzero(
        ((matrix < -RANGE_TOLERANCE) | (matrix > 1 + RANGE_TOLERANCE)).any(axis=1)
    )
    if len(outside):
        raise ModelError(
            f"Probabilities of image {outside[0]} of the batch are outside 0 to 1.",
            where=where,
            given=matrix[outside[0]][:8].round(4).tolist(),
            fix="If the model gives logits, say scores = 'logits'.",
        )
    return (
        _summing_to_one(np.clip(matrix, 0.0, 1.0), where=where)
        if task is Task.SINGLE_LABEL
        else np.asarray(np.clip(matrix, 0.0, 1.0), dtype=np.float32)
    )


def checked_features(values: Any, *, n_rows: int, where: str) -> FloatArray | None:
    """Return features [n, d] as float32, or None when there are none."""
    if values is None:
        return None
    return np.asarray(
        _as_matrix(values, n_rows=n_rows, name="features", where=where), dtype=np.float32
    )


def head_explains(head: Head, features: AnyArray, scores: AnyArray, kind: str) -> bool:
    """Return whether a linear layer on features gives the model's scores, up to what half precision costs.

    A constant added to all logits of an image (as a log-soft-max does) changes no probability and is ignored.
    """
    if features.shape[1] != head.weights.shape[1]:
        return False
    logits = head.logits(np.asarray(features, dtype=np.float32))
    expected = (
        probabilities_from(logits, "logits", head.task) if kind == "probabilities" else logits
    )
    found = np.asarray(scores, dtype=np.float64)
    if expected.shape != found.shape:
        return False
    if kind == "logits" and head.task is Task.SINGLE_LABEL:
        expected = expected - expected.mean(axis=1, keepdims=True)
        found = found - found.mean(axis=1, keepdims=True)
    spread = float(np.abs(found - found.mean()).max())
    return bool(np.allclose(expected, found, atol=1e-2 * spread + 1e-6, rtol=0.0))


def is_single_output(n_columns: int, class_names: tuple[str, ...] | None, task: Task) -> bool:
    """Return whether a model tells two classes apart with one number, that of the second class."""
    return (
        n_columns == 1
        and task is Task.SINGLE_LABEL
        and class_names is not None
        and len(class_names) == _PAIR
    )


def paired_scores(scores: AnyArray, kind: str) -> AnyArray:
    """Return scores [n, 2] of a model that gives the second class only [n, 1]."""
    first = 1.0 - scores if kind == "probabilities" else np.zeros_like(scores)
    return np.concatenate([first, scores], axis=1)


def paired_head(head: Head) -> Head:
    """Return the head of two classes for a layer [1, d] that scores the second class only."""
    weights = np.concatenate([np.zeros_like(head.weights), head.weights])
    return Head(
        weights=weights, bias=np.concatenate([np.zeros_like(head.bias), head.bias]), task=head.task
    )


def _as_matrix(values: Any, *, n_rows: int, name: str, where: str) -> AnyArray:
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"The {name} are no table of numbers.", where=where, given=type(values).__name__
        ) from error
    if matrix.ndim != _MATRIX or len(matrix) != n_rows or matrix.shape[1] == 0:
        raise ModelError(
            f"The {name} have the wrong shape: one row an image is needed, and there are {n_rows} images.",
            where=where,
            given=matrix.shape,
        )
    broken = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(broken):
        raise ModelError(
            f"The {name} of image {broken[0]} of the batch hold NaN or infinity.", where=where
        )
    return matrix


def _summing_to_one(matrix: AnyArray, *, where: str) -> FloatArray:
    totals = matrix.sum(axis=1, keepdims=True)
    wrong = np.flatnonzero(np.abs(totals[:, 0] - 1.0) > SUM_TOLERANCE)
    if len(wrong):
        raise ModelError(
            f"Probabilities of image {wrong[0]} of the batch sum to {totals[wrong[0], 0]:.4g}, not to 1.",
            where=where,
            fix="Say task = 'multi-label' if labels do not exclude each other, or scores = 'logits' if these are logits.",
        )
    return np.asarray(matrix / totals, dtype=np.float32)


N_IMAGES = 2


def probe_images(height: int, width: int) -> list[Image.Image]:
    """Return two images of noise with different brightness."""
    noise = generator(0, "model probe").integers(
        0, 128, size=(N_IMAGES, height, width, 3), dtype=np.uint8
    )
    return [Image.fromarray(pixels + np.uint8(100 * number)) for number, pixels in enumerate(noise)]


NOT_EXPLAINED = "the last linear layer does not explain the scores that the model gives"


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerReader:
    """How the raw answers of one network are read.

    Args:
        kind: `logits` or `probabilities`.
        task: single-label or multi-label.
        class_names: the classes, or None.
        where: the model, for messages.
        is_single: whether the network gives one number for two classes.
        head: the last linear layer, checked against a probe.
        note: why there is no head, or None.
        n_classes: columns of the probabilities.
        n_features: columns of the features, None without.
    """

    kind: str
    task: Task
    class_names: tuple[str, ...] | None
    where: str
    is_single: bool = False
    head: Head | None = None
    note: str | None = None
    n_classes: int = 0
    n_features: int | None = None

    def empty(self) -> ClassifierOutput:
        features = None if self.n_features is None else np.zeros((0, self.n_features), np.float32)
        return ClassifierOutput(
            probabilities=np.zeros((0, self.n_classes), np.float32), features=features
        )

    def output(
        self, scores: AnyArray, features: AnyArray | None, *, n_rows: int
    ) -> ClassifierOutput:
        wide = paired_scores(scores, self.kind) if self.is_single else scores
        probabilities = checked_probabilities(
            probabilities_from(wide, self.kind, self.task),
            n_rows=n_rows,
            class_names=self.class_names,
            task=self.task,
            where=self.where,
        )
        return ClassifierOutput(
            probabilities=probabilities,
            features=checked_features(features, n_rows=n_rows, where=self.where),
        )


def settle(
    scores: AnyArray,
    features: AnyArray | None,
    head: Head | None,
    note: str | None,
    *,
    kinds: Sequence[str],
    task: Task,
    class_names: tuple[str, ...] | None,
    where: str,
) -> AnswerReader:
    """Decide once what a network gives, and whether its last layer is what it seems.

    Args:
        scores: what it gives for the probe images [n, c].
        features: of the probe images [n, d], or None.
        head: the layer that is thought to be the last one, or None.
        note: why there is none.
        kinds: what the scores can be, likeliest first; one entry when it is known.
        task: single-label or multi-label.
        class_names: the classes, or None.
        where: the model, for messages.

    Raises:
        ModelError: if the answer is no table with one column a class.
    """
    if scores.ndim != _MATRIX:
        raise ModelError(
            "The model must give one row of scores an image.", where=where, given=scores.shape
        )
    is_single = is_single_output(scores.shape[1], class_names, task)
    if head is not None and is_single:
        head = paired_head(head)
    kind = None
    if head is not None and features is not None:
        kind = _explained_kind(scores, features, head, kinds, is_single=is_single)
    if head is not None and kind is None:
        head, note = None, NOT_EXPLAINED
    reader = AnswerReader(
        kind=kind or _kind_by_numbers(scores, kinds, task, is_single=is_single),
        task=task,
        class_names=class_names,
        where=where,
        is_single=is_single,
        head=head,
        note=note,
    )
    answer = reader.output(scores, features, n_rows=len(scores))
    n_features = None if answer.features is None else answer.features.shape[1]
    return replace(reader, n_classes=answer.probabilities.shape[1], n_features=n_features)


def _explained_kind(
    scores: AnyArray, features: AnyArray, head: Head, kinds: Sequence[str], *, is_single: bool
) -> str | None:
    for kind in kinds:
        wide = paired_scores(scores, kind) if is_single else scores
        if head_explains(head, features, wide, kind):
            return kind
    return None


def _kind_by_numbers(scores: AnyArray, kinds: Sequence[str], task: Task, *, is_single: bool) -> str:
    if len(kinds) == 1:
        return kinds[0]
    return (
        "probabilities"
        if looks_like_probabilities(scores, Task.MULTI_LABEL if is_single else task)
        else "logits"
    )


USE_HEAD_FILE = "Use repaired_head.safetensors on the features instead."
_SLACK = 8.0
"""How many roundings of the sum of absolute products a score may be away from the head's own."""


def fitted_head(
    head: Head, own: Head | None, note: str | None, *, is_single: bool, where: str
) -> Head:
    """Return a head as the rows of a classifier's own last layer.

    Args:
        head: one row a class.
        own: the classifier's own, None if it is not known.
        note: why it is not known.
        is_single: whether the layer has one row for two classes, that of the second.
        where: the model, for messages.

    Raises:
        ModelError: if the classifier's layer is not known or of another shape.
    """
    if own is None:
        reason = note or "its last linear layer is not known"
        raise ModelError(
            f"The classifier cannot be written with another last layer: {reason}.",
            where=where,
            fix=USE_HEAD_FILE,
        )
    if (
        head.weights.shape != own.weights.shape
        or head.bias.shape != own.bias.shape
        or head.task is not own.task
    ):
        raise ModelError(
            f"The head does not fit the classifier, whose last layer is {own.task.value} with {own.weights.shape[0]} classes and "
            f"{own.weights.shape[1]} features.",
            where=where,
            given=f"{head.task.value} {head.weights.shape} with a bias {head.bias.shape}",
            fix="Retrain the head on the features of this classifier.",
        )
    if not (np.isfinite(head.weights).all() and np.isfinite(head.bias).all()):
        raise ModelError("The head holds NaN or infinity.", where=where, fix="Train it again.")
    return difference_head(head) if is_single else head


def difference_head(head: Head) -> Head:
    """Return the one row of a head for two classes that scores the second against the first."""
    weights, bias = head.weights.astype(np.float64), head.bias.astype(np.float64)
    return replace(
        head,
        weights=np.asarray(weights[1:] - weights[:1], np.float32),
        bias=np.asarray(bias[1:] - bias[:1], np.float32),
    )


def in_kind(values: AnyArray, kind: Any, *, where: str) -> AnyArray:
    """Return numbers in another kind of number, rounded.

    Raises:
        ModelError: if they are too large for it.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(kind)
    if not np.isfinite(rounded.astype(np.float64)).all():
        raise too_large(values, np.dtype(kind).name, where=where)
    return rounded


def too_large(values: AnyArray, kind: str, *, where: str) -> ModelError:
    """Return the error for a head whose numbers the layer's kind of number cannot hold."""
    return ModelError(
        f"The head has numbers that are too large for {kind}, in which the layer is kept.",
        where=where,
        given=float(np.abs(values).max()),
        fix="Retrain with a larger penalty, or export the classifier in float32.",
    )


def check_repaired(
    before: Classifier,
    after: Classifier,
    head: Head,
    prepared: Sequence[AnyArray],
    *,
    epsilon: float,
    is_exact: bool = True,
) -> None:
    """Compare a classifier that was read back with the one it was made from.

    Args:
        before: the user's classifier.
        after: the one that was written with the head.
        head: the head, one row a class.
        prepared: inputs.
        epsilon: relative rounding of the numbers that the layer is kept and run in.
        is_exact: whether features must be the same bit for bit.

    Raises:
        ModelError: if features changed, or probabilities are not those of the head.
    """
    problem = _unlike(after.head, head, epsilon)
    if problem is not None:
        raise not_verified(problem)
    old, new = before.classify(prepared), after.classify(prepared)
    features = _same_features(old, new, is_exact=is_exact)
    slack = float(score_slack(head, features, epsilon).max(initial=0.0))
    if not np.allclose(
        new.probabilities, head.probabilities(features), atol=2 * slack + 1e-5, rtol=0.0
    ):
        raise not_verified("its probabilities are not those of the head")


def score_slack(head: Head, features: AnyArray, epsilon: float) -> AnyArray:
    """Return how far scores [n, c] may be from the head's own logits, given how numbers are rounded."""
    sums = np.abs(features).astype(np.float64) @ np.abs(head.weights).T.astype(np.float64) + np.abs(
        head.bias
    )
    return np.asarray(_SLACK * max(epsilon, float(np.finfo(np.float32).eps)) * sums)


def not_verified(problem: str) -> ModelError:
    """Return the error for a file that was written, read back, and found to be wrong; it is not kept."""
    return ModelError(
        f"What was written was read back and is not right, so it was not kept: {problem}.",
        fix=USE_HEAD_FILE,
    )


def _same_features(old: ClassifierOutput, new: ClassifierOutput, *, is_exact: bool) -> AnyArray:
    if old.features is None or new.features is None or old.features.shape != new.features.shape:
        raise not_verified("the features under the layer are gone")
    scale = float(np.abs(old.features).max(initial=0.0))
    is_same = np.array_equal(old.features, new.features)
    if not is_same and (
        is_exact or not np.allclose(old.features, new.features, atol=1e-5 * scale, rtol=1e-5)
    ):
        raise not_verified("the features under the layer changed")
    return new.features


def _unlike(found: Head | None, head: Head, epsilon: float) -> str | None:
    if found is None or found.weights.shape != head.weights.shape:
        return "its last layer does not give its probabilities"
    is_paired = not found.weights[0].any() and not found.bias[0].any() and len(found.bias) == 2  # noqa: PLR2004 - two classes
    expected = paired_head(difference_head(head)) if is_paired else head
    pairs = ((found.weights, expected.weights), (found.bias, expected.bias))
    largest = float(
        np.abs(expected.weights).max(initial=0.0) + np.abs(expected.bias).max(initial=0.0)
    )
    is_same = all(
        np.allclose(one, other, rtol=4 * epsilon, atol=4 * epsilon * largest)
        for one, other in pairs
    )
    return None if is_same else "its last layer does not hold the numbers of the head"
