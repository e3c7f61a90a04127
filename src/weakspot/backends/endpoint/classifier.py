"""A classifier behind an HTTP endpoint."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from weakspot.backends.class_scores import (
    checked_features,
    checked_probabilities,
    parsed_class_names,
    parsed_task,
)
from weakspot.backends.endpoint.address import address_problems, bearer_headers, shown_address
from weakspot.backends.endpoint.retries import Retries
from weakspot.backends.endpoint.schema import (
    Prediction,
    feature_rows,
    parse_answer,
    probability_rows,
    request_body,
)
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import model_id
from weakspot.backends.preprocessing import is_number, resize_shorter_side
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, raise_all
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.core.seeding import generator
from weakspot.core.sending import Sendable

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

    def __init__(  # noqa: PLR0913 - one argument a setting
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
