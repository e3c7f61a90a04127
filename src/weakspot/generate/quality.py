"""The quality check that every generated image passes: what is black, blank, a copy, of the wrong size or of another class is rejected."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from PIL import Image

from weakspot.core.arrays import DoubleArray, FloatArray, unit_rows
from weakspot.core.errors import ConfigError, MissingExtraError, UnavailableError
from weakspot.core.generated import PASS, GenerationRequest

N_BITS = 64
MAX_COLOUR_DIFFERENCE = 12
_BITS_BYTES = N_BITS // 8
_WAVES_SIDE = 32
_COLOURS_SIDE = 8
_N_BYTES = _BITS_BYTES + 3 * _COLOURS_SIDE**2


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What an image looks like from far away.

    Args:
        bits: the signs of its 64 slowest waves of brightness.
        colours: mean red, green and blue of 8 by 8 places, row by row.
    """

    bits: int
    colours: bytes

    def is_near(self, other: "Fingerprint", n_bits: int) -> bool:
        """Return whether no more than so many bits differ and every colour is nearly the same."""
        if (self.bits ^ other.bits).bit_count() > n_bits:
            return False
        return all(
            abs(mine - yours) <= MAX_COLOUR_DIFFERENCE
            for mine, yours in zip(self.colours, other.colours, strict=True)
        )

    @property
    def text(self) -> str:
        return (self.bits.to_bytes(_BITS_BYTES, "big") + self.colours).hex()

    @classmethod
    def from_text(cls, text: str) -> "Fingerprint | None":
        """Return the fingerprint that a text stands for, None if it stands for none.

        >>> Fingerprint.from_text("") is None
        True
        """
        try:
            content = bytes.fromhex(text)
        except ValueError:
            return None
        if len(content) != _N_BYTES:
            return None
        return cls(bits=int.from_bytes(content[:_BITS_BYTES], "big"), colours=content[_BITS_BYTES:])


def fingerprint_of(image: Image.Image) -> Fingerprint:
    """Return the fingerprint of an RGB image.

    >>> fingerprint_of(Image.new("RGB", (32, 32), "red")).colours[:6].hex()
    'ff0000ff0000'
    """
    small = image.resize((_WAVES_SIDE, _WAVES_SIDE), Image.Resampling.BOX)
    grey = np.asarray(small.convert("L"), dtype=np.float64)
    waves = _waves()
    slow = (waves[:_BITS_BYTES] @ (grey - grey.mean()) @ waves[: _BITS_BYTES + 1].T).ravel()[
        1 : N_BITS + 1
    ]
    signs = np.packbits(slow > 0).tobytes()
    colours = small.resize((_COLOURS_SIDE, _COLOURS_SIDE), Image.Resampling.BOX)
    return Fingerprint(bits=int.from_bytes(signs, "big"), colours=colours.tobytes())


@lru_cache(maxsize=1)
def _waves() -> DoubleArray:
    places = np.arange(_WAVES_SIDE)
    return np.cos(np.pi * places[:, None] * (2 * places[None, :] + 1) / (2 * _WAVES_SIDE))


FAILED = "failed"
NOT_FINITE = "not-finite"
WRONG_SIZE = "wrong-size"
BLACK = "black"
BLANK = "blank"
OFF_CLASS = "off-class"
NEAR_DUPLICATE = "near-duplicate"
OWN_CHECKS = (WRONG_SIZE, BLACK, BLANK, OFF_CLASS, NEAR_DUPLICATE)
"""Gates that look at images; every other verdict is the generator's own, or says that no image came."""

_N_LEVELS = 256
_SHOWN = 120

