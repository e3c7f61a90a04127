"""A folder with an image tower, a text tower and a tokenizer in ONNX: any joint encoder, without torch."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError, raise_all
from weakspot.core.registry import Sendable
from weakspot.models.loading import LoadedOnce, file_hash, settings_hash
from weakspot.models.onnx.session import choose_provider, fitting_batch, make_session, run_session
from weakspot.models.preprocessing import (
    Preprocessing,
    preprocessing_from,
    preprocessing_of_processor,
)

DESCRIPTION = "embedder.json"
_EMBEDDING_RANK = 2
_CLIP = {"mean": (0.48145466, 0.4578275, 0.40821073), "std": (0.26862954, 0.26130258, 0.27577711)}


class PairDescription(BaseModel):
    """What `embedder.json` may say; everything has a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image_tower: str = Field(default="image.onnx", description="File of the image tower.")
    text_tower: str = Field(
        default="text.onnx", description="File of the text tower; it may be absent."
    )
    tokenizer: str = Field(default="tokenizer.json", description="File of the tokenizer.")
    image_input: str = Field(default="", description="Input of the image tower; empty: its first.")
    image_output: str = Field(
        default="", description="Output of the image tower; empty: its first of shape [n, d]."
    )
    text_output: str = Field(
        default="", description="Output of the text tower; empty: its first of shape [n, d]."
    )
    max_tokens: int = Field(default=77, ge=1, description="Longer phrases are cut.")
    padding: Literal["longest", "max_length"] = Field(
        default="longest", description="CLIP pads to the longest, SigLIP to max_tokens."
    )
    lower_case: bool = Field(
        default=False, description="Whether phrases are lower-cased, as SigLIP wants them."
    )
    images: dict[str, Any] = Field(
        default_factory=dict,
        description="Pre-processing: image_side, crop, resample, mean, std ...",
    )


