"""The CLIP whose embeddings a pipeline decodes: its text side, and its image side where it is at hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import model_id
from weakspot.backends.transformers.source import TransformersSettings, TransformersSource
from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import ModelError, WeakspotError
from weakspot.core.sending import Sendable

TEXT_KIND = "CLIPTextModelWithProjection"
VISION_KIND = "CLIPVisionModelWithProjection"
_BLACK_SIDE = 224


@dataclass(frozen=True, kw_only=True, eq=False)
class TextTower:
    """A text encoder with a projection into the space of images.

    Args:
        model: the network.
        tokenizer: words to its input.
        torch: the library.
    """

    model: Any
    tokenizer: Any
    torch: Any

    @property
    def dimension(self) -> int:
        return int(self.model.config.projection_dim)

    def embeddings(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of texts, one at a time: rounding would follow the batch, and an image with it."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self.torch.inference_mode():
            return unit_rows(np.stack([self._embedding(text) for text in texts]))

    def _embedding(self, text: str) -> FloatArray:
        longest = int(self.model.config.max_position_embeddings)
        found = self.tokenizer([text], truncation=True, max_length=longest, return_tensors="pt")
        tokens = {
            name: found[name].to(self.model.device) for name in ("input_ids", "attention_mask")
        }
        return np.asarray(
            self.model(**tokens).text_embeds[0].float().cpu().numpy(), dtype=np.float32
        )


class NamedTower(Sendable):
    """Both sides of a CLIP by name or from a folder: of one model, or in the folders that Kandinsky's prior has for them.

    Args:
        model: name on the hub, or a folder.
    """

    def __init__(self, model: str) -> None:
        self._source = TransformersSource(TransformersSettings(model=model, device="cpu"))

    @LoadedOnce
    def identity(self) -> str:
        name = self._source.settings.model
        if Path(name).is_dir() or self._has_config:
            return self._source.identity("clip-space")
        return model_id(
            "clip-space",
            name,
            getattr(
                self._source.load("AutoConfig", subfolder="text_encoder"), "_commit_hash", None
            ),
        )

    @LoadedOnce
    def text(self) -> TextTower:
        """Return the text side.

        Raises:
            ModelError: if the model has none with a projection.
        """
        model = self._load(TEXT_KIND, "text_encoder", is_model=True)
        tokenizer = self._load("AutoTokenizer", "tokenizer")
        return TextTower(model=model, tokenizer=tokenizer, torch=self._source.torch)

    @LoadedOnce
    def black(self) -> FloatArray | None:
        """Return the embedding [d] of a black image as the encoder gives it, not scaled; None if there is no image side."""
        try:
            model = self._load(VISION_KIND, "image_encoder", is_model=True)
            processor = self._load("AutoImageProcessor", "image_processor")
        except WeakspotError:
            return None
        with self._source.running():
            pixels = processor(
                images=[Image.new("RGB", (_BLACK_SIDE, _BLACK_SIDE))], return_tensors="pt"
            ).pixel_values
            return np.asarray(model(pixels).image_embeds[0].float().cpu().numpy(), dtype=np.float32)

    def _load(self, kind: str, folder: str, *, is_model: bool = False) -> Any:
        options: dict[str, Any] = (
            {"use_safetensors": True, "output_loading_info": True} if is_model else {}
        )
        if self._has_folders(folder):
            options["subfolder"] = folder
        found = self._source.load(kind, **options)
        if not is_model:
            return found
        model, report = found
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"This is no CLIP with a projection: {len(missing)} weights are missing, such as {missing[:2]}.",
                where=self._source.settings.model,
                fix="Name the CLIP model whose embeddings the pipeline decodes.",
            )
        return model.eval()

    def _has_folders(self, folder: str) -> bool:
        name = self._source.settings.model
        if Path(name).is_dir():
            return (Path(name) / folder).is_dir()
        return not self._has_config

    @LoadedOnce
    def _has_config(self) -> bool:
        try:
            self._source.load("AutoConfig")
        except WeakspotError:
            return False
        return True
