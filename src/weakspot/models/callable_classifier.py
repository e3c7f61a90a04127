"""Any Python function as a classifier."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, ModelError, WeakspotError
from weakspot.core.heads import Head
from weakspot.core.registry import Sendable
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import (
    checked_features,
    checked_probabilities,
    parsed_class_names,
    parsed_task,
)
from weakspot.models.loading import LoadedOnce, file_hash, load_object, model_id
from weakspot.models.preprocessing import Preprocessing, preprocessing_from

ANSWERS = "probabilities [n, c], (probabilities, features), or a dict with 'probabilities' and perhaps 'features'"
_PAIR = 2


class CallableClassifier(Sendable):
    """A function that takes a list of RGB images, uint8 arrays [height, width, 3], and gives probabilities.

    It may give `probabilities`, `(probabilities, features)` or `{"probabilities": ..., "features": ...}`, one row an image.

    Args:
        target: `package.module:name` of a function, or of a class or factory whose result is called; or
        function: the function itself, in memory.
        arguments: keyword arguments; when given, the target is called with them once and must return the function.
        folder: where the target's module is looked for first.
        class_names: one name a column; by default the attribute `class_names` of the function, if it has one.
        task: `single-label` or `multi-label`.
        version: anything that changes when the model behind the function does; its own source file is hashed in any case.
        images: how images are resized, see `IMAGE_OPTIONS`; without `image_side` they come in full size. Pixels are never
            scaled or normalised.
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        function: Callable[..., Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        version: str = "",
        **images: Any,
    ) -> None:
        if (target is None) == (function is None):
            raise ConfigError(
                "Give either target = 'package.module:name' or a function.",
                where="classifier settings",
            )
        self._target = target
        self._given = function
        self._arguments = arguments
        self._folder = folder
        self._class_names = parsed_class_names(class_names)
        self.task = parsed_task(task)
        self._version = version
        self._preprocessing = _resizing(images)

    @LoadedOnce
    def classifier_id(self) -> str:
        named = (
            self._given
            if self._given is not None
            else load_object(str(self._target), folder=self._folder)
        )
        resizing = None if self._preprocessing is None else self._preprocessing.as_settings()
        return model_id(
            "callable",
            self._name,
            _source_hash(named),
            dict(self._arguments or {}),
            self._version,
            resizing,
            self.task,
        )

    @LoadedOnce
    def class_names(self) -> tuple[str, ...] | None:
        """The classes as given, or as the function's attribute `class_names` says."""
        return self._class_names or parsed_class_names(getattr(self._function, "class_names", None))

    @property
    def image_side(self) -> int | None:
        """Shortest image side that `prepare` needs; None for full size."""
        return None if self._preprocessing is None else self._preprocessing.needed_side

    @property
    def head(self) -> Head | None:
        """None: a function does not show its last layer."""
        return None

    def prepare(self, image: Image.Image) -> AnyArray:
        """Return the image as pixels [height, width, 3]."""
        return (
            np.asarray(image.convert("RGB"))
            if self._preprocessing is None
            else self._preprocessing.apply(image)
        )

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return what the function says, checked; it is never called with nothing."""
        if not prepared:
            return ClassifierOutput(
                probabilities=np.zeros((0, len(self.class_names or ())), np.float32)
            )
        try:
            answer = self._function(list(prepared))
        except WeakspotError:
            raise
        except Exception as error:
            raise ModelError(
                f"The function fails: {type(error).__name__}: {error}",
                where=self._name,
                given=f"{len(prepared)} images",
            ) from error
        probabilities, features = _parts(answer, where=self._name)
        return ClassifierOutput(
            probabilities=checked_probabilities(
                probabilities,
                n_rows=len(prepared),
                class_names=self.class_names,
                task=self.task,
                where=self._name,
            ),
            features=checked_features(features, n_rows=len(prepared), where=self._name),
        )

    @property
    def _name(self) -> str:
        return self._target or str(getattr(self._given, "__qualname__", type(self._given).__name__))

    @LoadedOnce
    def _function(self) -> Callable[..., Any]:
        found = (
            self._given
            if self._given is not None
            else load_object(str(self._target), folder=self._folder)
        )
        if isinstance(found, type) or self._arguments is not None:
            found = self._built(found)
        if not callable(found):
            raise ConfigError(
                "This cannot be called with images.", where=self._name, given=type(found).__name__
            )
        function: Callable[..., Any] = found
        return function

    def _built(self, factory: Any) -> Any:
        try:
            return factory(**dict(self._arguments or {}))
        except Exception as error:
            raise ModelError(
                f"The factory fails: {type(error).__name__}: {error}", where=self._name
            ) from error


def _resizing(images: Mapping[str, Any]) -> Preprocessing | None:
    """Return how images are resized, as plain pixels; None when they are not."""
    needless = sorted({"scale", "mean", "std", "layout"} & set(images))
    if needless:
        raise ConfigError(
            "The function gets plain pixels; it scales and normalises itself.",
            where="classifier settings",
            given=needless,
        )
    return preprocessing_from(images, dtype="uint8", layout="channels-last") if images else None


def _source_hash(named: Any) -> str:
    try:
        source = inspect.getsourcefile(
            named if inspect.isroutine(named) or isinstance(named, type) else type(named)
        )
    except TypeError:
        source = None
    return (
        file_hash(Path(source))
        if source is not None and Path(source).is_file()
        else "unknown source"
    )


def _parts(answer: Any, *, where: str) -> tuple[Any, Any]:
    if isinstance(answer, Mapping):
        if "probabilities" not in answer:
            raise ModelError(
                "The function's dict lacks 'probabilities'.",
                where=where,
                given=sorted(map(str, answer)),
                fix=f"Give {ANSWERS}.",
            )
        return answer["probabilities"], answer.get("features")
    if isinstance(answer, tuple):
        if len(answer) != _PAIR:
            raise ModelError(
                f"The function gives a tuple of {len(answer)}.", where=where, fix=f"Give {ANSWERS}."
            )
        return answer[0], answer[1]
    if answer is None:
        raise ModelError("The function gives nothing.", where=where, fix=f"Give {ANSWERS}.")
    return answer, None
