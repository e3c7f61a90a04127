"""Images and edits of a user's own images by image models behind an OpenAI-compatible address."""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Annotated, Any, ClassVar
from urllib.parse import urljoin, urlsplit

from PIL import Image, ImageChops
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weakspot.core.arrays import generator
from weakspot.core.bounds import Bounds
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.generated import OwnImages
from weakspot.core.roles import Cost, GeneratedImage
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.models.edited_images import INSTRUCTION, EditsOwnImages, editing_problems
from weakspot.models.endpoint.requests import (
    Endpoint,
    File,
    FirstWait,
    RequestRefusedError,
    Seconds,
    encoded,
    model_problems,
    shown_address,
)
from weakspot.models.loading import LoadedOnce, model_id

MAX_AT_A_TIME = 16
AUTO, AUTO_SIDE = "auto", 1024
_SIZE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


MAX_BYTES = 64 << 20
N_SEEDS = 1 << 31
UNSAFE, REWRITTEN = "unsafe", "rewritten"
REVISED_PROMPT = "revised_prompt"
GREY = (128, 128, 128)
NOT_UNDERSTOOD = frozenset({400, 422})
MODERATION = (
    "content_policy_violation",
    "moderation_blocked",
    "content_filter",
    "contentfilter",
    "responsibleaipolicyviolation",
)
_SHOWN = 200

_Pair = tuple[str, int]


