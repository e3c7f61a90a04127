"""A user's own images changed as words say, by image models behind an OpenAI-compatible address."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from PIL import Image, ImageChops

from weakspot.backends.edited_images import INSTRUCTION, EditsOwnImages, editing_problems
from weakspot.backends.endpoint.image_settings import AUTO, ImageOptions
from weakspot.backends.endpoint.images import UNSAFE, EndpointImageGenerator
from weakspot.backends.endpoint.retries import File
from weakspot.backends.model_hash import model_id
from weakspot.core.errors import ConfigError
from weakspot.core.own_images import OwnImages
from weakspot.core.roles import GeneratedImage

PATH = "/images/edits"
MODES = ("instruct", "fill")
SIDE = 1024
PNG = "image/png"


class EndpointImageEditor(EditsOwnImages, EndpointImageGenerator):
    """One request an image to `/images/edits`: the user's image, words and, in mode fill, a mask.

    The mask is a PNG with an alpha channel, as OpenAI's interface has it: what is transparent may be drawn anew. That is what is
    around the object where the prompt names a place, and otherwise the object; what lies outside is that of the image, pixel by
    pixel, whatever the service sends back. Masks are the data set's own, or those of the segmenter.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.

    Args:
        url: address up to and including the version, such as `https://host/v1`.
        model: name of the model behind it.
        mode: instruct to send the image and an instruction, fill to send a mask too and the prompt itself.
        instruction: what is said in mode instruct; `{prompt}` stands for the prompt.
        side: longest side of the images that are sent, in pixels.
        options: see `ImageSettings`; `size` is auto unless it is given.
    """

    _path = PATH

    def __init__(
        self,
        *,
        url: str,
        model: str,
        mode: str = "instruct",
        instruction: str = INSTRUCTION,
        side: int = SIDE,
        **options: Unpack[ImageOptions],
    ) -> None:
        problems = [
            *([] if mode in MODES else [f"mode: {mode!r} (known: {', '.join(MODES)})"]),
            *editing_problems(instruction, side),
        ]
        if problems:
            raise ConfigError(
                f"Some options cannot be used: {'; '.join(problems)}.", where="options"
            )
        given: ImageOptions = {"size": AUTO, **options}
        super().__init__(url=url, model=model, **given)
        self._mode, self._instruction, self._side = mode, instruction, side

    @property
    def generator_id(self) -> str:
        digest = "" if self._own is None else self._own.digest
        asked = (self._mode, self._instruction, self._side, digest)
        kind, _, drawn = super().generator_id.partition(":")
        return model_id(f"{kind}-edits", drawn, *asked)

    def with_images(self, own: OwnImages) -> "EndpointImageEditor":
        """Return the same editor with the images of a project."""
        made = super().with_images(own)
        made.__setstate__({"_kept": {}})
        return made

    @property
    def _takes_masks(self) -> bool:
        return self._mode == "fill"

    @property
    def _model_name(self) -> str:
        return self._where

    def _made(self, pairs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], GeneratedImage]:
        for prompt, seed in pairs:
            self.parents_of(prompt, seed)  # a segmenter is asked here, and not by several threads
        return super()._made(pairs)

    def _finished(self, made: GeneratedImage) -> GeneratedImage:
        parent = self._parent(made.prompt, made.seed)
        image = made.image if UNSAFE in made.verdicts else parent.kept_outside(made.image)
        image.info = made.image.info
        return replace(made, image=image, parents=(parent.sample_id,))

    def _body(self, prompt: str, seed: int) -> dict[str, Any]:
        words = (
            self._instruction.replace("{prompt}", prompt) if self._mode == "instruct" else prompt
        )
        return {**super()._body(prompt, seed), "prompt": words}

    def _files(self, prompt: str, seed: int) -> Mapping[str, File]:
        parent = self._parent(prompt, seed)
        files = {"image": ("image.png", _png(parent.image), PNG)}
        if parent.mask is not None:
            see_through = parent.image.copy()
            see_through.putalpha(ImageChops.invert(parent.mask))
            files["mask"] = ("mask.png", _png(see_through), PNG)
        return files


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()
