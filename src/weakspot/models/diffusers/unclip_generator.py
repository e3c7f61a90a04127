"""Images from embeddings of a CLIP, by Stable unCLIP and by the decoder of Kandinsky 2.2."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import ConfigError, DataError, ModelError, WeakspotError
from weakspot.core.registry import Sendable
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    PipelineSettings,
    PipelineSource,
    draw,
    refuse_unequal,
)
from weakspot.models.loading import LoadedOnce
from weakspot.models.model_hash import model_id
from weakspot.models.transformers.source import TransformersSettings, TransformersSource

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


FROM_IMAGES = "StableUnCLIPImg2ImgPipeline"
FROM_WORDS = "StableUnCLIPPipeline"
KANDINSKY = "KandinskyV22Pipeline"
DECODERS = (FROM_IMAGES, FROM_WORDS, KANDINSKY)


class UnclipGenerator(Sendable):
    """Draws what an embedding of a CLIP says: `stabilityai/stable-diffusion-2-1-unclip` kinds, and Kandinsky 2.2 without its prior.

    Embeddings are unit vectors here; they get the length that the pipeline was trained on. Words are put into the same space by
    the text side of the same CLIP and decoded from there. Text embeddings lie apart from image embeddings, and no prior bridges the
    gap, so such images are less faithful than those of a text-to-image pipeline: this is for looking along a direction.

    The same embedding, words and seed give the same image, with the same reserve for a larger `batch_size` as for `diffusers`.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        text_encoder: name or folder of the CLIP whose embeddings the pipeline decodes (or of Kandinsky's prior, which holds it);
            needed unless the pipeline has that text encoder itself.
        revision: branch, tag or commit of the pipeline on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: auto, float32, float16 or bfloat16; auto is float16 on a graphics card and float32 elsewhere.
        steps: denoising steps; None for the pipeline's own number.
        guidance_scale: how closely the embedding is followed; None for the pipeline's own.
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        noise_level: how much the embedding is blurred before it is decoded; more gives more varied images. Stable unCLIP only.
        embedding_length: length that embeddings get; None for what the pipeline says of its training embeddings, or the length of a
            black image's embedding if only the CLIP is known.
        batch_size: images a call of the pipeline.
        variant: kind of weight files, for example fp16.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        text_encoder: str | Path | None = None,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        steps: int | None = None,
        guidance_scale: float | None = None,
        width: int | None = None,
        height: int | None = None,
        noise_level: int = 0,
        embedding_length: float | None = None,
        batch_size: int = 1,
        variant: str | None = None,
    ) -> None:
        if embedding_length is not None and not (
            math.isfinite(embedding_length) and embedding_length > 0
        ):
            raise ConfigError(
                "embedding_length must be a positive number.",
                where="options",
                given=embedding_length,
            )
        self._source = PipelineSource(
            PipelineSettings(
                model=str(model),
                revision=revision,
                variant=variant,
                device=device,
                dtype=dtype,
                steps=steps,
                guidance_scale=guidance_scale,
                width=width,
                height=height,
                batch_size=batch_size,
            )
        )
        self._named = None if text_encoder is None else NamedTower(str(text_encoder))
        self._noise_level = noise_level
        self._embedding_length = embedding_length

    @LoadedOnce
    def generator_id(self) -> str:
        return self._source.identity(
            "unclip", self.space_id, self._noise_level, self._embedding_length
        )

    @LoadedOnce
    def space_id(self) -> str:
        """Name and hash of the encoder whose embeddings are decoded."""
        if self._named is not None:
            return self._named.identity
        return model_id("clip-space", self._source.name, self._source.version)

    @LoadedOnce
    def dimension(self) -> int:
        pipeline, _ = self._parts
        if self._source.class_name == KANDINSKY:
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
        settings = self._source.call_options(pipeline)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            found = {"image_embeds": self._on_device(scaled[list(rows)]), **settings}
            if self._source.class_name == KANDINSKY:
                return found | {
                    "negative_image_embeds": self._on_device(np.stack([self._nothing] * len(rows)))
                }
            return found | {
                "prompt": [prompts[row] for row in rows],
                "noise_level": self._noise_level,
            }

        drawn = draw(self._source, pipeline, list(seeds), inputs)
        return [
            GeneratedImage(
                image=one.image,
                prompt=prompt,
                seed=seed,
                generator_id=self.generator_id,
                verdicts=one.verdicts,
            )
            for one, prompt, seed in zip(drawn, prompts, seeds, strict=True)
        ]

    def _scale(self, embeddings: FloatArray) -> FloatArray:
        given = np.asarray(embeddings, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != self.dimension:  # noqa: PLR2004 - rows and columns
            raise DataError(
                f"The pipeline decodes embeddings of length {self.dimension}.",
                where=self._source.name,
                given=given.shape,
            )
        if not np.isfinite(given).all() or not np.abs(given).max(axis=1).all():
            raise DataError(
                "An embedding to decode is zero or not finite.", where=self._source.name
            )
        return np.asarray(unit_rows(given) * self._length, dtype=np.float32)

    def _on_device(self, embeddings: FloatArray) -> Any:
        return self._source.torch.from_numpy(embeddings).to(self._source.device, self._source.dtype)

    @LoadedOnce
    def _length(self) -> float:
        if self._embedding_length is not None:
            return self._embedding_length
        pipeline, _ = self._parts
        if self._source.class_name != KANDINSKY:
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
        source = self._source
        if source.class_name not in DECODERS:
            raise ModelError(
                f"{source.class_name} decodes no embeddings.",
                where=source.name,
                fix=f"Name one of {list(DECODERS)}.",
            )
        if source.class_name != FROM_WORDS:
            return source.pipeline(source.class_name), None
        whole = source.pipeline(FROM_WORDS, prior=None, prior_scheduler=None)
        tower = TextTower(
            model=whole.prior_text_encoder, tokenizer=whole.prior_tokenizer, torch=source.torch
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
        with source.quiet():
            # The image encoder is asked for nothing but its kind of numbers when embeddings are given.
            decoder = source.kind(FROM_IMAGES)(
                feature_extractor=None,
                image_encoder=whole.prior_text_encoder,
                **{name: getattr(whole, name) for name in shared},
            )
        decoder.set_progress_bar_config(disable=True)
        return decoder, tower
