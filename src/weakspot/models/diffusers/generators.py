"""Images from words, from embeddings of a CLIP and from own images, by diffusion pipelines, by name or from a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.bounds import Count, Positive, PositiveFraction
from weakspot.core.errors import (
    ConfigError,
    DataError,
    ModelError,
    RefusedPromptError,
    WeakspotError,
)
from weakspot.core.generated import PASS
from weakspot.core.registry import Sendable
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    UNSAFE,
    GeneratedPixels,
    PipelineModel,
    RetunedPipeline,
    arguments_of,
    refuse_unequal,
)
from weakspot.models.edited_images import INSTRUCTION, EditsOwnImages, Parent, editing_problems
from weakspot.models.loading import LoadedOnce, file_hash, model_id
from weakspot.models.transformers.source import TransformersModel

CHECKER_CLASS = "StableDiffusionSafetyChecker"
FLAGGED = "the pipeline's safety checker flagged the image; its pixels are as they were drawn"


Checker = Callable[[GeneratedPixels], str]
"""Gives `pass`, or says that the image was flagged."""


def taken_out(source: PipelineModel, pipeline: Any) -> Checker | None:
    """Take the checker of Stable Diffusion out of a pipeline, so that it no longer blackens images, and return it.

    Checkers of other classes stay: pipelines count on them, and say themselves what they flagged.
    """
    network: Any = getattr(pipeline, "safety_checker", None)
    if type(network).__name__ != CHECKER_CLASS:
        return None
    processor = pipeline.feature_extractor
    pipeline.register_modules(safety_checker=None)

    def verdict(drawn: GeneratedPixels) -> str:
        with source.running(0):
            pixels = processor(images=[drawn.image], return_tensors="pt").pixel_values
            prepared = pixels.to(source.place, network.dtype)
            _, flags = network(clip_input=prepared, images=[drawn.values.copy()])
        return FLAGGED if flags[0] else PASS

    return verdict


SAFETY = ("record", "off")
_MAX_PROMPT_LENGTH = 512


def is_editor(class_name: str) -> bool:
    """Return whether a class of pipelines, by its name, only changes images that it is given.

    >>> [is_editor(f"{name}Pipeline") for name in ("FluxKontext", "StableDiffusionInpaint", "Flux2")]
    [True, True, False]
    """
    return any(word in class_name for word in ("Kontext", "Edit", "Pix2Pix", "Inpaint", "Fill"))


@dataclass(kw_only=True, eq=False)
class DiffusersGenerator(RetunedPipeline):
    """Stable Diffusion 1, 2, XL, turbo and 3, FLUX and whatever else diffusers loads as a pipeline from words to images.

    The same prompt and seed give the same image, whatever is asked for with it, as long as the pipeline draws one image a call.
    A larger `batch_size` is faster on a graphics card. Calls are then filled up to full batches (one image costs as much as
    `batch_size`), so that rounding does not follow the number of images; their place in the batch can still change the last bits
    of a sum and so, rarely, a pixel. Another batch size or kind of numbers is another generator.

    Nothing is blackened silently. The safety checker of Stable Diffusion is asked for its verdict, which is recorded, and the
    pixels stay as drawn. Where another pipeline blackens by itself, the verdict says so. An image with values that are not
    numbers has the verdict `not-finite`. A prompt that is longer than every text encoder reads is refused, not cut.

    Args:
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        batch_size: images a call of the pipeline.
        safety: record, or off to leave the checker out.
    """

    width: Count | None = None
    height: Count | None = None
    batch_size: Count = 1
    safety: str = "record"

    def _problems(self) -> list[str]:
        known = [] if self.safety in SAFETY else [f"safety: {self.safety!r} is not record or off"]
        return [*super()._problems(), *known]

    @LoadedOnce
    def generator_id(self) -> str:
        return self.identity("diffusers", self.safety)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt, the same for the same prompt and seed.

        Raises:
            RefusedPromptError: if a prompt is longer than the pipeline reads.
            ModelError: if the pipeline cannot be loaded or fails.
        """
        refuse_unequal(len(seeds), prompts=len(prompts))
        if not prompts:
            return []
        pipeline, _ = self._parts
        self._refuse_cut(prompts, pipeline)
        settings = self.call_options(pipeline)
        negative = settings.pop("negative_prompt", None)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            unwanted = {} if negative is None else {"negative_prompt": [negative] * len(rows)}
            return {"prompt": [prompts[row] for row in rows], **unwanted, **settings}

        drawn = self.draw(pipeline, list(seeds), inputs)
        images = self.images_of(drawn, prompts, seeds, self.generator_id)
        return [
            replace(image, verdicts=self._verdicts(one))
            for image, one in zip(images, drawn, strict=True)
        ]

    def _verdicts(self, drawn: GeneratedPixels) -> dict[str, str]:
        _, checker = self._parts
        if checker is None or self.safety == "off" or not drawn.is_finite:
            return drawn.verdicts
        return drawn.verdicts | {UNSAFE: checker(drawn)}

    def _refuse_cut(self, prompts: Sequence[str], pipeline: Any) -> None:
        parts = pipeline.components.items()
        tokenizers = [
            part for name, part in parts if name.startswith("tokenizer") and part is not None
        ]
        for prompt in prompts:
            with self.quiet():
                n_over = [
                    len(part(prompt).input_ids) - min(part.model_max_length, _MAX_PROMPT_LENGTH)
                    for part in tokenizers
                ]
            if n_over and min(n_over) > 0:
                raise RefusedPromptError(
                    f"The prompt is {min(n_over)} tokens longer than the pipeline reads; its end would be left out.",
                    where=self.model,
                    given=prompt,
                    fix="Say it in fewer words.",
                )

    @LoadedOnce
    def _parts(self) -> tuple[Any, Checker | None]:
        written_by = arguments_of(self.kind(self.class_name))
        if is_editor(self.class_name):
            raise ModelError(
                f"{self.class_name} changes an image that it is given and draws none from words alone.",
                where=self.model,
                fix="Set the generator to `edit` to have your own images changed, or name a text-to-image pipeline.",
            )
        # What was written as a pipeline that also takes an image may have a sibling of the same parts that takes words alone.
        pipeline = self.pipeline(
            "AutoPipelineForText2Image" if "image" in written_by else "DiffusionPipeline"
        )
        if "prompt" not in arguments_of(type(pipeline)):
            raise ModelError(
                f"{type(pipeline).__name__} draws nothing from words.",
                where=self.model,
                fix="Name a text-to-image pipeline.",
            )
        return pipeline, taken_out(self, pipeline)


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


