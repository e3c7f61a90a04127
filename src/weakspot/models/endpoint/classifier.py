"""A classifier behind an HTTP endpoint, what is sent to it and what may come back.

docs/reference/endpoint.md shows it.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from weakspot.core.arrays import AnyArray, generator
from weakspot.core.errors import ConfigError, ModelError, raise_all
from weakspot.core.heads import Head
from weakspot.core.registry import Sendable
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import (
    checked_features,
    checked_probabilities,
    parsed_class_names,
    parsed_task,
)
from weakspot.models.endpoint.requests import (
    Retries,
    address_problems,
    bearer_headers,
    shown_address,
)
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import model_id
from weakspot.models.preprocessing import is_number, resize_shorter_side

N_SHOWN = 5


def _number(value: Any) -> Any:
    """Refuse what pydantic would turn into a number: true, "0.5", NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no number")
    if not math.isfinite(value):
        raise ValueError("is NaN or infinite")
    return value


Number = Annotated[float, BeforeValidator(_number)]


class Prediction(BaseModel):
    """What the endpoint says of one image.

    Args:
        probabilities: probability by class name, or a list in the order of `class_names`.
        features: input of the last linear layer, if the endpoint gives it.
    """

    model_config = ConfigDict(frozen=True)

    probabilities: dict[str, Number] | list[Number]
    features: list[Number] | None = None


class Answer(BaseModel):
    """The whole answer; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    predictions: list[Prediction] = Field(description="one entry an instance, in the same order")


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
        answer = Answer.model_validate_json(content)
    except ValidationError as error:
        raise ModelError(
            f"The endpoint's answer does not fit the schema: {_problems(error)}",
            where=where,
            given=content[:80].decode("utf-8", "replace"),
            fix='Answer {"predictions": [{"probabilities": {...}}]}; see docs/reference/endpoint.md.',
        ) from error
    if len(answer.predictions) != n_images:
        raise ModelError(
            f"The endpoint gave {len(answer.predictions)} predictions for {n_images} images.",
            where=where,
        )
    return tuple(answer.predictions)


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


class EndpointClassifier(Sendable):
    """A classifier behind an HTTP endpoint that speaks the JSON of docs/reference/endpoint.md.

    Args:
        url: address that takes the POST requests.
        class_names: the classes; needed when the endpoint answers by name, otherwise the order of its lists.
        task: `single-label` or `multi-label`.
        version: anything that changes when the model behind the address does; the address alone cannot tell.
        image_side: images are sent with their shorter side resized to this; by default in full size.
        encoding: `png` (lossless) or `jpeg`.
        batch_size: images a request.
        concurrency: requests under way at a time.
        timeout_seconds: for connecting, and for each wait for data.
        n_retries: attempts after the first, on connection errors and on status 408, 425, 429 and 5xx.
        first_wait_seconds: wait before the first retry, doubled from then on.
        token_variable: name of the environment variable that holds the bearer token; the token itself is never written down.
        seed: of the random part of the waits.
    """

    def __init__(
        self,
        *,
        url: str,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        version: str = "",
        image_side: int | None = None,
        encoding: str = "png",
        batch_size: int = 8,
        concurrency: int = 4,
        timeout_seconds: float = 30.0,
        n_retries: int = 5,
        first_wait_seconds: float = 0.5,
        token_variable: str | None = None,
        seed: int = 0,
    ) -> None:
        self._url = url
        self._class_names = parsed_class_names(class_names)
        self.task = parsed_task(task)
        self._version = version
        self._side = image_side
        self._encoding = encoding
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._timeout_seconds = timeout_seconds
        self._retries = Retries(n_retries=n_retries, first_wait_seconds=first_wait_seconds)
        self._token_variable = token_variable
        self._seed = seed
        self._n_requests = 0
        raise_all(
            self._problems(),
            error=ConfigError,
            what="The endpoint cannot be used like this:",
            where="classifier settings",
        )

    @property
    def classifier_id(self) -> str:
        address = urlsplit(self._url)
        return model_id(
            "endpoint",
            f"{address.hostname}{address.path}",
            self._url,
            self._version,
            self._side,
            self._encoding,
            self.task,
        )

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return self._class_names

    @property
    def image_side(self) -> int | None:
        """Shortest side that is sent; None for full size."""
        return self._side

    @property
    def head(self) -> Head | None:
        """None: an endpoint does not show its last layer."""
        return None

    def prepare(self, image: Image.Image) -> AnyArray:
        sent = image.convert("RGB")
        if self._side is not None and min(sent.size) > self._side:
            sent = resize_shorter_side(sent, self._side)
        stream = io.BytesIO()
        sent.save(stream, **ENCODINGS[self._encoding])
        return np.frombuffer(stream.getvalue(), dtype=np.uint8)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return what the endpoint says, checked; several requests are under way at a time."""
        if not prepared:
            return ClassifierOutput(
                probabilities=np.zeros((0, len(self._class_names or ())), np.float32)
            )
        chunks = [
            prepared[start : start + self._batch_size]
            for start in range(0, len(prepared), self._batch_size)
        ]
        numbers = range(self._n_requests, self._n_requests + len(chunks))
        self._n_requests += len(chunks)
        with ThreadPoolExecutor(max_workers=self._concurrency) as pool:
            answers = list(pool.map(self._ask, chunks, numbers))
        predictions = [prediction for answer in answers for prediction in answer]
        probabilities = checked_probabilities(
            probability_rows(predictions, self._class_names, where=self._where),
            n_rows=len(prepared),
            class_names=self._class_names,
            task=self.task,
            where=self._where,
        )
        features = checked_features(
            feature_rows(predictions, where=self._where), n_rows=len(prepared), where=self._where
        )
        return ClassifierOutput(probabilities=probabilities, features=features)

    def close(self) -> None:
        if (client := vars(self).pop("_client", None)) is not None:
            client.close()

    def _ask(self, encoded: Sequence[AnyArray], number: int) -> tuple[Prediction, ...]:
        jitter = generator(self._seed, "endpoint", str(number))
        content = self._retries.post(
            self._client, self._url, request_body(encoded), jitter=jitter, where=self._where
        )
        return parse_answer(content, n_images=len(encoded), where=self._where)

    @LoadedOnce
    def _client(self) -> Any:
        import httpx

        return httpx.Client(
            headers=bearer_headers(self._token_variable),
            timeout=self._timeout_seconds,
            # A request that was given up keeps its connection for a while; the pool of threads bounds how many are under way.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=self._concurrency),
            follow_redirects=False,
        )

    @property
    def _where(self) -> str:
        return shown_address(self._url)

    def _problems(self) -> list[str]:
        problems = address_problems(self._url, self._token_variable)
        if self._encoding not in ENCODINGS:
            problems.append(f"encoding: {self._encoding!r} is none of {', '.join(ENCODINGS)}")
        for name, least in (
            ("batch_size", 1),
            ("concurrency", 1),
            ("timeout_seconds", 0.001),
            ("side", 1),
        ):
            value = getattr(self, f"_{name}")
            if value is not None and not (is_number(value) and value >= least):
                problems.append(
                    f"{name.replace('side', 'image_side')}: must be a number of at least {least}, is {value!r}"
                )
        for name in ("n_retries", "first_wait_seconds"):
            value = getattr(self._retries, name)
            if not is_number(value) or value < 0:
                problems.append(f"{name}: must be a number of at least 0, is {value!r}")
        return problems
