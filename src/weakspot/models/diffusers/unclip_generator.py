"""Images from embeddings of a CLIP, by Stable unCLIP and by the decoder of Kandinsky 2.2."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.bounds import Count, Positive
from weakspot.core.errors import ConfigError, DataError, ModelError, WeakspotError
from weakspot.core.registry import Sendable
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    PipelineModel,
    refuse_unequal,
)
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import model_id
from weakspot.models.transformers.source import TransformersModel

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
        self._source = TransformersModel(model=model, device="cpu")

    @LoadedOnce
    def identity(self) -> str:
        source = self._source
        if source.is_folder or self._has_config:
            return source.identity("clip-space")
        config = source.load("AutoConfig", subfolder="text_encoder")
        return model_id("clip-space", source.model, getattr(config, "_commit_hash", None))

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
                where=self._source.model,
                fix="Name the CLIP model whose embeddings the pipeline decodes.",
            )
        return model.eval()

    def _has_folders(self, folder: str) -> bool:
        if self._source.is_folder:
            return (Path(self._source.model) / folder).is_dir()
        return not self._has_config

    @LoadedOnce
    def _has_config(self) -> bool:
        try:
            self._source.load("AutoConfig")
        except WeakspotError:
            return False
        return True


FROM_IMAGES = "StableUnCLIPImg2ImgPipeline"
FROM_WORDS = "StableUnCLIPPipeline"
KANDINSKY = "KandinskyV22Pipeline"
DECODERS = (FROM_IMAGES, FROM_WORDS, KANDINSKY)


@dataclass(kw_only=True, eq=False)
class UnclipGenerator(PipelineModel):
    """Draws what an embedding of a CLIP says: `stabilityai/stable-diffusion-2-1-unclip` kinds, and Kandinsky 2.2 without its prior.

    Embeddings are unit vectors here; they get the length that the pipeline was trained on. Words are put into the same space by
    the text side of the same CLIP and decoded from there. Text embeddings lie apart from image embeddings, and no prior bridges the
    gap, so such images are less faithful than those of a text-to-image pipeline: this is for looking along a direction.

    The same embedding, words and seed give the same image, with the same reserve for a larger `batch_size` as for `diffusers`.

    Args:
        text_encoder: name or folder of the CLIP whose embeddings the pipeline decodes (or of Kandinsky's prior, which holds it);
            needed unless the pipeline has that text encoder itself.
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        noise_level: how much the embedding is blurred before it is decoded; more gives more varied images. Stable unCLIP only.
        embedding_length: length that embeddings get; None for what the pipeline says of its training embeddings, or the length of a
            black image's embedding if only the CLIP is known.
        batch_size: images a call of the pipeline.
    """

    text_encoder: str | None = None
    width: Count | None = None
    height: Count | None = None
    noise_level: int = 0
    embedding_length: Positive | None = None
    batch_size: Count = 1

    def __post_init__(self) -> None:
        self.text_encoder = None if self.text_encoder is None else str(self.text_encoder)
        super().__post_init__()

    @LoadedOnce
    def _named(self) -> NamedTower | None:
        return None if self.text_encoder is None else NamedTower(self.text_encoder)

    @LoadedOnce
    def generator_id(self) -> str:
        return self.identity("unclip", self.space_id, self.noise_level, self.embedding_length)

    @LoadedOnce
    def space_id(self) -> str:
        """Name and hash of the encoder whose embeddings are decoded."""
        if self._named is not None:
            return self._named.identity
        return model_id("clip-space", self.name, self.version)

    @LoadedOnce
    def dimension(self) -> int:
        pipeline, _ = self._parts
        if self.class_name == KANDINSKY:
            return int(pipeline.unet.config.encoder_hid_dim)
        return int(pipeline.image_normalizer.config.embedding_dim)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of captions in the space that is decoded.

        Raises:
            ConfigError: if no text encoder of the space is known.
        """
        return self._tower.embeddings(texts)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        refuse_unequal(len(seeds), prompts=len(prompts))
        return (
            self.decode(self.embed_texts(prompts), prompts=prompts, seeds=seeds) if prompts else []
        )

    def decode(
        self, embeddings: FloatArray, *, prompts: Sequence[str], seeds: Sequence[int]
    ) -> list[GeneratedImage]:
        """Return one image an embedding [n, d]; Stable unCLIP reads the words too, Kandinsky does not.

        Raises:
            DataError: if the embeddings are of another length than the pipeline's, zero, or not finite.
            ModelError: if the pipeline cannot be loaded or fails.
        """
        refuse_unequal(len(seeds), embeddings=len(embeddings), prompts=len(prompts))
        if not len(seeds):
            return []
        pipeline, _ = self._parts
        scaled = self._scale(embeddings)
        settings = self.call_options(pipeline)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            found = {"image_embeds": self._on_device(scaled[list(rows)]), **settings}
            if self.class_name == KANDINSKY:
                return found | {
                    "negative_image_embeds": self._on_device(np.stack([self._nothing] * len(rows)))
                }
            return found | {
                "prompt": [prompts[row] for row in rows],
                "noise_level": self.noise_level,
            }

        drawn = self.draw(pipeline, list(seeds), inputs)
        return self.images_of(drawn, prompts, seeds, self.generator_id)

    def _scale(self, embeddings: FloatArray) -> FloatArray:
        given = np.asarray(embeddings, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != self.dimension:  # noqa: PLR2004 - rows and columns
            raise DataError(
                f"The pipeline decodes embeddings of length {self.dimension}.",
                where=self.name,
                given=given.shape,
            )
        if not np.isfinite(given).all() or not np.abs(given).max(axis=1).all():
            raise DataError("An embedding to decode is zero or not finite.", where=self.name)
        return np.asarray(unit_rows(given) * self._length, dtype=np.float32)

    def _on_device(self, embeddings: FloatArray) -> Any:
        return self.torch.from_numpy(embeddings).to(self.place, self.numbers)

    @LoadedOnce
    def _length(self) -> float:
        if self.embedding_length is not None:
            return self.embedding_length
        pipeline, _ = self._parts
        if self.class_name != KANDINSKY:
            known = pipeline.image_normalizer
            squares = known.mean.detach().float() ** 2 + known.std.detach().float() ** 2
            return float(squares.sum().sqrt())
        black = None if self._named is None else self._named.black
        if black is None:
            raise ConfigError(
                "The length of the embeddings that this pipeline was trained on is not known.",
                where="options",
                fix="Name Kandinsky's prior as text_encoder, or set embedding_length.",
            )
        return float(np.linalg.norm(black))

    @LoadedOnce
    def _nothing(self) -> FloatArray:
        """Return the embedding that guidance leads away from: a black image's, or zeros if there is no image encoder."""
        black = None if self._named is None else self._named.black
        return np.zeros(self.dimension, dtype=np.float32) if black is None else black

    @LoadedOnce
    def _tower(self) -> TextTower:
        _, own = self._parts
        found = own if self._named is None else self._named.text
        if found is None:
            raise ConfigError(
                "The pipeline has no text encoder of the space that it decodes.",
                where="options",
                fix="Set text_encoder to the CLIP model that it was trained with, by name or folder.",
            )
        if found.dimension != self.dimension:
            raise ConfigError(
                f"The pipeline decodes embeddings of length {self.dimension}, the text encoder gives {found.dimension}.",
                where="options",
                fix="Set text_encoder to the CLIP model that the pipeline was trained with.",
            )
        return found

    @LoadedOnce
    def _parts(self) -> tuple[Any, TextTower | None]:
        """Return the pipeline that decodes, and the text side of the space if the pipeline brought it."""
        if self.class_name not in DECODERS:
            raise ModelError(
                f"{self.class_name} decodes no embeddings.",
                where=self.name,
                fix=f"Name one of {list(DECODERS)}.",
            )
        if self.class_name != FROM_WORDS:
            return self.pipeline(self.class_name), None
        whole = self.pipeline(FROM_WORDS, prior=None, prior_scheduler=None)
        tower = TextTower(
            model=whole.prior_text_encoder, tokenizer=whole.prior_tokenizer, torch=self.torch
        )
        shared = (
            "image_normalizer",
            "image_noising_scheduler",
            "tokenizer",
            "text_encoder",
            "unet",
            "scheduler",
            "vae",
        )
        with self.quiet():
            # The image encoder is asked for nothing but its kind of numbers when embeddings are given.
            decoder = self.kind(FROM_IMAGES)(
                feature_extractor=None,
                image_encoder=whole.prior_text_encoder,
                **{name: getattr(whole, name) for name in shared},
            )
        decoder.set_progress_bar_config(disable=True)
        return decoder, tower
