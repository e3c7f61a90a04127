"""A scikit-learn classifier or pipeline on embeddings that an embedder made, and its last linear step as a head."""

import copy
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, generator
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.core.registry import Sendable
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import (
    check_repaired,
    checked_features,
    checked_probabilities,
    difference_head,
    fitted_head,
    head_explains,
    parsed_class_names,
    parsed_task,
    sigmoid,
    softmax,
)
from weakspot.models.files import new_files
from weakspot.models.loading import LoadedOnce, model_id, reloaded, require_library

_BINARY = 2


def raw_probabilities(model: Any, embeddings: FloatArray, task: Task) -> AnyArray:
    """Return probabilities [n, c] in the model's own order of classes.

    A model without predict_proba (linear support vectors) gets the soft-max or sigmoid of its decision function, which ranks like
    it but is not calibrated.
    """
    if hasattr(model, "predict_proba"):
        given = model.predict_proba(embeddings)
        if isinstance(given, list):
            return _from_list(given, model)
        return np.asarray(given)
    decisions = np.asarray(model.decision_function(embeddings))
    if task is Task.MULTI_LABEL:
        return sigmoid(decisions if decisions.ndim == _BINARY else decisions[:, None])
    if decisions.ndim == 1:
        decisions = np.stack([np.zeros_like(decisions), decisions], axis=1)
    return softmax(decisions)


def column_names(
    model: Any, task: Task, class_names: tuple[str, ...] | None = None
) -> tuple[str, ...] | None:
    """Return what the model calls its columns; None where it only numbers them.

    Args:
        model: a fitted model.
        task: single-label or multi-label.
        class_names: the classes, if known; a model that was fitted on numbers is then taken to number these.
    """
    classes = getattr(model, "classes_", None)
    if task is Task.MULTI_LABEL or classes is None or isinstance(classes, list):
        return None
    if all(isinstance(name, str) for name in classes):
        return tuple(str(name) for name in classes)
    if class_names is not None and set(np.asarray(classes).tolist()) <= set(
        range(len(class_names))
    ):
        return tuple(class_names[int(number)] for number in classes)
    return None


def in_class_order(
    table: AnyArray,
    columns: Sequence[str] | None,
    class_names: tuple[str, ...] | None,
    *,
    where: str,
) -> AnyArray:
    """Return columns in the order of the classes; a class that the model never saw gets zeros."""
    if columns is None or class_names is None or tuple(columns) == class_names:
        return table
    unknown = [name for name in columns if name not in class_names]
    if unknown:
        raise ModelError(
            "The model was fitted on classes that class_names lacks.",
            where=where,
            given=unknown[:5],
            fix="Add them to class_names.",
        )
    ordered = np.zeros((len(table), len(class_names)), dtype=table.dtype)
    for number, name in enumerate(columns):
        ordered[:, class_names.index(name)] = table[:, number]
    return ordered


def _from_list(given: list[AnyArray], model: Any) -> AnyArray:
    """Return the probability of "yes" from one table a label; a label that was always the same has one column only."""
    classes = getattr(model, "classes_", None)
    columns = []
    for number, table in enumerate(given):
        if table.shape[1] == _BINARY:
            columns.append(table[:, 1])
            continue
        only = classes[number][0] if isinstance(classes, list) else 0
        columns.append(np.full(len(table), float(bool(only))))
    return np.stack(columns, axis=1)


PURPOSE = "scikit-learn classifiers in files"


def with_head(
    model: Any, head: Head, columns: Sequence[str] | None, class_names: tuple[str, ...] | None
) -> Any:
    """Return a copy of a model whose last step has the numbers of a head; the model itself stays as it is.

    Args:
        model: a fitted model or pipeline.
        head: one row a class, in the order of `class_names`.
        columns: the classes in the model's own order, None if it has no other.
        class_names: the classes in the order of the head.
    """
    other = copy.deepcopy(model)
    step = last_step(other)
    order = (
        range(len(head.bias))
        if columns is None or class_names is None
        else [class_names.index(name) for name in columns]
    )
    rows = Head(weights=head.weights[list(order)], bias=head.bias[list(order)], task=head.task)
    if hasattr(step, "estimators_"):
        for number, each in enumerate(np.ravel(step.estimators_)):
            _set(each, rows.weights[number : number + 1], rows.bias[number : number + 1])
        return other
    has_one_row = (
        len(np.atleast_2d(step.coef_.toarray() if hasattr(step.coef_, "toarray") else step.coef_))
        == 1
    )
    if has_one_row and len(rows.bias) > 1:
        rows = difference_head(rows)
    _set(step, rows.weights, rows.bias)
    return other


