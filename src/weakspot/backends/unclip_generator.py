"""Pictures from vectors of a CLIP, by Stable unCLIP and by the decoder of Kandinsky 2.2."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.diffusers_drawing import draw, refuse_unequal
from weakspot.backends.diffusers_source import PipelineSettings, PipelineSource
from weakspot.backends.diffusers_text_tower import NamedTower, TextTower
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import model_id
from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.roles import GeneratedPicture
from weakspot.core.sending import Sendable

FROM_PICTURES = "StableUnCLIPImg2ImgPipeline"
FROM_WORDS = "StableUnCLIPPipeline"
KANDINSKY = "KandinskyV22Pipeline"
DECODERS = (FROM_PICTURES, FROM_WORDS, KANDINSKY)


class UnclipGenerator(Sendable):
    """Draws what a vector of a CLIP says: `stabilityai/stable-diffusion-2-1-unclip` kinds, and Kandinsky 2.2 without its prior.

    Vectors are unit vectors here; they are given the length that the pipeline was trained on. Words are put into the same space by
    the text side of the same CLIP and decoded from there. Text vectors lie apart from picture vectors, and no prior bridges the
    gap, so such pictures are less faithful than those of a text-to-image pipeline: this is for looking along a direction.

    The same vector, words and seed give the same picture, with the same reserve for a larger `batch_size` as for `diffusers`.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        text_encoder: name or folder of the CLIP whose vectors the pipeline decodes (or of Kandinsky's prior, which holds it);
            needed unless the pipeline has that text encoder itself.
        revision: branch, tag or commit of the pipeline on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: auto, float32, float16 or bfloat16; auto is float16 on a graphics card and float32 elsewhere.
        steps: denoising steps; None for the pipeline's own number.
        guidance_scale: how closely the vector is followed; None for the pipeline's own.
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        noise_level: how much the vector is blurred before it is decoded; more gives more varied pictures. Stable unCLIP only.
        vector_length: length that vectors are given; None for what the pipeline says of its training vectors, or the length of a
            black picture's vector if only the CLIP is known.
        batch_size: pictures a call of the pipeline.
        variant: kind of weight files, for example fp16.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
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
        vector_length: float | None = None,
        batch_size: int = 1,
        variant: str | None = None,
    ) -> None:
        if vector_length is not None and not (math.isfinite(vector_length) and vector_length > 0):
            raise ConfigError("vector_length must be a positive number.", where="options", given=vector_length)
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
        self._vector_length = vector_length

    @LoadedOnce
    def generator_id(self) -> str:
        """Name and hash of weights, of the space, and of every setting that decides pixels."""
        return self._source.identity("unclip", self.space_id, self._noise_level, self._vector_length)

    @LoadedOnce
    def space_id(self) -> str:
        """Name and hash of the encoder whose vectors are decoded."""
        if self._named is not None:
            return self._named.identity
        return model_id("clip-space", self._source.name, self._source.version)

    @LoadedOnce
    def dimension(self) -> int:
        """Length of the vectors."""
        pipeline, _ = self._parts
        if self._source.class_name == KANDINSKY:
            return int(pipeline.unet.config.encoder_hid_dim)
        return int(pipeline.image_normalizer.config.embedding_dim)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of captions in the space that is decoded.

        Raises:
            ConfigError: if no text encoder of the space is known.
        """
        return self._tower.vectors(texts)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedPicture]:
        """Return one picture a prompt, decoded from the prompt's vector."""
        refuse_unequal(len(seeds), prompts=len(prompts))
        return self.decode(self.embed_texts(prompts), prompts=prompts, seeds=seeds) if prompts else []

    def decode(self, vectors: FloatArray, *, prompts: Sequence[str], seeds: Sequence[int]) -> list[GeneratedPicture]:
        """Return one picture a vector [n, d]; Stable unCLIP reads the words too, Kandinsky does not.

        Raises:
            DataError: if the vectors are of another length than the pipeline's, zero, or not finite.
            ModelError: if the pipeline cannot be loaded or fails.
        """
        refuse_unequal(len(seeds), vectors=len(vectors), prompts=len(prompts))
        if not len(seeds):
            return []
        pipeline, _ = self._parts
        scaled = self._scaled(vectors)
        settings = self._source.call_options(pipeline)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            found = {"image_embeds": self._on_device(scaled[list(rows)]), **settings}
            if self._source.class_name == KANDINSKY:
                return found | {"negative_image_embeds": self._on_device(np.stack([self._nothing] * len(rows)))}
            return found | {"prompt": [prompts[row] for row in rows], "noise_level": self._noise_level}

        drawn = draw(self._source, pipeline, list(seeds), inputs)
        return [
            GeneratedPicture(picture=one.picture, prompt=prompt, seed=seed, generator_id=self.generator_id, verdicts=one.verdicts)
            for one, prompt, seed in zip(drawn, prompts, seeds, strict=True)
        ]

    def _scaled(self, vectors: FloatArray) -> FloatArray:
        given = np.asarray(vectors, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != self.dimension:  # noqa: PLR2004 - rows and columns
            raise DataError(f"The pipeline decodes vectors of length {self.dimension}.", where=self._source.name, given=given.shape)
        if not np.isfinite(given).all() or not np.abs(given).max(axis=1).all():
            raise DataError("A vector to decode is zero or not finite.", where=self._source.name)
        return np.asarray(unit_rows(given) * self._length, dtype=np.float32)

    def _on_device(self, vectors: FloatArray) -> Any:
        return self._source.torch.from_numpy(vectors).to(self._source.device, self._source.dtype)

    @LoadedOnce
    def _length(self) -> float:
        """Return the length of the vectors that the pipeline was trained on."""
        if self._vector_length is not None:
            return self._vector_length
        pipeline, _ = self._parts
        if self._source.class_name != KANDINSKY:
            known = pipeline.image_normalizer
            squares = known.mean.detach().float() ** 2 + known.std.detach().float() ** 2
            return float(squares.sum().sqrt())
        black = None if self._named is None else self._named.black
        if black is None:
            raise ConfigError(
                "The length of the vectors that this pipeline was trained on is not known.",
                where="options",
                fix="Name Kandinsky's prior as text_encoder, or set vector_length.",
            )
        return float(np.linalg.norm(black))

    @LoadedOnce
    def _nothing(self) -> FloatArray:
        """Return the vector that guidance leads away from: a black picture's, or zeros if there is no image encoder."""
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
                f"The pipeline decodes vectors of length {self.dimension}, the text encoder gives {found.dimension}.",
                where="options",
                fix="Set text_encoder to the CLIP model that the pipeline was trained with.",
            )
        return found

    @LoadedOnce
    def _parts(self) -> tuple[Any, TextTower | None]:
        """Return the pipeline that decodes, and the text side of the space if the pipeline brought it."""
        source = self._source
        if source.class_name not in DECODERS:
            raise ModelError(f"{source.class_name} decodes no vectors.", where=source.name, fix=f"Name one of {list(DECODERS)}.")
        if source.class_name != FROM_WORDS:
            return source.pipeline(source.class_name), None
        whole = source.pipeline(FROM_WORDS, prior=None, prior_scheduler=None)
        tower = TextTower(model=whole.prior_text_encoder, tokenizer=whole.prior_tokenizer, torch=source.torch)
        shared = ("image_normalizer", "image_noising_scheduler", "tokenizer", "text_encoder", "unet", "scheduler", "vae")
        with source.quiet():
            # The image encoder is asked for nothing but its kind of numbers when vectors are given.
            decoder = source.kind(FROM_PICTURES)(
                feature_extractor=None,
                image_encoder=whole.prior_text_encoder,
                **{name: getattr(whole, name) for name in shared},
            )
        decoder.set_progress_bar_config(disable=True)
        return decoder, tower