class _Made(BaseModel):
    model_config = ConfigDict(frozen=True)

    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class _Answer(BaseModel):
    """What comes back; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    data: list[_Made] = Field(min_length=1)


@dataclass(kw_only=True, eq=False)
class EndpointImageGenerator(Endpoint):
    """One request an image to an image model behind an address.

    A prompt that the service's moderation refuses gives a grey image with the verdict `unsafe`. What the service made of the
    prompt, if it says so, stays with the image as `image.info["revised_prompt"]`. Images that came before another of the same
    call failed are kept for the next call, so that nothing is paid for twice. `/images/generations` is added to the url if it is
    not there.

    Args:
        model: name of the model behind the address.
        size: width and height, such as `1024x1024`, or `auto`.
        quality: sent along unless empty; its values are the service's.
        sends_seed: whether the seed is sent; without it the same seed does not give the same image.
        accepts_rewriting: whether an image may be used for which the service rewrote the prompt; else its verdict is `rewritten`.
        price_per_image: what the service charges for one image, None if not known.
        currency: of the price.
        max_images: no more images are ever asked for by one object.
    """

    model: str
    size: str = "1024x1024"
    quality: str = ""
    sends_seed: bool = True
    accepts_rewriting: bool = True
    price_per_image: Annotated[float, Bounds(ge=0, le=1e6)] | None = None
    currency: str = "USD"
    max_images: Annotated[int, Bounds(ge=0, le=10**9)] = 1000
    concurrency: Annotated[int, Bounds(ge=1, le=MAX_AT_A_TIME)] = 4
    first_wait_seconds: FirstWait = 1.0
    timeout_seconds: Seconds = 120.0

    path: ClassVar[str] = "/images/generations"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._kept: dict[_Pair, GeneratedImage] = {}
        self._n_asked = 0
        self._asks_for_bytes = True

    def _problems(self) -> list[str]:
        problems = [*super()._problems(), *model_problems(self.model)]
        if not isinstance(self.size, str) or (
            self.size != AUTO and _SIZE.fullmatch(self.size) is None
        ):
            problems.append(f"size: must be like 1024x1024, or auto, is {self.size!r}")
        for name in ("version", "quality", "currency"):
            if not isinstance(getattr(self, name), str):
                problems.append(f"{name}: must be text, is {getattr(self, name)!r}")
        return problems

    @LoadedOnce
    def _guard(self) -> Lock:
        return Lock()

    @property
    def generator_id(self) -> str:
        decides = (self.model, self.version, self.size, self.quality, self.sends_seed)
        return self._identity("endpoint-images", *decides, model=self.model)

    def cost_of(self, n_images: int) -> Cost | None:
        """Return what so many images cost; None if no price is set."""
        price = self.price_per_image
        if price is None:
            return None
        basis = f"{n_images} images of {self.model} at {price:g} {self.currency} each"
        return Cost(amount=round(price * n_images, 6), currency=self.currency, basis=basis)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt; the same for the same prompt and seed as far as the service keeps to the seed.

        Raises:
            ConfigError: if there is not one seed a prompt, the token is refused, or `max_images` does not suffice.
            ModelError: if an answer holds no image.
            UnavailableError: if no attempt was answered.
        """
        if len(prompts) != len(seeds):
            raise ConfigError("Every prompt needs one seed.", given=(len(prompts), len(seeds)))
        pairs = [(prompt, int(seed)) for prompt, seed in zip(prompts, seeds, strict=True)]
        with self._guard:
            found = {pair: self._kept[pair] for pair in pairs if pair in self._kept}
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in found]
        self._check_budget(len(missing))
        found |= self._made(missing)
        with self._guard:
            for pair in found:
                self._kept.pop(pair, None)
        return [found[pair] for pair in pairs]

    def _check_budget(self, n_more: int) -> None:
        left = self.max_images - self._n_asked
        if n_more > left:
            raise ConfigError(
                f"Only {left} of {self.max_images} images may still be asked of the endpoint.",
                where="max_images",
                given=n_more,
                fix="Raise max_images if that is worth the cost.",
            )

    def _made(self, pairs: Sequence[_Pair]) -> dict[_Pair, GeneratedImage]:
        if not pairs:
            return {}
        with ThreadPoolExecutor(max_workers=self.concurrency) as pool:
            waiting = [pool.submit(self._one, pair) for pair in pairs]
            try:
                return {pair: future.result() for pair, future in zip(pairs, waiting, strict=True)}
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise

    def _one(self, pair: _Pair) -> GeneratedImage:
        prompt, seed = pair
        with self._guard:
            self._n_asked += 1
        try:
            image, verdicts = self._drawn(self._sent(prompt, seed), prompt, seed)
        except RequestRefusedError as error:
            if not _is_moderation(error):
                raise self._explain(error) from error
            image, verdicts = (
                Image.new("RGB", self._width_and_height, GREY),
                {UNSAFE: _message_of(error)},
            )
        made = self._finished(
            GeneratedImage(
                image=image,
                prompt=prompt,
                seed=seed,
                generator_id=self.generator_id,
                verdicts=verdicts,
            )
        )
        with self._guard:
            self._kept[pair] = made
        return made

    def _finished(self, made: GeneratedImage) -> GeneratedImage:
        """Return an image as it is given away."""
        return made

    def _body(self, prompt: str, seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "prompt": prompt, "n": 1, "size": self.size}
        if self.quality:
            body["quality"] = self.quality
        if self.sends_seed:
            body["seed"] = seed % N_SEEDS
        if self._asks_for_bytes:
            body["response_format"] = "b64_json"
        return body

    def _sent(self, prompt: str, seed: int) -> bytes:
        """Send one request; a service that always answers with bytes may not know `response_format`, which is then left out."""
        body = self._body(prompt, seed)
        jitter = generator(seed, "image endpoint", prompt)
        post = partial(self.post, jitter=jitter, files=self._files(prompt, seed))
        try:
            return post(body)
        except RequestRefusedError as error:
            if (
                "response_format" not in body
                or "response_format" not in error.said
                or error.status not in NOT_UNDERSTOOD
            ):
                raise
            self._asks_for_bytes = False
            body.pop("response_format")
            return post(body)

    def _files(self, _prompt: str, _seed: int) -> Mapping[str, File] | None:
        """Return what is sent along with the words; None for nothing."""
        return None

    def _explain(self, error: RequestRefusedError) -> ModelError:
        if error.status in NOT_UNDERSTOOD and self.sends_seed and "seed" in error.said:
            return ModelError(
                "The endpoint takes no seed.",
                where=self.where,
                given=error.said[:_SHOWN],
                fix="Set sends_seed = false; the same seed then no longer gives the same image.",
            )
        return error

    def _drawn(self, content: bytes, prompt: str, seed: int) -> tuple[Image.Image, dict[str, str]]:
        try:
            made = _Answer.model_validate_json(content).data[0]
        except ValidationError as error:
            raise self._no_image(
                "is not what image endpoints answer: data[0] is missing", content
            ) from error
        data = self._bytes_of(made, prompt, seed)
        try:
            image = decode_image(data).image
        except UnreadableImageError as error:
            raise self._no_image(
                f"holds no image that can be read ({error.detail})", data
            ) from error
        revised = made.revised_prompt
        image.info = {} if not revised else {REVISED_PROMPT: revised}
        is_other = revised is not None and revised.strip() not in {"", prompt.strip()}
        verdicts = (
            {REWRITTEN: f"the service drew: {revised}"}
            if is_other and not self.accepts_rewriting
            else {}
        )
        return image, verdicts

    def _bytes_of(self, made: _Made, prompt: str, seed: int) -> bytes:
        if made.b64_json:
            return self._decode(made.b64_json)
        if made.url and made.url.startswith("data:"):
            return self._decode(made.url.partition(",")[2])
        if made.url:
            address = urljoin(self.address, made.url)
            if urlsplit(address)[:2] != urlsplit(self.address)[:2]:
                raise ModelError(
                    "The endpoint answers with the address of another host, from which nothing is fetched.",
                    where=self.where,
                    given=shown_address(address),
                    fix="Use a service that answers with b64_json.",
                )
            jitter = generator(seed, "image endpoint address", prompt)
            return self.fetch(address, jitter=jitter, max_bytes=MAX_BYTES)
        raise self._no_image("holds neither b64_json nor url", b"")

    def _decode(self, text: str) -> bytes:
        if len(text) > MAX_BYTES * 4 // 3 + 4:
            raise self._no_image(f"holds more than {MAX_BYTES} bytes", text[:_SHOWN].encode())
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self._no_image("is not base64", text[:_SHOWN].encode()) from error

    def _no_image(self, why: str, came: bytes) -> ModelError:
        given = came[:_SHOWN].decode("utf-8", "backslashreplace") or None
        return ModelError(
            f"The endpoint's answer {why}.",
            where=self.where,
            given=given,
            fix="Check url, model and size, or the service itself.",
        )

    @property
    def _width_and_height(self) -> tuple[int, int]:
        """The size in pixels that is asked for; 1024 x 1024 where the service chooses."""
        size = _SIZE.fullmatch(self.size)
        return (AUTO_SIDE, AUTO_SIDE) if size is None else (int(size[1]), int(size[2]))