def save_skops(path: Path, model: Any) -> Path:
    """Write a model as a .skops file and return the path.

    Raises:
        ModelError: if skops cannot hold the model.
    """
    skops = require_library("skops.io", extra="sklearn", purpose=PURPOSE)
    try:
        skops.dump(model, str(path))
    except Exception as error:
        raise ModelError(
            f"skops cannot write the model: {type(error).__name__}: {error}",
            given=type(model).__name__,
        ) from error
    return path


def types_to_trust(path: Path) -> list[str]:
    """Return the types in a .skops file that its reader must name as trusted."""
    skops = require_library("skops.io", extra="sklearn", purpose=PURPOSE)
    return list(skops.get_untrusted_types(file=str(path)))


def _set(step: Any, weights: AnyArray, bias: AnyArray) -> None:
    old = step.coef_.toarray() if hasattr(step.coef_, "toarray") else np.asarray(step.coef_)
    numbers = weights.astype(old.dtype)
    step.coef_ = numbers.reshape(old.shape) if old.size == numbers.size else numbers
    step.intercept_ = bias.astype(old.dtype)


def linear_head(model: Any, task: Task) -> Head | None:
    """Return the last step as a linear layer if it looks like one; the caller must check it against the model's answer."""
    last = last_step(model)
    if hasattr(last, "estimators_"):
        rows = [
            (_coefficients(each), getattr(each, "intercept_", 0.0))
            for each in np.ravel(last.estimators_)
        ]
        if any(weights is None for weights, _ in rows):
            return None
        weights = np.concatenate([weights for weights, _ in rows if weights is not None])
        bias = np.concatenate(
            [np.broadcast_to(np.ravel(bias), (1,)) for _, bias in rows if np.size(bias) == 1]
            or [np.zeros(0)]
        )
    else:
        found = _coefficients(last)
        if found is None:
            return None
        weights, bias = (
            found,
            np.broadcast_to(np.ravel(getattr(last, "intercept_", 0.0)), (len(found),)),
        )
    if weights.ndim != 2 or len(bias) != len(weights):  # noqa: PLR2004 - a table
        return None
    return _as_head(weights, bias, task)


def last_step(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def features_of(model: Any, embeddings: FloatArray) -> AnyArray:
    """Return what the last step sees [n, d]."""
    seen: Any = embeddings
    for _, step in model.steps[:-1] if hasattr(model, "steps") else ():
        if step is not None and step != "passthrough":
            seen = step.transform(seen)
    return np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=np.float32)


def _coefficients(step: Any) -> AnyArray | None:
    found = getattr(step, "coef_", None)
    if found is None or hasattr(step, "dual_coef_"):
        return None
    return np.atleast_2d(np.asarray(found.toarray() if hasattr(found, "toarray") else found))


def _as_head(weights: AnyArray, bias: AnyArray, task: Task) -> Head:
    if task is Task.SINGLE_LABEL and len(weights) == 1:
        weights = np.concatenate([np.zeros_like(weights), weights])
        bias = np.concatenate([np.zeros(1), bias])
    return Head(
        weights=np.asarray(weights, np.float32), bias=np.asarray(bias, np.float32), task=task
    )


PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".joblib", ".sav"})


