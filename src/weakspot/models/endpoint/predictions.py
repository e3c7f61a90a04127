"""Classifiers and segmenters behind an HTTP endpoint: what is sent to them and what may come back.

docs/reference/endpoint.md shows it.
"""

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
from PIL import Image
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from weakspot.core.arrays import AnyArray, FloatArray, generator
from weakspot.core.bounds import Count, Fraction
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput, ObjectMask
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.models.class_scores import (
    checked_features,
    checked_probabilities,
    parsed_class_names,
    parsed_task,
)
from weakspot.models.endpoint.requests import Endpoint, Retries, Seconds, encoded, smaller

N_SHOWN = 5


def _number(value: Any) -> Any:
    """Refuse what pydantic would turn into a number: true, "0.5", NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no number")
    if not math.isfinite(value):
        raise ValueError("is NaN or infinite")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Result = TypeVar("Result")


class Predictions(BaseModel, Generic[Result]):
    """The whole answer of a service of ours; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    predictions: list[Result]


class Prediction(BaseModel):
    """What the endpoint says of one image.

    Args:
        probabilities: probability by class name, or a list in the order of `class_names`.
        features: input of the last linear layer, if the endpoint gives it.
    """

    model_config = ConfigDict(frozen=True)

    probabilities: dict[str, Number] | list[Number]
    features: list[Number] | None = None


def request_body(encoded: Sequence[AnyArray]) -> dict[str, Any]:
    return {
        "instances": [
            {"image": {"b64": base64.b64encode(image.tobytes()).decode("ascii")}}
            for image in encoded
        ]
    }


def parse_answer(content: bytes, *, n_images: int, where: str) -> tuple[Prediction, ...]:
    """Return the predictions in an answer.

    Raises:
        ModelError: if the answer is no JSON, does not fit the schema, or has another number of predictions.
    """
    try:
        predictions = Predictions[Prediction].model_validate_json(content).predictions
    except ValidationError as error:
        raise ModelError(
            f"The endpoint's answer does not fit the schema: {_problems(error)}",
            where=where,
            given=content[:80].decode("utf-8", "replace"),
            fix='Answer {"predictions": [{"probabilities": {...}}]}; see docs/reference/endpoint.md.',
        ) from error
    if len(predictions) != n_images:
        raise ModelError(
            f"The endpoint gave {len(predictions)} predictions for {n_images} images.", where=where
        )
    return tuple(predictions)


def probability_rows(
    predictions: Sequence[Prediction], class_names: tuple[str, ...] | None, *, where: str
) -> list[Sequence[float]]:
    """Return one list of probabilities an image, in the order of the classes."""
    return [_row(prediction.probabilities, class_names, where=where) for prediction in predictions]


def feature_rows(predictions: Sequence[Prediction], *, where: str) -> list[list[float]] | None:
    rows = [prediction.features for prediction in predictions if prediction.features is not None]
    if not rows:
        return None
    if len(rows) != len(predictions) or len({len(row) for row in rows}) != 1:
        raise ModelError(
            "The endpoint gave features for some images only, or of different lengths.", where=where
        )
    return rows


def _row(
    probabilities: Mapping[str, float] | Sequence[float],
    class_names: tuple[str, ...] | None,
    *,
    where: str,
) -> Sequence[float]:
    if not isinstance(probabilities, Mapping):
        if class_names is not None and len(probabilities) != len(class_names):
            raise ModelError(
                f"The endpoint gave {len(probabilities)} probabilities for {len(class_names)} classes.",
                where=where,
            )
        return probabilities
    if class_names is None:
        raise ModelError(
            "The endpoint names its classes, but their order is not known.",
            where=where,
            fix=f"Set class_names = {sorted(probabilities)}.",
        )
    missing = [name for name in class_names if name not in probabilities]
    unknown = sorted(set(probabilities) - set(class_names))
    if missing or unknown:
        raise ModelError(
            f"The endpoint's classes are not the configured ones: missing {missing[:N_SHOWN]}, unknown {unknown[:N_SHOWN]}.",
            where=where,
        )
    return [probabilities[name] for name in class_names]


def _problems(error: ValidationError) -> str:
    lines = [
        f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
        for item in error.errors()[:N_SHOWN]
    ]
    return "; ".join(lines)


ENCODINGS: dict[str, dict[str, Any]] = {
    "png": {"format": "PNG", "compress_level": 1},
    "jpeg": {"format": "JPEG", "quality": 95},
}


