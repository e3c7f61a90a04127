"""A scikit-learn classifier or pipeline on embeddings that an embedder made."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.class_scores import (
    checked_features,
    checked_probabilities,
    head_explains,
    parsed_class_names,
    parsed_task,
)
from weakspot.backends.head_fitting import check_repaired, fitted_head
from weakspot.backends.loaded_once import LoadedOnce, reloaded
from weakspot.backends.model_hash import model_id
from weakspot.backends.new_files import new_files
from weakspot.backends.optional_library import require_library
from weakspot.backends.sklearn.answer import column_names, in_class_order, raw_probabilities
from weakspot.backends.sklearn.head import (
    features_of,
    last_step,
    linear_head,
    save_skops,
    types_to_trust,
    with_head,
)
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.core.seeding import generator
from weakspot.core.sending import Sendable

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