def load_skops(path: Path, trusted_types: Sequence[str] = ()) -> Any:
    """Load a .skops file that holds only types known to be harmless, or named as trusted.

    Raises:
        ModelError: if it is a pickle, unreadable, or holds other types; those are named.
    """
    if not path.is_file():
        raise ModelError("There is no such model file.", where=str(path), fix="Correct the path.")
    if path.suffix.lower() in PICKLE_SUFFIXES or not zipfile.is_zipfile(path):
        raise ModelError(
            "This file is a pickle or no model file; opening a pickle can run any code it holds, so weakspot does not.",
            where=str(path),
            fix="Where you trust it, load it yourself and save it with skops.io.dump(model, 'model.skops').",
        )
    skops = require_library(
        "skops.io", extra="sklearn", purpose="scikit-learn classifiers in files"
    )
    unknown = sorted(set(_unknown_types(skops, path)) - set(trusted_types))
    if unknown:
        raise ModelError(
            f"The file holds types that are not known to be harmless: {', '.join(unknown)}.",
            where=str(path),
            fix=f"If you know them, set trusted_types = {unknown}.",
        )
    try:
        return skops.load(str(path), trusted=list(trusted_types))
    except Exception as error:
        raise ModelError(
            f"skops cannot load the file: {type(error).__name__}: {error}", where=str(path)
        ) from error


def _unknown_types(skops: Any, path: Path) -> list[str]:
    try:
        return list(skops.get_untrusted_types(file=str(path)))
    except Exception as error:
        raise ModelError(
            "This is no .skops file, or it is cut short.", where=str(path), fix="Save it again."
        ) from error


NO_HEAD = "the last step is not a linear layer whose soft-max or sigmoid gives the probabilities"
N_PROBES = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class _Loaded:
    model: Any
    class_names: tuple[str, ...] | None
    head: Head | None
    n_features: int


