"""Which of a user's own images an editor changes for a prompt and a seed, and where in the image."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from PIL import Image, ImageChops

from weakspot.core.arrays import generator
from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.core.registry import Sendable
from weakspot.words.captions import built_in_vocabulary, noun_of, plain_caption
from weakspot.words.meanings import covers, phrase_words

INSTRUCTION = "Change the image into {prompt}. Keep everything else as it is."
STEP = 16
MAX_TRIED = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class Parent:
    """One of the user's images, ready to be changed.

    Args:
        sample_id: which it is.
        image: with sides that models take.
        mask: white where it is to be drawn anew; None for models that take no mask.
    """

    sample_id: str
    image: Image.Image
    mask: Image.Image | None = None

    def kept_outside(self, drawn: Image.Image) -> Image.Image:
        """Return what was drawn inside the mask, and the image itself outside of it."""
        if self.mask is None:
            return drawn
        return Image.composite(drawn.resize(self.image.size), self.image, self.mask)


class EditsOwnImages(Sendable):
    """Base of generators that change images of the class that a prompt names.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.
    """

    _own: OwnImages | None = None
    side: int

    @property
    def _takes_masks(self) -> bool:
        """Whether what is drawn is bounded by a mask of the object or of what is around it."""
        raise NotImplementedError

    @property
    def _model_name(self) -> str:
        """What messages call the model."""
        raise NotImplementedError

    def with_images(self, own: OwnImages) -> Self:
        """Return the same editor with the images of a project."""
        made = object.__new__(type(self))
        made.__setstate__({**self.__getstate__(), "_own": own})
        return made

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if the prompt names a class whose images are there.

        Raises:
            RefusedPromptError: if not.
        """
        self._class_of(prompt)

    def parents_of(self, prompt: str, seed: int) -> tuple[str, ...]:
        """Return the sample that an image would be made from.

        Raises:
            RefusedPromptError: if the prompt names none of the classes.
            ModelError: if no image of the class can be used.
        """
        return (self._chosen(self._class_of(prompt), seed),)

    def _parent(self, prompt: str, seed: int) -> Parent:
        class_name = self._class_of(prompt)
        sample_id = self._chosen(class_name, seed)
        image = _with_sides(self._images.image(sample_id), self.side)
        found = self._object(sample_id, class_name) if self._takes_masks else None
        mask = None if found is None else _region(prompt, found, image.size)
        return Parent(sample_id=sample_id, image=image, mask=mask)

    def _chosen(self, class_name: str, seed: int) -> str:
        ids = self._images.objects(class_name)
        order = generator(seed, "edited image", class_name).permutation(len(ids))
        for place in order[:MAX_TRIED]:
            if not self._takes_masks or self._has_mask(ids[place], class_name):
                return str(ids[place])
        raise ModelError(
            f"None of {min(len(ids), MAX_TRIED)} images of {class_name!r} has a mask of its object, which this model needs.",
            where=self._model_name,
            fix="Configure [segmenter], give masks with the data, or name an editing model that needs none.",
        )

    def _has_mask(self, sample_id: str, class_name: str) -> bool:
        key = (sample_id, class_name)
        if key not in self._known_masks:
            self._known_masks[key] = self._object(*key) is not None
        return self._known_masks[key]

    @cached_property
    def _known_masks(self) -> dict[tuple[str, str], bool]:
        return {}

    def _object(self, sample_id: str, class_name: str) -> Image.Image | None:
        """Return the mask of an object: the data set's own, or what the segmenter found and did not refuse."""
        given = self._images.mask(sample_id)
        if given is not None:
            return given
        coverage, refused = self._images.found(sample_id, class_name)
        if refused:
            return None
        return Image.fromarray(np.rint(255 * coverage).astype(np.uint8))

    def _class_of(self, prompt: str) -> str:
        own = self._images
        said = phrase_words(prompt)
        named = [
            name
            for name in own.class_names
            if covers(said, phrase_words(noun_of(name))) and own.objects(name)
        ]
        if not named:
            raise RefusedPromptError(
                "The prompt names no class whose images could be changed.",
                given=prompt,
                fix=f"Name one, for example: {plain_caption(own.class_names[0]).phrase!r}.",
            )
        return max(named, key=len)

    @property
    def _images(self) -> OwnImages:
        if self._own is None:
            raise ConfigError(
                "There are no images to change.",
                where="[generator]",
                fix="Use a generator that edits inside a project.",
            )
        return self._own


def editing_problems(instruction: str, side: int) -> list[str]:
    """Return what is wrong with the options that all editors have."""
    is_side = isinstance(side, int) and not isinstance(side, bool) and side >= STEP
    return [
        *([] if "{prompt}" in instruction else ["instruction: {prompt} is missing"]),
        *([] if is_side else [f"side: {side!r}"]),
    ]


def _region(prompt: str, mask: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return where to draw: around the object if the prompt names a place, else on it."""
    scaled = mask.convert("L").resize(size)
    is_elsewhere = any(place in prompt for place in built_in_vocabulary().places)
    return ImageChops.invert(scaled) if is_elsewhere else scaled


def _with_sides(image: Image.Image, side: int) -> Image.Image:
    """Return an image with its longest side as given and both sides multiples of what models take."""
    factor = side / max(image.size)
    width, height = (max(STEP, round(length * factor / STEP) * STEP) for length in image.size)
    return image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