EmbedImages = Callable[[Sequence[Image.Image]], FloatArray]
Size = tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class OffClass:
    """Says which images look more like another class than like their own.

    Args:
        embed_images: RGB images to embeddings [n, d] of the space of the class embeddings.
        class_embeddings: one for each class [c, d].
        class_names: the classes, in this order.
        margin: how much closer, as a cosine, another class must be.
        embedder_id: whose embeddings these are.
    """

    embed_images: EmbedImages
    class_embeddings: FloatArray
    class_names: tuple[str, ...]
    margin: float
    embedder_id: str = ""

    def __post_init__(self) -> None:
        if len(self.class_names) != len(self.class_embeddings):
            raise ConfigError(
                "Every class needs one embedding.",
                given=(len(self.class_names), len(self.class_embeddings)),
            )

    @cached_property
    def identity(self) -> str:
        content = repr((self.class_names, self.margin, self.embedder_id)).encode()
        return hashlib.sha256(
            content + np.asarray(self.class_embeddings, dtype="<f4").tobytes()
        ).hexdigest()[:16]

    def verdicts(self, images: Sequence[Image.Image], class_names: Sequence[str]) -> list[str]:
        """Return one verdict an image; those of classes that are not known pass.

        Raises:
            MissingExtraError: if the embedder lacks a library.
            UnavailableError: if it cannot be reached.
        """
        known = [place for place, name in enumerate(class_names) if name in self.class_names]
        found = [PASS] * len(images)
        for place, cosines in zip(
            known, self._cosines([images[place] for place in known]), strict=True
        ):
            found[place] = (
                cosines if isinstance(cosines, str) else self._verdict(cosines, class_names[place])
            )
        return found

    def _verdict(self, cosines: FloatArray, class_name: str) -> str:
        best, own = int(np.argmax(cosines)), self.class_names.index(class_name)
        ahead = float(cosines[best] - cosines[own])
        return (
            PASS if ahead <= self.margin else f"closer to {self.class_names[best]!r} by {ahead:.3f}"
        )

    def _cosines(self, images: Sequence[Image.Image]) -> list[FloatArray | str]:
        """Return cosines to the classes, or what went wrong with an image; a batch that fails is tried one by one."""
        if not images:
            return []
        try:
            embeddings = np.asarray(self.embed_images(images), dtype=np.float32)
            if (
                embeddings.shape != (len(images), self.class_embeddings.shape[1])
                or not np.isfinite(embeddings).all()
            ):
                raise ValueError(
                    f"the embedder gave embeddings of shape {embeddings.shape}, or numbers that are not finite"
                )
        except (MissingExtraError, UnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
            if len(images) == 1:
                return [f"cannot be embedded: {str(error)[:_SHOWN] or type(error).__name__}"]
            return [found for image in images for found in self._cosines([image])]
        return list(unit_rows(embeddings) @ unit_rows(self.class_embeddings).T)


@dataclass(frozen=True, kw_only=True, eq=False)
class QualityCheck:
    """What is asked of a generated image.

    Args:
        near_duplicate_bits: an image whose fingerprint differs in no more bits from an earlier kept one of its prompt is a copy;
            None: copies pass.
        dark_level: a channel up to this value is nearly black.
        dark_share: from this share of nearly black pixels on in each channel, an image is black.
        least_deviation: an image none of whose channels has a larger standard deviation is blank.
        least_side: shortest side in pixels.
        size: width and height that were asked for; None: see `has_one_size`.
        has_one_size: whether an image of a rarer size than others of its generator is rejected.
        off_class: compares images with classes; None: not compared.
    """

    near_duplicate_bits: int | None = 3
    dark_level: int = 10
    dark_share: float = 0.995
    least_deviation: float = 2.0
    least_side: int = 16
    size: Size | None = None
    has_one_size: bool = True
    off_class: OffClass | None = None

    @cached_property
    def identity(self) -> str:
        """Return what tells this quality check from others; the same quality check gives the same verdicts."""
        settings = (
            self.near_duplicate_bits,
            self.dark_level,
            self.dark_share,
            self.least_deviation,
            self.least_side,
            self.size,
        )
        other = self.off_class.identity if self.off_class is not None else ""
        return hashlib.sha256(repr((settings, self.has_one_size, other)).encode()).hexdigest()[:16]

    def size_alone(self, size: Size) -> str:
        """Return what is said of a size whatever other images have: `pass` or what is wrong with it."""
        if self.size is not None and size != self.size:
            return f"{_shown(size)} instead of {_shown(self.size)} pixels"
        return (
            PASS
            if min(size) >= self.least_side
            else f"{_shown(size)} pixels; the shortest side must be {self.least_side}"
        )

    def look(self, image: Image.Image) -> dict[str, str]:
        """Return what the quality checks say that need nothing but the pixels of an RGB image: black and blank."""
        counts = np.asarray(image.histogram(), dtype=np.float64).reshape(-1, _N_LEVELS)
        shares = counts / max(1, image.width * image.height)
        dark = float(shares[:, : self.dark_level + 1].sum(axis=1).min())
        levels = np.arange(_N_LEVELS)
        means = shares @ levels
        deviation = float(np.sqrt(np.maximum(0.0, shares @ levels**2 - means**2)).max())
        return {
            BLACK: f"{dark:.1%} of the pixels are nearly black"
            if dark >= self.dark_share
            else PASS,
            BLANK: f"standard deviation {deviation:.1f} of {_N_LEVELS}"
            if deviation <= self.least_deviation
            else PASS,
        }


@dataclass(kw_only=True, eq=False)
class QualityMemory:
    """What earlier images of a generator were like. The same images in the same request always give the same verdicts.

    Args:
        quality: the settings.
    """

    quality: QualityCheck
    _kept: defaultdict[tuple[str, str], dict[int, Fingerprint]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _sizes: Counter[Size] = field(default_factory=Counter)

    @property
    def has_seen(self) -> bool:
        return bool(self._sizes)

    def size_verdict(self, size: Size) -> str:
        """Count the size of an image, and say whether it is wrong or rarer than another: `pass` or why."""
        alone = self.quality.size_alone(size)
        if alone != PASS:
            return alone
        self._sizes[size] += 1
        usual, n_usual = self._sizes.most_common(1)[0]
        if (
            self.quality.size is not None
            or not self.quality.has_one_size
            or self._sizes[size] == n_usual
        ):
            return PASS
        return f"{_shown(size)} pixels; others of this generator have {_shown(usual)}"

    def copy_verdict(self, request: GenerationRequest, fingerprint: Fingerprint) -> str:
        """Say whether an image is nearly one of the same class and prompt that was kept: `pass` or the seed of that one."""
        n_bits = self.quality.near_duplicate_bits
        if n_bits is None:
            return PASS
        others = self._kept[(request.class_name, request.prompt)].items()
        seed = next(
            (
                seed
                for seed, other in others
                if seed != request.seed and other.is_near(fingerprint, n_bits)
            ),
            None,
        )
        return PASS if seed is None else f"nearly the image with seed {seed}"

    def keep(self, request: GenerationRequest, fingerprint: Fingerprint) -> None:
        self._kept[(request.class_name, request.prompt)][request.seed] = fingerprint


def is_rejected(verdicts: Mapping[str, str]) -> bool:
    return any(said != PASS for said in verdicts.values())


def _shown(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