@dataclass(kw_only=True, eq=False)
class EndpointClassifier(Endpoint):
    """A classifier behind an HTTP endpoint that speaks the JSON of docs/reference/endpoint.md.

    Args:
        class_names: the classes; needed when the endpoint answers by name, otherwise the order of its lists.
        task: `single-label` or `multi-label`.
        image_side: images are sent with their shorter side resized to this; by default in full size.
        encoding: `png` (lossless) or `jpeg`.
        batch_size: images a request.
        seed: of the random part of the waits.
    """

    class_names: tuple[str, ...] | None = None
    task: Task = Task.SINGLE_LABEL
    image_side: Count | None = None
    encoding: str = "png"
    batch_size: Count = 8
    timeout_seconds: Seconds = 30.0
    n_retries: Retries = 5
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.class_names, self.task = parsed_class_names(self.class_names), parsed_task(self.task)
        self._n_requests = 0

    @property
    def classifier_id(self) -> str:
        return self._identity("endpoint", self.version, self.image_side, self.encoding, self.task)

    @property
    def head(self) -> Head | None:
        """None: an endpoint does not show its last layer."""
        return None

    def prepare(self, image: Image.Image) -> AnyArray:
        sent = smaller(image, self.image_side)
        return np.frombuffer(encoded(sent, **ENCODINGS[self.encoding]), dtype=np.uint8)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return what the endpoint says, checked; several requests are under way at a time."""
        if not prepared:
            return ClassifierOutput(
                probabilities=np.zeros((0, len(self.class_names or ())), np.float32)
            )
        chunks = [
            prepared[start : start + self.batch_size]
            for start in range(0, len(prepared), self.batch_size)
        ]
        numbers = range(self._n_requests, self._n_requests + len(chunks))
        self._n_requests += len(chunks)
        predictions = list(chain.from_iterable(self.ask_all(self._ask, chunks, numbers)))
        probabilities = checked_probabilities(
            probability_rows(predictions, self.class_names, where=self.where),
            n_rows=len(prepared),
            class_names=self.class_names,
            task=self.task,
            where=self.where,
        )
        features = checked_features(
            feature_rows(predictions, where=self.where), n_rows=len(prepared), where=self.where
        )
        return ClassifierOutput(probabilities=probabilities, features=features)

    def _ask(self, encoded: Sequence[AnyArray], number: int) -> tuple[Prediction, ...]:
        jitter = generator(self.seed, "endpoint", str(number))
        content = self.post(request_body(encoded), jitter=jitter)
        return parse_answer(content, n_images=len(encoded), where=self.where)

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if self.encoding not in ENCODINGS:
            problems.append(f"encoding: {self.encoding!r} is none of {', '.join(ENCODINGS)}")
        return problems


NOTHING = "the service finds no such object"
WHITE = 255.0


class _Segmented(BaseModel):
    """What the service says of one image: a mask, white where the object is, and how sure it is of it."""

    model_config = ConfigDict(frozen=True)

    mask: dict[Literal["b64"], str] | None
    quality: float = Field(default=1.0, ge=0.0, le=1.0, strict=True)


@dataclass(kw_only=True, eq=False)
class EndpointSegmenter(Endpoint):
    """One request an image to a service that answers with the mask of the object, in the JSON of docs/reference/endpoint.md.

    Args:
        image_side: images are sent with their shorter side resized to this; none for full size.
        least_quality: a mask whose quality is lower is refused.
    """

    image_side: Count | None = 512
    least_quality: Fraction = 0.6
    n_retries: Retries = 5

    @property
    def segmenter_id(self) -> str:
        asked = (self.version, self.image_side, self.least_quality)
        return self._identity("endpoint-segmenter", *asked)

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where the service finds nothing or is not sure; several requests are under way at a time."""
        if len(images) != len(class_names):
            raise ConfigError(
                "Every image needs the name of its class.", given=(len(images), len(class_names))
            )
        return self.ask_all(self._mask, images, class_names) if images else []

    def _mask(self, image: Image.Image, class_name: str) -> ObjectMask:
        sent = encoded(smaller(image, self.image_side), format="PNG", compress_level=1)
        text = base64.b64encode(sent).decode("ascii")
        body = {"instances": [{"image": {"b64": text}, "class": class_name}]}
        found = self._parse(self.post(body, jitter=generator(0, "endpoint-segmenter", class_name)))
        if found.mask is None:
            empty = np.zeros((image.height, image.width), dtype=np.float32)
            return ObjectMask(coverage=empty, quality=found.quality, refused=NOTHING)
        coverage = self._coverage(found.mask["b64"], image.size)
        refused = ""
        if not coverage.any():
            refused = NOTHING
        elif found.quality < self.least_quality:
            refused = f"the service gives its mask the quality {found.quality:.2f}"
        return ObjectMask(coverage=coverage, quality=found.quality, refused=refused)

    def _parse(self, content: bytes) -> _Segmented:
        try:
            (segmented,) = Predictions[_Segmented].model_validate_json(content).predictions
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._unfit(f"{where}: {first['msg']}", content) from error
        except ValueError as error:
            raise self._unfit("predictions: there must be exactly one", content) from error
        return segmented

    def _coverage(self, encoded: str, size: tuple[int, int]) -> FloatArray:
        try:
            data = base64.b64decode(encoded, validate=True)
            mask = decode_image(data).image.convert("L")
        except (binascii.Error, UnreadableImageError) as error:
            raise self._unfit(f"mask: {error}", encoded.encode()) from error
        fitted = mask.resize(size, Image.Resampling.BILINEAR)
        return np.asarray(fitted, dtype=np.float32) / np.float32(WHITE)

    def _unfit(self, problem: str, given: bytes) -> ModelError:
        return ModelError(
            f"The endpoint's answer does not fit the schema: {problem}",
            where=self.where,
            given=given[:80].decode("utf-8", "replace"),
            fix='Answer {"predictions": [{"mask": {"b64": "..."}, "quality": 0.9}]}; see docs/reference/endpoint.md.',
        )
