"""open_clip models by name and pretrained tag, from a checkpoint file, or from a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.registry import Sendable
from weakspot.models.loading import LoadedOnce, first_line, require_library
from weakspot.models.model_hash import file_hash
from weakspot.models.torch.device import (
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)

PURPOSE = "open_clip models"
_LOCAL = "local-dir:"
_HUB = "hf-hub:"


class OpenClipEmbedder(Sendable):
    """Image and text features of an open_clip model, as unit vectors.

    Args:
        model: name of the architecture, `hf-hub:organisation/model`, `local-dir:folder`, or simply a folder.
        pretrained: tag of the weights or a checkpoint file; not needed for a hub model or a folder.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        pretrained: str | Path = "",
        device: str = "auto",
        dtype: str = "float32",
    ) -> None:
        name = str(model)
        self._model_name = f"{_LOCAL}{name}" if Path(name).is_dir() else name
        self._pretrained = str(pretrained)
        self._device = device
        self._dtype = dtype
        if not self._pretrained and not self._model_name.startswith((_LOCAL, _HUB)):
            raise ModelError(
                "An open_clip architecture without weights would give random embeddings.",
                given=name,
                fix="Set embedder.options.pretrained to a tag or a checkpoint file.",
            )

    @LoadedOnce
    def encoder_id(self) -> str:
        local = Path(self._model_name.removeprefix(_LOCAL))
        checkpoint = Path(self._pretrained)
        name = (
            f"{local.name}@{file_hash(local)}"
            if self._model_name.startswith(_LOCAL) and local.is_dir()
            else self._model_name
        )
        tag = (
            f"{checkpoint.name}@{file_hash(checkpoint)}"
            if checkpoint.is_file()
            else self._pretrained
        )
        return f"open-clip:{name}" + (f":{tag}" if tag else "") + f"+{self._dtype}"

    @LoadedOnce
    def dimension(self) -> int:
        return int(self.embed_texts(["a"]).shape[1])

    @property
    def image_side(self) -> int | None:
        size = self._loaded[0].visual.image_size
        return int(max(size) if isinstance(size, tuple | list) else size)

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into [3, height, width], as open_clip does it for this model."""
        return np.asarray(self._loaded[1](image).numpy(), dtype=np.float32)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(PURPOSE), self._loaded[0]
        weights = next(model.parameters())
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(weights.device, weights.dtype)
            return unit_rows(model.encode_image(pixels).float().cpu().numpy())

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(PURPOSE), self._loaded[0]
        with torch.inference_mode():
            tokens = self._tokenizer(list(texts)).to(next(model.parameters()).device)
            return unit_rows(model.encode_text(tokens).float().cpu().numpy())

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self._guard(lambda: _library().get_tokenizer(self._model_name))

    @LoadedOnce
    def _loaded(self) -> tuple[Any, Any]:
        torch = require_torch(PURPOSE)
        device, dtype = torch_device(torch, self._device), torch_dtype(torch, self._dtype)
        create = _library().create_model_and_transforms
        model, _, transform = self._guard(
            lambda: create(self._model_name, pretrained=self._pretrained or None)
        )
        return model.to(device, dtype).eval(), transform

    def _guard(self, load: Any) -> Any:
        where = f"{self._model_name} {self._pretrained}".strip()
        try:
            return load()
        except (OSError, ConnectionError) as error:
            raise UnavailableError(
                f"The model is unavailable: {first_line(error)}",
                where=where,
                fix="Check the name, the tag and the network, or give a folder.",
            ) from error
        except (RuntimeError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ModelError(
                f"open_clip cannot load the model: {first_line(error)}", where=where
            ) from error


def _library() -> Any:
    require_torch(PURPOSE)
    declare_torchvision_operators()
    return require_library("open_clip", extra="hub", purpose=PURPOSE)
