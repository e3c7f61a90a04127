"""What models of the transformers library say of images, by hub name or from a folder: classes, embeddings, masks of objects."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.bounds import Fraction
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ObjectMask
from weakspot.models.class_scores import (
    labels_in_order,
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
)
from weakspot.models.loading import LoadedOnce, model_id, reloaded, settings_hash
from weakspot.models.preprocessing import (
    RESAMPLES,
    Preprocessing,
    plain_preprocessing,
    preprocessing_from,
    preprocessing_of_processor,
    processor_call,
)
from weakspot.models.torch.network import (
    NetworkClassifier,
    NetworkSettings,
    TorchNetwork,
    make_network,
)
from weakspot.models.torch.runtime import fill_layer, torch_device
from weakspot.models.transformers.source import TransformersModel

MULTI_LABEL = "multi_label_classification"
UNNAMED = "LABEL_"
IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")


class TransformersClassifier(NetworkClassifier):
    """An image classifier of the transformers library. Code that comes with a model is never run.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        class_names: one name an output; by default the model's own.
        task: `single-label` or `multi-label`; by default what the model's configuration says.
        scores: whether the model gives `logits` or `probabilities`; `auto` sees for itself.
        feature_layer: name of the linear layer whose input is taken as features; by default the one that gives the scores.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`.
        dtype: `float32`, `float16` or `bfloat16`.
        images: what to prepare otherwise than the model's own processor does, see `IMAGE_OPTIONS`.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        revision: str | None = None,
        class_names: Sequence[str] | None = None,
        task: str | None = None,
        scores: str = "auto",
        feature_layer: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        **images: Any,
    ) -> None:
        self._hub = TransformersModel(model=str(model), revision=revision)
        self._given_names = parsed_class_names(class_names)
        self._given_task = None if task is None else parsed_task(task)
        self._scores = parsed_score_kind(scores)
        self._feature_layer = feature_layer
        self._device = device
        self._dtype = dtype
        self._image_settings = images

    @LoadedOnce
    def classifier_id(self) -> str:
        network = self._network
        return model_id(
            "transformers",
            self._hub.name,
            network.weights_hash,
            self._images[2],
            network.reader.kind,
            self._dtype,
        )

    @LoadedOnce
    def class_names(self) -> tuple[str, ...] | None:
        """The classes as given, or as the model names them; None where it only numbers them."""
        if self._given_names is not None:
            return self._given_names
        names = labels_in_order(self._module.config.id2label or {})
        return (
            None
            if names is None or all(name.startswith(UNNAMED) for name in names)
            else parsed_class_names(names)
        )

    @property
    def task(self) -> Task:
        if self._given_task is not None:
            return self._given_task
        return (
            Task.MULTI_LABEL
            if self._module.config.problem_type == MULTI_LABEL
            else Task.SINGLE_LABEL
        )

    @property
    def image_side(self) -> int | None:
        return self._images[1]

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._images[0](image)

    @LoadedOnce
    def _module(self) -> Any:
        return self._fresh()

    def _fresh(self) -> Any:
        module, report = self._hub.load("AutoModelForImageClassification", output_loading_info=True)
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"The model holds no trained classifier: {len(missing)} weights are missing, such as {missing[:3]}.",
                where=self._hub.model,
                fix="Name a model that was trained to classify images.",
            )
        return module

    @LoadedOnce
    def _images(self) -> tuple[Callable[[Image.Image], AnyArray], int | None, dict[str, Any]]:
        """Return what prepares an image, the side it needs, and its settings."""
        processor = self._processor()
        plain = plain_preprocessing(processor.to_dict(), where=self._hub.model)
        if plain is None and not self._image_settings:
            return processor_call(processor), None, processor.to_dict()
        wanted = preprocessing_from(
            self._image_settings, **({} if plain is None else plain.as_settings())
        )
        return wanted.apply, wanted.needed_side, wanted.as_settings()

    def _processor(self) -> Any:
        return self._hub.load(
            "AutoImageProcessor",
            **({"use_fast": False} if self._hub.is_first_form else {"backend": "pil"}),
        )

    def _load_network(self) -> TorchNetwork:
        settings = NetworkSettings(
            class_names=self.class_names,
            task=self.task,
            scores=self._scores,
            feature_layer=self._feature_layer,
            device=self._device,
            dtype=self._dtype,
        )
        return make_network(self._module, settings, probes=self._probes(), where=self._hub.model)

    def named_tensors(self) -> Mapping[str, Any]:
        tensors: Mapping[str, Any] = self._fresh().state_dict()
        return tensors

    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        module = self._check(self._fresh())
        fill_layer(module, layer, rows, where=self._hub.model)
        with self._hub.quiet():
            module.save_pretrained(folder)
            if not self._hub.is_folder:
                self._processor().save_pretrained(folder)
        for kept in IMAGE_FILES if self._hub.is_folder else ():
            if (Path(self._hub.model) / kept).is_file():
                shutil.copyfile(Path(self._hub.model) / kept, folder / kept)
        return next(path for name in WEIGHT_FILES if (path := folder / name).is_file())

    def _read_back(self, path: Path) -> "TransformersClassifier":
        other: TransformersClassifier = reloaded(
            self, _hub=replace(self._hub, model=str(path.parent), revision=None)
        )
        return other


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


PROMPT = "a photo of a {class}"
INSIDE = 0.5
MIN_SHARE = 0.002
BY_WORDS = frozenset({"clipseg"})
BY_CONCEPT = frozenset({"sam3"})
BY_POINT = frozenset({"sam", "sam2", "sam2_video", "sam_hq", "edgetam"})
BY_QUERIES = frozenset({"mask2former", "maskformer", "oneformer", "eomt"})
BY_PIXELS = frozenset({"segformer", "beit", "dpt", "upernet", "mobilevit", "mobilenet_v2"})
NOTHING = "the model finds no such object"

Scored = tuple[FloatArray, float]


@dataclass(kw_only=True, eq=False)
class TransformersSegmenter(TransformersModel):
    """One mask an image, by a model that takes words, a point, or has labels of its own.

    CLIPSeg and SAM 3 take the class as words, SAM and SAM 2 the middle of the image as a point. Of labels of its own
    (Mask2Former, MaskFormer, OneFormer, SegFormer and others) one must be the class.

    The quality is the model's own estimate: what SAM says of the overlap, else how sure it is of the pixels inside. Models whose
    code comes from the hub (BiRefNet) are refused: such code is never run.

    Args:
        labels: class to the label of the model that means it, where the two are not called alike.
        least_quality: a mask whose quality is lower is refused.
    """

    labels: Mapping[str, str] | None = None
    least_quality: Fraction = 0.6

    @LoadedOnce
    def segmenter_id(self) -> str:
        """Name and hash of weights and of what else decides the masks."""
        labels = sorted((self.labels or {}).items())
        return self.identity("transformers-segmenter", PROMPT, labels, self.least_quality)

    @property
    def image_side(self) -> int | None:
        return None

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where the model does not know the class or is not sure."""
        if len(images) != len(class_names):
            raise ConfigError(
                "Every image needs the name of its class.", given=(len(images), len(class_names))
            )
        return [
            self._mask(image.convert("RGB"), class_name)
            for image, class_name in zip(images, class_names, strict=True)
        ]

    def _mask(self, image: Image.Image, class_name: str) -> ObjectMask:
        with self.running():
            coverage, quality = self._ask(self, image, class_name)
        fitted = _fitted(coverage, image.size)
        refused = ""
        if (fitted > INSIDE).mean() < MIN_SHARE:
            refused = NOTHING
        elif quality < self.least_quality:
            refused = f"the model gives its mask the quality {quality:.2f}"
        return ObjectMask(
            coverage=fitted, quality=float(np.clip(quality, 0.0, 1.0)), refused=refused
        )

    def _by_words(self, image: Image.Image, class_name: str) -> Scored:
        logits = self._run(image, text=[PROMPT.replace("{class}", class_name)]).logits
        return _with_certainty(_numbers(logits.sigmoid().reshape(logits.shape[-2:])))

    def _by_concept(self, image: Image.Image, class_name: str) -> Scored:
        found = self._run(image, text=class_name)
        scores = _numbers(found.pred_logits.sigmoid()[0])
        masks = _numbers(found.pred_masks.sigmoid()[0])
        best = int(scores.argmax())
        return masks[best], float(scores[best])

    def _by_point(self, image: Image.Image, _class_name: str) -> Scored:
        middle = [image.width / 2, image.height / 2]
        levels = 1 if self._kind in ("sam", "sam_hq") else 2
        points: Any = [[middle]]
        for _ in range(levels - 1):
            points = [points]
        found = self._run(image, input_points=points)
        scores = _numbers(found.iou_scores).reshape(-1)
        masks = _numbers(found.pred_masks.sigmoid())
        masks = masks.reshape(-1, *masks.shape[-2:])
        best = int(scores.argmax())
        return self._without_padding(masks[best], image), float(np.clip(scores[best], 0.0, 1.0))

    def _without_padding(self, mask: FloatArray, image: Image.Image) -> FloatArray:
        """Return a mask without what was added to make the image square, as SAM 1 does it."""
        if self._kind not in ("sam", "sam_hq"):
            return mask
        longest = max(image.size)
        height, width = (round(len(mask) * side / longest) for side in (image.height, image.width))
        return mask[: max(1, height), : max(1, width)]

    def _by_queries(self, image: Image.Image, class_name: str) -> Scored:
        label = self._label(class_name)
        further = {"task_inputs": ["semantic"]} if self._kind == "oneformer" else {}
        found = self._run(image, **further)
        labels = found.class_queries_logits.softmax(dim=-1)[0, :, label]
        masks = found.masks_queries_logits.sigmoid()[0]
        return _with_certainty(_numbers((labels[:, None, None] * masks).sum(dim=0).clamp(0, 1)))

    def _by_pixels(self, image: Image.Image, class_name: str) -> Scored:
        label = self._label(class_name)
        return _with_certainty(_numbers(self._run(image).logits.softmax(dim=1)[0, label]))

    def _label(self, class_name: str) -> int:
        wanted = _words((self.labels or {}).get(class_name, class_name))
        named = {int(number): str(name) for number, name in self.config.id2label.items()}
        for number, name in named.items():
            if any(_words(part) == wanted for part in (name, *name.split(","))):
                return number
        raise ModelError(
            f"The segmenter has no label for the class {class_name!r}.",
            where=self.model,
            given=sorted(named.values())[:20],
            fix="Name the label that means it in options.labels, or choose a model that takes words (CLIPSeg, SAM 3).",
        )

    def _run(self, image: Image.Image, **further: Any) -> Any:
        module, processor = self._loaded
        given = processor(images=image, return_tensors="pt", **further)
        known = {
            name: value.to(module.device)
            for name, value in given.items()
            if hasattr(value, "to") and name not in ("original_sizes", "reshaped_input_sizes")
        }
        return module(
            **{
                name: value.to(module.dtype) if value.is_floating_point() else value
                for name, value in known.items()
            }
        )

    @property
    def _kind(self) -> str:
        return str(self.config.model_type)

    @property
    def _ask(self) -> Callable[["TransformersSegmenter", Image.Image, str], Scored]:
        return _FAMILIES[self._family][1]

    @property
    def _family(self) -> frozenset[str]:
        for family in _FAMILIES:
            if self._kind in family:
                return family
        raise ModelError(
            f"No segmenter of the kind {self._kind!r} is known.",
            where=self.model,
            fix="Choose CLIPSeg, SAM, SAM 2, SAM 3, Mask2Former, MaskFormer, OneFormer or SegFormer.",
        )

    @LoadedOnce
    def _loaded(self) -> tuple[Any, Any]:
        is_worded = self._kind in BY_WORDS | BY_CONCEPT | BY_POINT | {"oneformer"}
        processor = self.load("AutoProcessor" if is_worded else "AutoImageProcessor")
        return self.network(_FAMILIES[self._family][0]), processor


_FAMILIES: dict[
    frozenset[str],
    tuple[str, Callable[[TransformersSegmenter, Image.Image, str], Scored]],
] = {
    BY_WORDS: ("CLIPSegForImageSegmentation", TransformersSegmenter._by_words),  # noqa: SLF001
    BY_CONCEPT: ("Sam3Model", TransformersSegmenter._by_concept),  # noqa: SLF001
    BY_POINT: ("AutoModelForMaskGeneration", TransformersSegmenter._by_point),  # noqa: SLF001
    BY_QUERIES: ("AutoModelForUniversalSegmentation", TransformersSegmenter._by_queries),  # noqa: SLF001
    BY_PIXELS: ("AutoModelForSemanticSegmentation", TransformersSegmenter._by_pixels),  # noqa: SLF001
}


def _with_certainty(shares: FloatArray) -> Scored:
    inside = shares > INSIDE
    return shares, float(shares[inside].mean()) if inside.any() else 0.0


def _numbers(tensor: Any) -> FloatArray:
    return np.asarray(tensor.float().cpu().numpy(), dtype=np.float32)


def _fitted(coverage: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Return a coverage at the size (width, height) of its image."""
    resized = Image.fromarray(coverage).resize(size, Image.Resampling.BILINEAR)
    return np.clip(np.asarray(resized, dtype=np.float32), 0.0, 1.0)


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+", name.lower()))
