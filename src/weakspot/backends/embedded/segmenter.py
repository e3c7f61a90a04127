"""The segmenter that needs no hub: DINOv2 patch tokens from the package index, and a gate that ships with weakspot."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.backends.embedded.mask_gate import GATE_PATH, MaskGate
from weakspot.backends.embedded.object_finding import found_object
from weakspot.backends.embedded.patch_tokens import PATCH_MODEL, PatchTokens
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.packages.registry_source import file_sha256
from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ConfigError
from weakspot.core.roles import ObjectMask
from weakspot.core.run import Progress
from weakspot.core.sending import Sendable

VERSION = 1
USED_SIDE = 448
SMALLEST_SIDE = 16
NOTHING = "nothing in the image stands out"
TOO_SMALL = f"the image is smaller than {SMALLEST_SIDE} pixels"


class EmbeddedSegmenter(Sendable):
    """Finds what stands out of an image, by DINOv2 patch tokens, and says how well its mask is believed to fit.

    The class is not asked for: it takes the most object-like region, which in images of one class is nearly always the class's own.
    Nothing is downloaded or loaded before the first image.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        least_quality: estimated overlap with the true mask from which on a mask is used; by default what was learnt.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        least_quality: float | None = None,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        if least_quality is not None and not 0.0 <= least_quality <= 1.0:
            raise ConfigError(
                "The least quality of a mask is an overlap, from 0 to 1.",
                where="least_quality",
                given=least_quality,
            )
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._providers = providers
        self._least_quality = least_quality
        self._progress = progress

    @LoadedOnce
    def segmenter_id(self) -> str:
        gate = file_sha256(GATE_PATH)[:12]
        limit = "" if self._least_quality is None else f"-least-{self._least_quality:g}"
        return f"embedded:dinov2-vits14@{PATCH_MODEL.sha256[:12]}+gate@{gate}-{VERSION}{limit}"

    @property
    def image_side(self) -> int | None:
        return USED_SIDE

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where its quality is low."""
        if len(images) != len(class_names):
            raise ConfigError(
                "Every image needs the name of its class.", given=(len(images), len(class_names))
            )
        return [self._mask(image.convert("RGB")) for image in images]

    def _mask(self, image: Image.Image) -> ObjectMask:
        pixels = np.array(image, dtype=np.uint8)
        if min(image.size) < SMALLEST_SIDE:
            return _refused(pixels.shape, TOO_SMALL)
        found = found_object(pixels, self._tokens.of, self._gate)
        if found is None:
            return _refused(pixels.shape, NOTHING)
        quality = float(self._gate.quality(found.figures[None])[0])
        least = self._gate.least_quality if self._least_quality is None else self._least_quality
        return ObjectMask(
            coverage=found.coverage(pixels),
            quality=quality,
            refused="" if quality >= least else "the outline of its object is not sure enough",
        )

    @LoadedOnce
    def _gate(self) -> MaskGate:
        return MaskGate.load()

    @LoadedOnce
    def _tokens(self) -> PatchTokens:
        return PatchTokens(
            known=self._gate.known,
            cache_dir=self._cache_dir,
            threads=self._threads,
            providers=self._providers,
            progress=self._progress,
        )


def _refused(shape: tuple[int, ...], why: str) -> ObjectMask:
    nothing: FloatArray = np.zeros(shape[:2], dtype=np.float32)
    return ObjectMask(coverage=nothing, quality=0.0, refused=why)
