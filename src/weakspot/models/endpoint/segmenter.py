"""Masks of objects by a service behind an HTTP endpoint."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weakspot.core.arrays import FloatArray, generator
from weakspot.core.bounds import Count, Fraction, NonNegativeInt
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import ObjectMask
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.models.endpoint.requests import Endpoint, Predictions, encoded, smaller

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
    n_retries: NonNegativeInt = 5

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
