"""Masks of objects by a service behind an HTTP endpoint."""

import base64
import binascii
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weakspot.core.arrays import FloatArray, generator
from weakspot.core.errors import ConfigError, ModelError, raise_all
from weakspot.core.registry import Sendable
from weakspot.core.roles import ObjectMask
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.models.endpoint.requests import Retries, address_problems, client_of, shown_address
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import model_id
from weakspot.models.preprocessing import resize_shorter_side

NOTHING = "the service finds no such object"
WHITE = 255.0


class _File(BaseModel):
    model_config = ConfigDict(frozen=True)

    b64: str


class _Found(BaseModel):
    """What the service says of one image: a mask, white where the object is, and how sure it is of it."""

    model_config = ConfigDict(frozen=True)

    mask: _File | None
    quality: float = Field(default=1.0, ge=0.0, le=1.0, strict=True)


class _Answer(BaseModel):
    """The whole answer; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    predictions: list[_Found] = Field(min_length=1, max_length=1)


class EndpointSegmenter(Sendable):
    """One request an image to a service that answers with the mask of the object, in the JSON of docs/reference/endpoint.md.

    Args:
        url: address that takes the POST requests.
        version: anything that changes when the model behind the address does; the address alone cannot tell.
        image_side: images are sent with their shorter side resized to this; none for full size.
        least_quality: a mask whose quality is lower is refused.
        concurrency: requests under way at a time.
        timeout_seconds: for connecting, and for each wait for data.
        n_retries: attempts after the first, on connection errors and on status 408, 425, 429 and 5xx.
        first_wait_seconds: wait before the first retry, doubled from then on.
        token_variable: name of the environment variable that holds the bearer token; the token itself is never written down.
    """

    def __init__(
        self,
        *,
        url: str,
        version: str = "",
        image_side: int | None = 512,
        least_quality: float = 0.6,
        concurrency: int = 4,
        timeout_seconds: float = 60.0,
        n_retries: int = 5,
        first_wait_seconds: float = 0.5,
        token_variable: str | None = None,
    ) -> None:
        problems = address_problems(url, token_variable)
        if image_side is not None and image_side < 1:
            problems.append(f"image_side: must be at least 1, is {image_side!r}")
        if not 0.0 <= least_quality <= 1.0:
            problems.append(f"least_quality: lies between 0 and 1, is {least_quality!r}")
        if concurrency < 1 or timeout_seconds <= 0 or n_retries < 0 or first_wait_seconds < 0:
            problems.append(
                "concurrency, timeout_seconds, n_retries, first_wait_seconds: too small"
            )
        raise_all(
            problems,
            error=ConfigError,
            what="The endpoint cannot be used like this:",
            where="[segmenter] options",
        )
        self._url, self._version, self._side = url, version, image_side
        self._least_quality = least_quality
        self._concurrency, self._timeout_seconds = concurrency, timeout_seconds
        self._retries = Retries(n_retries=n_retries, first_wait_seconds=first_wait_seconds)
        self._token_variable = token_variable

    @property
    def segmenter_id(self) -> str:
        address = urlsplit(self._url)
        asked = (self._url, self._version, self._side, self._least_quality)
        return model_id("endpoint-segmenter", f"{address.hostname}{address.path}", *asked)

    @property
    def image_side(self) -> int | None:
        return self._side

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where the service finds nothing or is not sure; several requests are under way at a time."""
        if len(images) != len(class_names):
            raise ConfigError(
                "Every image needs the name of its class.", given=(len(images), len(class_names))
            )
        if not images:
            return []
        client = self._client
        with ThreadPoolExecutor(max_workers=self._concurrency) as pool:
            return list(pool.map(lambda *given: self._mask(client, *given), images, class_names))

    def _mask(self, client: Any, image: Image.Image, class_name: str) -> ObjectMask:
        encoded = base64.b64encode(_png(self._reduced(image))).decode("ascii")
        body = {"instances": [{"image": {"b64": encoded}, "class": class_name}]}
        jitter = generator(0, "endpoint-segmenter", class_name)
        content = self._retries.post(client, self._url, body, jitter=jitter, where=self._where)
        found = self._parse(content)
        if found.mask is None:
            empty = np.zeros((image.height, image.width), dtype=np.float32)
            return ObjectMask(coverage=empty, quality=found.quality, refused=NOTHING)
        coverage = self._coverage(found.mask.b64, image.size)
        refused = ""
        if not coverage.any():
            refused = NOTHING
        elif found.quality < self._least_quality:
            refused = f"the service gives its mask the quality {found.quality:.2f}"
        return ObjectMask(coverage=coverage, quality=found.quality, refused=refused)

    def _parse(self, content: bytes) -> _Found:
        try:
            return _Answer.model_validate_json(content).predictions[0]
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._unfit(f"{where}: {first['msg']}", content) from error

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
            where=self._where,
            given=given[:80].decode("utf-8", "replace"),
            fix='Answer {"predictions": [{"mask": {"b64": "..."}, "quality": 0.9}]}; see docs/reference/endpoint.md.',
        )

    def _reduced(self, image: Image.Image) -> Image.Image:
        sent = image.convert("RGB")
        if self._side is not None and min(sent.size) > self._side:
            return resize_shorter_side(sent, self._side)
        return sent

    @LoadedOnce
    def _client(self) -> Any:
        return client_of(
            token_variable=self._token_variable,
            timeout_seconds=self._timeout_seconds,
            concurrency=self._concurrency,
        )

    @property
    def _where(self) -> str:
        return shown_address(self._url)


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG", compress_level=1)
    return stream.getvalue()
