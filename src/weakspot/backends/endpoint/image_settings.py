"""Where an image model is, how it is asked, and what it may cost."""

import re
from dataclasses import dataclass
from typing import Annotated, TypedDict

from weakspot.backends.endpoint.address import address_problems
from weakspot.core.bounds import Bounds, check_bounds
from weakspot.core.errors import ConfigError, raise_all

MOST_AT_A_TIME = 16
AUTO, AUTO_SIDE = "auto", 1024
_SIZE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


class ImageOptions(TypedDict, total=False):
    """Options beside address and model, see `ImageSettings`."""

    version: str
    size: str
    quality: str
    sends_seed: bool
    accepts_rewriting: bool
    token_variable: str | None
    price_per_image: float | None
    currency: str
    max_images: int
    concurrency: int
    n_retries: int
    first_wait_seconds: float
    timeout_seconds: float


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """Where an image model is, how it is asked, and what it may cost.

    Args:
        url: address up to and including the version, such as `https://host/v1`; `/images/generations` is added if it is not there.
        model: name of the model behind the address.
        version: anything that changes when the model behind the name does; the name alone cannot tell.
        size: width and height, such as `1024x1024`, or `auto`.
        quality: sent along unless empty; its values are the service's.
        sends_seed: whether the seed is sent; without it the same seed does not give the same image.
        accepts_rewriting: whether an image may be used for which the service rewrote the prompt; else its verdict is `rewritten`.
        token_variable: name of the environment variable that holds the bearer token; the token itself is never written down.
        price_per_image: what the service charges for one image, None if not known.
        currency: of the price.
        max_images: no more images are ever asked for by one object.
        concurrency: requests under way at a time, at most 16.
        n_retries: attempts after the first, on connection errors and on status 408, 425, 429 and 5xx.
        first_wait_seconds: wait before the first retry, doubled from then on.
        timeout_seconds: for connecting, and for each wait for data.
    """

    url: str
    model: str
    version: str = ""
    size: str = "1024x1024"
    quality: str = ""
    sends_seed: bool = True
    accepts_rewriting: bool = True
    token_variable: str | None = None
    price_per_image: Annotated[float, Bounds(ge=0, le=1e6)] | None = None
    currency: str = "USD"
    max_images: Annotated[int, Bounds(ge=0, le=10**9)] = 1000
    concurrency: Annotated[int, Bounds(ge=1, le=MOST_AT_A_TIME)] = 4
    n_retries: Annotated[int, Bounds(ge=0, le=100)] = 3
    first_wait_seconds: Annotated[float, Bounds(ge=0, le=3600)] = 1.0
    timeout_seconds: Annotated[float, Bounds(ge=0.001, le=86400)] = 120.0

    def __post_init__(self) -> None:
        problems = address_problems(self.url, self.token_variable)
        if not isinstance(self.model, str) or not self.model.strip():
            problems.append("model: must be the name of a model")
        if not isinstance(self.size, str) or (
            self.size != AUTO and _SIZE.fullmatch(self.size) is None
        ):
            problems.append(f"size: must be like 1024x1024, or auto, is {self.size!r}")
        for name in ("version", "quality", "currency"):
            if not isinstance(getattr(self, name), str):
                problems.append(f"{name}: must be text, is {getattr(self, name)!r}")
        check_bounds(self, where="options", problems=problems)

    @property
    def width_and_height(self) -> tuple[int, int]:
        """Return the size in pixels that is asked for; 1024 x 1024 where the service chooses."""
        found = _SIZE.fullmatch(self.size)
        return (AUTO_SIDE, AUTO_SIDE) if found is None else (int(found[1]), int(found[2]))


def image_settings(url: str, model: str, given: ImageOptions) -> ImageSettings:
    """Return settings from options.

    Raises:
        ConfigError: with every option that does not exist or cannot be used.
    """
    known = ImageOptions.__annotations__
    unknown = [
        f"{name}: there is no such option (known: {', '.join(sorted(known))})"
        for name in given
        if name not in known
    ]
    raise_all(unknown, error=ConfigError, what="Some options cannot be used:", where="options")
    return ImageSettings(url=url, model=model, **given)