class OnnxPairEmbedder(Sendable):
    """Unit vectors of a pair of ONNX towers.

    Args:
        folder: holds the files that `PairDescription` names; `embedder.json` and `preprocessor_config.json` are optional.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
    """

    def __init__(
        self, *, folder: str | Path, threads: int = 0, providers: Sequence[str] | None = None
    ) -> None:
        self._folder = Path(folder)
        self._threads = threads
        self._providers = providers

    @LoadedOnce
    def encoder_id(self) -> str:
        said = self._description
        names = [said.image_tower, *([said.text_tower, said.tokenizer] if self.has_text else [])]
        files = [
            file_hash(path) for path in (self._folder / name for name in names) if path.is_file()
        ]
        return f"onnx-pair:{self._folder.name}@{settings_hash(files, said.model_dump(), self._images.as_settings())}"

    @LoadedOnce
    def dimension(self) -> int:
        return int(self.embed_prepared([self.prepare(Image.new("RGB", (8, 8)))]).shape[1])

    @property
    def computed_by(self) -> str:
        """Which provider computes; in the precision of the files."""
        return choose_provider(self._providers).name

    @property
    def images_per_call(self) -> int:
        """How many images fit into the memory of what computes."""
        return fitting_batch(choose_provider(self._providers), side=self.image_side)

    @property
    def image_side(self) -> int | None:
        return self._images.needed_side

    @property
    def has_text(self) -> bool:
        return (self._folder / self._description.text_tower).is_file()

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._images.apply(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        tower, said = self._image_tower, self._description
        entry = tower.get_inputs()[0]
        name = said.image_input or entry.name
        step = entry.shape[0] if isinstance(entry.shape[0], int) else len(prepared)
        filled = [*prepared, *[prepared[-1]] * (-len(prepared) % step)]
        starts = range(0, len(filled), step)
        parts = [
            self._embeddings(
                tower, {name: np.stack(filled[start : start + step])}, said.image_output
            )
            for start in starts
        ]
        return unit_rows(np.concatenate(parts)[: len(prepared)])

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        if not self.has_text:
            raise ModelError(
                "This folder has no text tower.",
                where=str(self._folder),
                fix="Learn one with `weakspot lab align`.",
            )
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        said = self._description
        encoded = self._tokenizer.encode_batch(
            [text.lower() if said.lower_case else text for text in texts]
        )
        ids = np.array([item.ids for item in encoded], dtype=np.int64)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        chosen = {
            entry.name: given.get(entry.name, ids).astype(
                np.int32 if entry.type == "tensor(int32)" else np.int64
            )
            for entry in self._text_tower.get_inputs()
        }
        found = unit_rows(self._embeddings(self._text_tower, chosen, said.text_output))
        if found.shape[1] != self.dimension:
            raise ModelError(
                f"The towers do not belong together: {self.dimension} numbers an image, {found.shape[1]} a phrase.",
                where=str(self._folder),
            )
        return found

    def _embeddings(self, tower: Any, inputs: dict[str, AnyArray], output: str) -> FloatArray:
        names = [entry.name for entry in tower.get_outputs()]
        if output and output not in names:
            raise ModelError(
                f"The graph has no output {output!r}.",
                where=str(self._folder / DESCRIPTION),
                fix=f"Choose one of {names}.",
            )
        found = run_session(
            tower, inputs, outputs=[output] if output else None, where=str(self._folder)
        )
        flat = [np.asarray(value) for value in found if np.asarray(value).ndim == _EMBEDDING_RANK]
        if not flat:
            raise ModelError(
                "The graph gives no embeddings [n, d].",
                where=str(self._folder),
                given=names,
                fix=f"Name one in {DESCRIPTION}.",
            )
        return flat[0]

    @LoadedOnce
    def _description(self) -> PairDescription:
        path = self._folder / DESCRIPTION
        if not self._folder.is_dir():
            raise ModelError(
                "There is no such folder.",
                where=str(self._folder),
                fix="Set embedder.options.folder.",
            )
        if not path.is_file():
            return PairDescription()
        try:
            return PairDescription.model_validate_json(path.read_text(encoding="utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            problems = (
                [f"{item['loc']}: {item['msg']}" for item in error.errors()]
                if isinstance(error, ValidationError)
                else [str(error)]
            )
            raise_all(
                problems, error=ModelError, what=f"{DESCRIPTION} cannot be used:", where=str(path)
            )
            raise

    @LoadedOnce
    def _images(self) -> Preprocessing:
        said = self._folder / "preprocessor_config.json"
        if said.is_file() and not self._description.images:
            try:
                return preprocessing_of_processor(
                    json.loads(said.read_text(encoding="utf-8")), where=str(said)
                )
            except ValueError as error:
                raise ModelError(f"The file is not JSON: {error}.", where=str(said)) from error
        shape = self._image_tower.get_inputs()[0].shape
        height, width = (side if isinstance(side, int) else None for side in shape[-2:])
        return preprocessing_from(self._description.images, height=height, width=width, **_CLIP)

    @LoadedOnce
    def _image_tower(self) -> Any:
        return make_session(
            self._folder / self._description.image_tower,
            threads=self._threads,
            providers=self._providers,
        )

    @LoadedOnce
    def _text_tower(self) -> Any:
        return make_session(
            self._folder / self._description.text_tower,
            threads=self._threads,
            providers=self._providers,
        )

    @LoadedOnce
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self._folder / self._description.tokenizer
        if not path.is_file():
            raise ModelError(
                "The tokenizer is missing.",
                where=str(path),
                fix="Put the model's tokenizer.json there.",
            )
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.enable_truncation(self._description.max_tokens)
        kept = tokenizer.padding or {}
        length = self._description.max_tokens if self._description.padding == "max_length" else None
        tokenizer.enable_padding(
            length=length, pad_id=kept.get("pad_id", 0), pad_token=kept.get("pad_token", "[PAD]")
        )
        return tokenizer