class SklearnClassifier(Sendable):
    """A fitted scikit-learn classifier or pipeline that reads embeddings of an embedder, not images.

    Args:
        model: the fitted object in memory; or
        path: a .skops file.
        space: name of the embeddings it reads.
        class_names: the classes in the order wanted; by default those the model was fitted on, if they are strings.
        task: `single-label` or `multi-label`.
        trusted_types: further types that the .skops file may hold, by full name.
    """

    reads = "embeddings"

    def __init__(
        self,
        *,
        model: Any = None,
        path: str | Path | None = None,
        space: str = "clip",
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        trusted_types: Sequence[str] = (),
    ) -> None:
        if (model is None) == (path is None):
            raise ConfigError(
                "Give either a fitted model or the path of a .skops file.",
                where="classifier settings",
            )
        self._given = model
        self._path = None if path is None else Path(path)
        self.space = space
        self._class_names = parsed_class_names(class_names)
        self.task = parsed_task(task)
        self._trusted_types = tuple(trusted_types)

    @LoadedOnce
    def classifier_id(self) -> str:
        import joblib

        name = self._path.name if self._path is not None else type(self._given).__name__
        return model_id(
            "sklearn",
            name,
            joblib.hash(self._loaded.model),
            self.space,
            self.task,
            self.class_names,
        )

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return self._loaded.class_names

    @property
    def image_side(self) -> int | None:
        """None: it reads embeddings."""
        return None

    @property
    def head(self) -> Head | None:
        """The last step as a linear layer, checked against the model's own answer; None where it is not one."""
        return self._loaded.head

    @property
    def features_note(self) -> str | None:
        return NO_HEAD if self._loaded.head is None else None

    def prepare(self, image: Image.Image) -> AnyArray:
        """Refuse: this classifier reads embeddings of the space `space`."""
        raise ModelError(
            f"This classifier reads embeddings of the space {self.space!r}, not images.",
            where=self._where,
            given=f"an image of {image.width} x {image.height}",
            fix="Run weakspot embed first.",
        )

    def classify(self, prepared: Sequence[AnyArray] | FloatArray) -> ClassifierOutput:
        """Return probabilities of embeddings [n, d], and what the last linear step sees as features."""
        loaded = self._loaded
        embeddings = (
            np.asarray(prepared, dtype=np.float32).reshape(len(prepared), -1)
            if len(prepared)
            else None
        )
        if embeddings is None:
            columns = 0 if loaded.class_names is None else len(loaded.class_names)
            return ClassifierOutput(probabilities=np.zeros((0, columns), np.float32))
        if embeddings.shape[1] != loaded.n_features:
            raise ModelError(
                f"The model was fitted on embeddings of length {loaded.n_features}.",
                where=self._where,
                given=embeddings.shape,
                fix=f"Embed with the encoder it was fitted on, and name its embeddings with space (now {self.space!r}).",
            )
        features = features_of(loaded.model, embeddings) if loaded.head is not None else None
        return ClassifierOutput(
            probabilities=self._probabilities(loaded.model, loaded.class_names, embeddings),
            features=checked_features(features, n_rows=len(embeddings), where=self._where),
        )

    def write_repaired(self, head: Head, folder: Path) -> tuple[Path, ...]:
        """Write the model with these coefficients in its last step as a .skops file into a folder.

        Raises:
            ModelError: if a file is there already, the last step is no linear layer, or what was written does not hold when read
                back.
        """
        loaded = self._loaded
        note = (
            None
            if loaded.head is not None
            else f"{NO_HEAD} ({type(last_step(loaded.model)).__name__})"
        )
        rows = fitted_head(head, loaded.head, note, is_single=False, where=self._where)
        name = self._path.stem if self._path is not None else type(self._given).__name__
        columns = column_names(loaded.model, self.task, loaded.class_names)
        with new_files(folder) as staging:
            model = with_head(loaded.model, rows, columns, loaded.class_names)
            path = save_skops(staging / f"{name}_repaired.skops", model)
            trusted = (*self._trusted_types, *(types_to_trust(path) if self._path is None else ()))
            after = reloaded(self, _given=None, _path=path, _trusted_types=trusted)
            check_repaired(
                self,
                after,
                head,
                list(_probes(loaded.n_features)),
                epsilon=float(np.finfo(np.float32).eps),
            )
        return (folder / path.name,)

    @property
    def _where(self) -> str:
        return str(self._path) if self._path is not None else type(self._given).__name__

    def _probabilities(
        self, model: Any, names: tuple[str, ...] | None, embeddings: FloatArray
    ) -> FloatArray:
        columns = column_names(model, self.task, names)
        table = in_class_order(
            raw_probabilities(model, embeddings, self.task), columns, names, where=self._where
        )
        return checked_probabilities(
            table, n_rows=len(embeddings), class_names=names, task=self.task, where=self._where
        )

    @LoadedOnce
    def _loaded(self) -> _Loaded:
        model = self._given if self._path is None else load_skops(self._path, self._trusted_types)
        n_features = getattr(model, "n_features_in_", None)
        if (
            not (hasattr(model, "predict_proba") or hasattr(model, "decision_function"))
            or n_features is None
        ):
            raise ModelError(
                "This is no fitted scikit-learn classifier.",
                where=self._where,
                given=type(model).__name__,
                fix="Fit it; it must have predict_proba or decision_function.",
            )
        names = self._class_names or parsed_class_names(column_names(model, self.task))
        return _Loaded(
            model=model,
            class_names=names,
            head=self._head(model, names, int(n_features)),
            n_features=int(n_features),
        )

    def _head(self, model: Any, names: tuple[str, ...] | None, n_features: int) -> Head | None:
        head, columns = linear_head(model, self.task), column_names(model, self.task, names)
        if head is None or (names is not None and len(names) != len(head.bias)):
            return None
        table = in_class_order(
            np.column_stack([head.bias, head.weights]).T, columns, names, where=self._where
        ).T
        ordered = Head(
            weights=np.ascontiguousarray(table[:, 1:]), bias=table[:, 0].copy(), task=self.task
        )
        embeddings = _probes(n_features)
        expected = self._probabilities(model, names, embeddings)
        return (
            ordered
            if head_explains(ordered, features_of(model, embeddings), expected, "probabilities")
            else None
        )


def _probes(n_features: int) -> FloatArray:
    return generator(0, "vector probe").standard_normal((N_PROBES, n_features)).astype(np.float32)
