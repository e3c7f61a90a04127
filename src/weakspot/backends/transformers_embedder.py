"""CLIP, SigLIP and SigLIP 2 through transformers, by hub name or from a folder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.hub_preprocessing import preprocessing_of_processor
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import file_hash, settings_hash
from weakspot.backends.naflex import NaflexPreprocessing, naflex_of_processor
from weakspot.backends.optional_library import require_library
from weakspot.backends.preprocessing import Preprocessing
from weakspot.backends.torch_device import require_torch, torch_device, torch_dtype
from weakspot.backends.torchvision_operators import declare_torchvision_operators
from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.sending import Sendable

PURPOSE = "Hub models"
_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_PADDED_TO_THE_END = ("siglip", "siglip2")


class TransformersEmbedder(Sendable):
    """Image and text features of a transformers model, as unit vectors.

    A model without `get_image_features` (DINOv2, ViT) gives its pooled output and has no text side.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
    """

    def __init__(self, *, model: str | Path, revision: str | None = None, device: str = "auto", dtype: str = "float32") -> None:
        self._model_name = str(model)
        self._revision = revision
        self._device = device
        self._dtype = dtype

    @LoadedOnce
    def encoder_id(self) -> str:
        """Name with the hash of the folder or the commit on the hub, and of what decides the numbers."""
        folder = Path(self._model_name)
        version = file_hash(folder) if folder.is_dir() else str(getattr(self._config, "_commit_hash", None) or self._revision)
        name = folder.name if folder.is_dir() else self._model_name
        return f"transformers:{name}@{version[:16]}+{settings_hash(self._pictures.as_settings(), self._dtype)[:8]}"

    @LoadedOnce
    def dimension(self) -> int:
        """Length of the vectors."""
        return int(self.embed_prepared([self.prepare(Image.new("RGB", (32, 32)))]).shape[1])

    @property
    def picture_side(self) -> int | None:
        """Shortest picture side in pixels that `prepare` needs."""
        return self._pictures.needed_side

    @property
    def has_text(self) -> bool:
        """Whether the model has a text side."""
        return getattr(self._config, "text_config", None) is not None

    def prepare(self, picture: Image.Image) -> AnyArray:
        """Turn one RGB picture into what the model's own processor would make of it."""
        return self._pictures.apply(picture)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared pictures."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(PURPOSE), self._model
        with torch.inference_mode():
            inputs = {name: torch.from_numpy(values).to(model.device) for name, values in self._batch(prepared).items()}
            inputs["pixel_values"] = inputs["pixel_values"].to(model.dtype)
            make = getattr(model, "get_image_features", model)
            return _unit(make(**inputs))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        if not self.has_text:
            raise ModelError("This model has no text side.", given=self._model_name, fix="Learn one with `weakspot align`.")
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(PURPOSE), self._model
        with torch.inference_mode():
            tokens = {name: values.to(model.device) for name, values in self._tokens(list(texts)).items()}
            return _unit(model.get_text_features(**tokens))

    def _batch(self, prepared: Sequence[AnyArray]) -> dict[str, AnyArray]:
        pictures = self._pictures
        return pictures.batch(prepared) if isinstance(pictures, NaflexPreprocessing) else {"pixel_values": np.stack(prepared)}

    def _tokens(self, texts: list[str]) -> dict[str, Any]:
        """Return token ids; SigLIP was trained on lower-cased phrases padded to the end, without a mask."""
        longest = int(getattr(self._config.text_config, "max_position_embeddings", 77))
        cut = {"truncation": True, "max_length": longest, "return_tensors": "pt"}
        if self._config.model_type in _PADDED_TO_THE_END:
            found = self._tokenizer([text.lower() for text in texts], padding="max_length", **cut)
            return {"input_ids": found["input_ids"]}
        found = self._tokenizer(texts, padding=True, **cut)
        return {name: found[name] for name in ("input_ids", "attention_mask")}

    @LoadedOnce
    def _pictures(self) -> Preprocessing | NaflexPreprocessing:
        for name in _PROCESSOR_FILES:
            found = self._file(name)
            if found is not None:
                where = f"{self._model_name}/{name}"
                return naflex_of_processor(found) or replace(preprocessing_of_processor(found, where=where), centring="down")
        raise ModelError(
            "The model does not say how its pictures are prepared.",
            where=self._model_name,
            fix=f"Put {_PROCESSOR_FILES[0]} beside it.",
        )

    def _file(self, name: str) -> Mapping[str, Any] | None:
        transformers = self._library
        try:
            path = transformers.utils.cached_file(self._model_name, name, revision=self._revision)
            return None if path is None else dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    @LoadedOnce
    def _config(self) -> Any:
        return self._loaded("AutoConfig")

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self._loaded("AutoTokenizer")

    @LoadedOnce
    def _model(self) -> Any:
        torch = require_torch(PURPOSE)
        model = self._loaded("AutoModel", torch_dtype=torch_dtype(torch, self._dtype))
        return model.to(torch_device(torch, self._device)).eval()

    @LoadedOnce
    def _library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        return require_library("transformers", extra="hub", purpose=PURPOSE)

    def _loaded(self, kind: str, **options: Any) -> Any:
        """Call `from_pretrained`; code that comes with a model is never run."""
        loader = getattr(self._library, kind)
        try:
            return loader.from_pretrained(self._model_name, revision=self._revision, trust_remote_code=False, **options)
        except OSError as error:
            raise UnavailableError(
                f"The model cannot be had: {_first_line(error)}",
                where=self._model_name,
                fix='Check the name and the network, give a folder, or set embedder.name = "embedded".',
            ) from error
        except Exception as error:
            raise ModelError(f"transformers cannot load the model: {_first_line(error)}", where=self._model_name) from error


def _unit(output: Any) -> FloatArray:
    """Take the features out of what this or that version of transformers answers."""
    features = getattr(output, "pooler_output", output)
    if features is None:
        raise ModelError(
            "The model gives no pooled output.", fix="Use CLIP, SigLIP, SigLIP 2 or another model with one vector a picture."
        )
    return unit_rows(features.float().cpu().numpy())


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:300]
