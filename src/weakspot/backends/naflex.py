"""Pictures cut into patches at their own aspect ratio, as SigLIP 2 NaFlex models take them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.preprocessing import RESAMPLES
from weakspot.core.arrays import AnyArray, FloatArray

_STEPS = 60


@dataclass(frozen=True, kw_only=True)
class NaflexPreprocessing:
    """How a picture becomes a bounded number of square patches.

    Args:
        patch_side: pixels a patch is high and wide.
        max_patches: a picture is resized so that it has at most this many.
        resample: filter of the resize.
        mean: subtracted after scaling to 0 to 1, one number a channel.
        std: divided by after that, one number a channel.
    """

    patch_side: int = 16
    max_patches: int = 256
    resample: str = "bilinear"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @property
    def needed_side(self) -> None:
        """Full size: how large a picture has to be depends on its shape."""

    def apply(self, picture: Image.Image) -> FloatArray:
        """Return one picture as [rows, columns, patch_side * patch_side * 3]."""
        rows, columns = self.grid(picture.height, picture.width)
        side = self.patch_side
        resized = picture.convert("RGB").resize((columns * side, rows * side), RESAMPLES[self.resample])
        pixels = np.asarray(resized, dtype=np.float32) / np.float32(255)
        standard = (pixels - np.array(self.mean, dtype=np.float32)) / np.array(self.std, dtype=np.float32)
        patches = standard.reshape(rows, side, columns, side, 3).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(patches.reshape(rows, columns, -1))

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of patches a picture gets: as many as fit, keeping its shape."""
        low, high = 0.0, float(self.max_patches * self.patch_side)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            rows, columns = self._at(middle, height, width)
            low, high = (middle, high) if rows * columns <= self.max_patches else (low, middle)
        return self._at(low, height, width)

    def batch(self, prepared: Sequence[AnyArray]) -> dict[str, AnyArray]:
        """Return prepared pictures as the model's inputs, padded to `max_patches`."""
        pixels = np.zeros((len(prepared), self.max_patches, prepared[0].shape[-1]), dtype=np.float32)
        mask = np.zeros((len(prepared), self.max_patches), dtype=np.int32)
        shapes = np.array([patches.shape[:2] for patches in prepared], dtype=np.int64)
        for row, patches in enumerate(prepared):
            count = patches.shape[0] * patches.shape[1]
            pixels[row, :count] = patches.reshape(count, -1)
            mask[row, :count] = 1
        return {"pixel_values": pixels, "pixel_attention_mask": mask, "spatial_shapes": shapes}

    def as_settings(self) -> dict[str, Any]:
        """Return everything that decides the numbers."""
        return asdict(self)

    def _at(self, scale: float, height: int, width: int) -> tuple[int, int]:
        return max(1, ceil(height * scale / self.patch_side)), max(1, ceil(width * scale / self.patch_side))


def naflex_of_processor(given: Mapping[str, Any]) -> NaflexPreprocessing | None:
    """Return the patches that a processor file describes, or None when it describes something else."""
    stated = given.get("image_processor", given)
    if "max_num_patches" not in stated:
        return None
    names = {int(kind): name for name, kind in RESAMPLES.items()}
    return NaflexPreprocessing(
        patch_side=int(stated.get("patch_size", 16)),
        max_patches=int(stated["max_num_patches"]),
        resample=names.get(stated.get("resample", 2), "bilinear"),
        mean=tuple(float(number) for number in stated.get("image_mean", (0.5, 0.5, 0.5))),
        std=tuple(float(number) for number in stated.get("image_std", (0.5, 0.5, 0.5))),
    )