def _is_moderation(error: RequestRefusedError) -> bool:
    said = error.said.lower()
    return error.status in NOT_UNDERSTOOD and any(code in said for code in MODERATION)


def _message_of(error: RequestRefusedError) -> str:
    try:
        message = str(json.loads(error.said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = ""
    return " ".join((message or error.said).split())[:_SHOWN] or "refused by the service"


MODES = ("instruct", "fill")
PNG = "image/png"


@dataclass(kw_only=True, eq=False)
class EndpointImageEditor(EditsOwnImages, EndpointImageGenerator):
    """One request an image to `/images/edits`: the user's image, words and, in mode fill, a mask.

    The mask is a PNG with an alpha channel, as OpenAI's interface has it: what is transparent may be drawn anew. That is what is
    around the object where the prompt names a place, and otherwise the object; what lies outside is that of the image, pixel by
    pixel, whatever the service sends back. Masks are the data set's own, or those of the segmenter.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.

    Args:
        mode: instruct to send the image and an instruction, fill to send a mask too and the prompt itself.
        instruction: what is said in mode instruct; `{prompt}` stands for the prompt.
        side: longest side of the images that are sent, in pixels.
    """

    mode: str = "instruct"
    instruction: str = INSTRUCTION
    side: int = 1024
    size: str = AUTO

    path: ClassVar[str] = "/images/edits"

    def _problems(self) -> list[str]:
        known = [] if self.mode in MODES else [f"mode: {self.mode!r} (known: {', '.join(MODES)})"]
        return [*known, *editing_problems(self.instruction, self.side), *super()._problems()]

    @property
    def generator_id(self) -> str:
        digest = "" if self._own is None else self._own.digest
        asked = (self.mode, self.instruction, self.side, digest)
        kind, _, drawn = super().generator_id.partition(":")
        return model_id(f"{kind}-edits", drawn, *asked)

    def with_images(self, own: OwnImages) -> "EndpointImageEditor":
        """Return the same editor with the images of a project."""
        made = super().with_images(own)
        made.__setstate__({"_kept": {}})
        return made

    @property
    def _takes_masks(self) -> bool:
        return self.mode == "fill"

    @property
    def _model_name(self) -> str:
        return self.where

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
        words = self.instruction.replace("{prompt}", prompt) if self.mode == "instruct" else prompt
        return {**super()._body(prompt, seed), "prompt": words}

    def _files(self, prompt: str, seed: int) -> Mapping[str, File]:
        parent = self._parent(prompt, seed)
        files = {"image": ("image.png", encoded(parent.image, format="PNG"), PNG)}
        if parent.mask is not None:
            see_through = parent.image.copy()
            see_through.putalpha(ImageChops.invert(parent.mask))
            files["mask"] = ("mask.png", encoded(see_through, format="PNG"), PNG)
        return files