Mode = Literal["instruct", "fill", "redraw", "control"]
MODES = get_args(Mode)
CONTROLS = ("canny", "image")
SIBLINGS = {
    "fill": "AutoPipelineForInpainting",
    "redraw": "AutoPipelineForImage2Image",
    "control": "AutoPipelineForText2Image",
}
CONTROLLED = frozenset({"control_image", "controlnet_conditioning_scale"})
SIDE = 512
EDGES = (100, 200)
"""Below the first a step in a colour is no edge, above the second it is one, in between if it goes on from one."""
OTHER_TASKS = ("Upscale", "SuperResolution", "Video", "Variation", "Marigold", "Layered")


@dataclass(kw_only=True, eq=False)
class DiffusersEditor(EditsOwnImages, RetunedPipeline):
    """Changes images of the class that a prompt names so that they show what the prompt says, and keeps the rest.

    What the pipeline takes decides how. *Editing* pipelines (InstructPix2Pix, FLUX.1 Kontext, FLUX.2, Qwen-Image-Edit) get the image
    and an instruction. Pipelines with a *mask* (inpainting and fill kinds of Stable Diffusion, SDXL, FLUX and Qwen-Image) draw anew
    the background where the prompt names a place, and otherwise the object; what lies outside of the mask is that of the image,
    pixel by pixel. Pipelines with a *ControlNet* get the outlines of the image and draw along them. A text-to-image pipeline is
    loaded as its inpainting sibling, or with `mode = "redraw"` as the one that starts from a noisy copy of the image.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.

    Args:
        mode: instruct, fill, redraw or control; empty for what the pipeline is made for.
        instruction: what editing pipelines are told; `{prompt}` stands for the prompt.
        side: longest side of the images in pixels, rounded to what pipelines take.
        strength: how much of an image is drawn in mode redraw, 0 to 1.
        controlnet: name on the hub or folder of a ControlNet that fits the pipeline; empty if the pipeline has one or needs none.
        control: what a ControlNet is shown: canny for the outlines of the image, image for the image itself.
    """

    mode: str = ""
    instruction: str = INSTRUCTION
    side: int = SIDE
    strength: PositiveFraction = 0.6
    controlnet: str = ""
    control: str = "canny"

    def __post_init__(self) -> None:
        self.controlnet = str(self.controlnet)
        super().__post_init__()

    def _problems(self) -> list[str]:
        choices = (("mode", ("", *MODES)), ("control", CONTROLS))
        return [
            *super()._problems(),
            *(
                f"{name}: {getattr(self, name)!r} (known: {', '.join(filter(None, known))})"
                for name, known in choices
                if getattr(self, name) not in known
            ),
            *editing_problems(self.instruction, self.side),
        ]

    @property
    def generator_id(self) -> str:
        asked = (self.mode, self.instruction, self.side, float(self.strength))
        digest = "" if self._own is None else self._own.digest
        folder = Path(self.controlnet)
        named = (
            file_hash(folder) if self.controlnet and folder.is_dir() else self.controlnet,
            self.control,
        )
        controlled = () if named == ("", CONTROLS[0]) else named
        return self.identity("edit", *asked, digest, *controlled)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one changed image a prompt.

        Raises:
            RefusedPromptError: if a prompt names none of the classes.
            ModelError: if the pipeline cannot be loaded or fails, or no image of the class can be used.
        """
        refuse_unequal(len(seeds), prompts=len(prompts))
        return [self._edit(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _edit(self, prompt: str, seed: int) -> GeneratedImage:
        parent = self._parent(prompt, seed)
        (drawn,) = self.draw(self._pipeline, [seed], lambda _: self._inputs(prompt, parent))
        return GeneratedImage(
            image=parent.kept_outside(drawn.image),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
            parents=(parent.sample_id,),
            verdicts=drawn.verdicts,
        )

    def _inputs(self, prompt: str, parent: Parent) -> dict[str, Any]:
        takes = arguments_of(type(self._pipeline))
        options = self.call_options(self._pipeline)
        width, height = parent.image.size
        sized = {"width": width, "height": height} if {"width", "height"} <= takes else {}
        if "_auto_resize" in takes:
            # FLUX.1 Kontext would enlarge every image to a million pixels.
            sized |= {"_auto_resize": False, "max_area": width * height}
        if self._mode == "redraw":
            options |= {"strength": self.strength}
            sized = {}
        if self._mode == "fill":
            options |= {"mask_image": parent.mask}
        words = self.instruction.replace("{prompt}", prompt) if self._mode == "instruct" else prompt
        return {"prompt": words, **self._shown(parent, takes), **sized, **options}

    def _shown(self, parent: Parent, takes: frozenset[str]) -> dict[str, Image.Image]:
        """Return the images that the pipeline is given, by the names of its arguments."""
        shown = {"image": parent.image} if "image" in takes else {}
        if CONTROLLED & takes:
            outlines = parent.image if self.control == "image" else _outlines(parent.image)
            shown["control_image" if "control_image" in takes else "image"] = outlines
        return shown

    @property
    def _takes_masks(self) -> bool:
        return self._mode == "fill"

    @property
    def _model_name(self) -> str:
        return self.model

    @cached_property
    def _mode(self) -> Mode:
        takes = self._arguments
        if self.mode:
            return self.mode  # type: ignore[return-value]
        if "mask_image" in takes:
            return "fill"
        if self.controlnet or CONTROLLED & takes:
            return "control"
        return "instruct" if "image" in takes and "strength" not in takes else "fill"

    @cached_property
    def _arguments(self) -> frozenset[str]:
        found = arguments_of(self.kind(self.class_name))
        if "prompt" not in found or any(task in self.class_name for task in OTHER_TASKS):
            raise self._no_editor("does another thing than changing an image as words say")
        return found

    @cached_property
    def _pipeline(self) -> Any:
        takes = self._arguments
        needed = {
            "instruct": "image" in takes and "strength" not in takes,
            "fill": "mask_image" in takes,
            "redraw": "strength" in takes,
            "control": bool(CONTROLLED & takes),
        }[self._mode]
        is_ready = needed and not self.controlnet
        kind = "DiffusionPipeline" if is_ready else SIBLINGS.get(self._mode, "")
        if not kind or (self._mode == "control" and not is_ready and not self.controlnet):
            raise self._no_editor(
                "takes no image to change"
                if self._mode == "instruct"
                else "has no ControlNet, and none is named"
            )
        parts = {"controlnet": self.part(self.controlnet)} if self.controlnet else {}
        made = self._loaded(kind, parts)
        if getattr(made, "safety_checker", None) is not None:
            made.register_modules(safety_checker=None)
        return made

    def _loaded(self, kind: str, parts: dict[str, Any]) -> Any:
        try:
            return self.pipeline(kind, **parts)
        except ModelError as error:
            if "AutoPipeline can't find" not in str(error):
                raise
            raise self._no_editor(f"has no sibling for the mode {self._mode!r}") from error

    def _no_editor(self, why: str) -> ModelError:
        return ModelError(
            f"{self.class_name} {why}.",
            where=self.model,
            fix="Name an editing pipeline (Qwen-Image-Edit, FLUX.1 Kontext, FLUX.2, InstructPix2Pix), one that fills in "
            'or that has siblings (Stable Diffusion, SDXL, FLUX; mode = "fill" or "redraw"), or a ControlNet (controlnet).',
        )


def _outlines(image: Image.Image) -> Image.Image:
    """Return the edges of an image in white on black; of its colours, since two colours may be equally bright."""
    import cv2

    return Image.fromarray(cv2.Canny(np.asarray(image), *EDGES)).convert("RGB")
