"""CLIP, SigLIP and SigLIP 2 through transformers, by hub name or from a folder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import settings_hash
from weakspot.models.preprocessing import RESAMPLES, Preprocessing, preprocessing_of_processor
from weakspot.models.torch.device import torch_device
from weakspot.models.transformers.source import TransformersModel

_STEPS = 60


@dataclass(frozen=True, kw_only=True)
class NaflexPreprocessing:
    """How an image becomes a bounded number of square patches.

    Args:
        patch_side: pixels a patch is high and wide.
        max_patches: an image is resized so that it has at most this many.
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
        """Full size: how large an image has to be depends on its shape."""

    def apply(self, image: Image.Image) -> FloatArray:
        """Return one image as [rows, columns, patch_side * patch_side * 3]."""
        rows, columns = self.grid(image.height, image.width)
        side = self.patch_side
        resized = image.convert("RGB").resize(
            (columns * side, rows * side), RESAMPLES[self.resample]
        )
        pixels = np.asarray(resized, dtype=np.float32) / np.float32(255)
        standard = (pixels - np.array(self.mean, dtype=np.float32)) / np.array(
            self.std, dtype=np.float32
        )
        patches = standard.reshape(rows, side, columns, side, 3).transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(patches.reshape(rows, columns, -1))

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of patches an image gets: as many as fit, keeping its shape."""
        low, high = 0.0, float(self.max_patches * self.patch_side)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            rows, columns = self._at(middle, height, width)
            low, high = (middle, high) if rows * columns <= self.max_patches else (low, middle)
        return self._at(low, height, width)

    def batch(self, prepared: Sequence[AnyArray]) -> dict[str, AnyArray]:
        """Return prepared images as the model's inputs, padded to `max_patches`."""
        pixels = np.zeros(
            (len(prepared), self.max_patches, prepared[0].shape[-1]), dtype=np.float32
        )
        mask = np.zeros((len(prepared), self.max_patches), dtype=np.int32)
        shapes = np.array([patches.shape[:2] for patches in prepared], dtype=np.int64)
        for row, patches in enumerate(prepared):
            count = patches.shape[0] * patches.shape[1]
            pixels[row, :count] = patches.reshape(count, -1)
            mask[row, :count] = 1
        return {"pixel_values": pixels, "pixel_attention_mask": mask, "spatial_shapes": shapes}

    def as_settings(self) -> dict[str, Any]:
        return asdict(self)

    def _at(self, scale: float, height: int, width: int) -> tuple[int, int]:
        return max(1, ceil(height * scale / self.patch_side)), max(
            1, ceil(width * scale / self.patch_side)
        )


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


_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_PADDED_TO_THE_END = ("siglip", "siglip2")


@dataclass(kw_only=True, eq=False)
class TransformersEmbedder(TransformersModel):
    """Image and text features of a transformers model, as unit vectors.

    A model without `get_image_features` (DINOv2, ViT) gives its pooled output and has no text side.
    """

    fix_of_name = 'give a folder, or set embedder.name = "embedded"'

    @LoadedOnce
    def encoder_id(self) -> str:
        images = settings_hash(self._images.as_settings(), self.dtype)
        return f"transformers:{self.name}@{self.version[:16]}+{images[:8]}"

    @LoadedOnce
    def dimension(self) -> int:
        return int(self.embed_prepared([self.prepare(Image.new("RGB", (32, 32)))]).shape[1])

    @property
    def image_side(self) -> int | None:
        return self._images.needed_side

    @property
    def has_text(self) -> bool:
        return getattr(self.config, "text_config", None) is not None

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._images.apply(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = self.torch, self._model
        with torch.inference_mode():
            inputs = {
                name: torch.from_numpy(values).to(model.device)
                for name, values in self._batch(prepared).items()
            }
            inputs["pixel_values"] = inputs["pixel_values"].to(model.dtype)
            make = getattr(model, "get_image_features", model)
            return _unit(make(**inputs))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        if not self.has_text:
            raise ModelError(
                "This model has no text side.",
                given=self.model,
                fix="Learn one with `weakspot lab align`.",
            )
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = self.torch, self._model
        with torch.inference_mode():
            tokens = {
                name: values.to(model.device) for name, values in self._tokens(list(texts)).items()
            }
            return _unit(model.get_text_features(**tokens))

    def _batch(self, prepared: Sequence[AnyArray]) -> dict[str, AnyArray]:
        images = self._images
        return (
            images.batch(prepared)
            if isinstance(images, NaflexPreprocessing)
            else {"pixel_values": np.stack(prepared)}
        )

    def _tokens(self, texts: list[str]) -> dict[str, Any]:
        """Return token ids; SigLIP was trained on lower-cased phrases padded to the end, without a mask."""
        longest = int(getattr(self.config.text_config, "max_position_embeddings", 77))
        cut = {"truncation": True, "max_length": longest, "return_tensors": "pt"}
        if self.config.model_type in _PADDED_TO_THE_END:
            found = self._tokenizer([text.lower() for text in texts], padding="max_length", **cut)
            return {"input_ids": found["input_ids"]}
        found = self._tokenizer(texts, padding=True, **cut)
        return {name: found[name] for name in ("input_ids", "attention_mask")}

    @LoadedOnce
    def _images(self) -> Preprocessing | NaflexPreprocessing:
        for name in _PROCESSOR_FILES:
            found = self._file(name)
            if found is not None:
                where = f"{self.model}/{name}"
                return naflex_of_processor(found) or replace(
                    preprocessing_of_processor(found, where=where), centring="down"
                )
        raise ModelError(
            "The model does not say how its images are prepared.",
            where=self.model,
            fix=f"Put {_PROCESSOR_FILES[0]} beside it.",
        )

    def _file(self, name: str) -> Mapping[str, Any] | None:
        try:
            path = self.library.utils.cached_file(self.model, name, revision=self.revision)
            return (
                None if path is None else dict(json.loads(Path(path).read_text(encoding="utf-8")))
            )
        except (OSError, ValueError):
            return None

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self.load("AutoTokenizer")

    @LoadedOnce
    def _model(self) -> Any:
        model = self.load("AutoModel", **self._loading())
        return model.to(torch_device(self.torch, self.device)).eval()


def _unit(output: Any) -> FloatArray:
    features = getattr(output, "pooler_output", output)
    if features is None:
        raise ModelError(
            "The model gives no pooled output.",
            fix="Use CLIP, SigLIP, SigLIP 2 or another model with one embedding an image.",
        )
    return unit_rows(features.float().cpu().numpy())
