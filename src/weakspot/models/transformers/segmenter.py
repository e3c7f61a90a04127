"""Masks of objects by models of the transformers library, by hub name or from a folder."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.bounds import Fraction
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import ObjectMask
from weakspot.models.loading import LoadedOnce
from weakspot.models.transformers.source import TransformersModel

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
