"""The little world of the planted data: what a scene is made of, its caption, its pixels, and the strip that a machine reads."""

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageDraw

from weakspot.core.arrays import AnyArray, ByteArray, DoubleArray
from weakspot.core.arrays import generator as named_generator
from weakspot.core.errors import DataError, ModelError

FACTORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "kind": ("disc", "square", "triangle", "star", "cross", "ring", "heart", "crescent"),
        "colour": ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white"),
        "size": ("small", "medium", "large"),
        "background": (
            "plain",
            "striped",
            "checked",
            "dotted",
            "grassy",
            "gradient",
            "wavy",
            "brick",
        ),
        "count": ("one", "two", "three"),
        "position": ("middle", "left", "right", "top", "bottom"),
        "lighting": ("normal", "bright", "dark"),
    }
)
FACTOR_NAMES: tuple[str, ...] = tuple(FACTORS)
KINDS: tuple[str, ...] = FACTORS["kind"]

SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "circle": "disc", "circles": "disc", "disk": "disc", "disks": "disc", "crosses": "cross", "box": "square",
        "tiny": "small", "little": "small", "big": "large", "huge": "large",
        "stripe": "striped", "stripes": "striped", "check": "checked", "checks": "checked", "checkered": "checked",
        "chequered": "checked", "dot": "dotted", "dots": "dotted", "spotted": "dotted", "grass": "grassy", "lawn": "grassy",
        "wave": "wavy", "waves": "wavy", "bricks": "brick", "blank": "plain", "shaded": "gradient",
        "single": "one", "pair": "two", "both": "two", "several": "three",
        "centre": "middle", "center": "middle", "above": "top", "below": "bottom",
        "night": "dark", "darkness": "dark", "dim": "dark", "unlit": "dark", "sunny": "bright", "daylight": "bright",
    }
)  # fmt: skip
PLACES: Mapping[str, str] = MappingProxyType(
    {
        "middle": "in the middle of",
        "left": "on the left of",
        "right": "on the right of",
        "top": "at the top of",
        "bottom": "at the bottom of",
    }
)
LIGHTS: Mapping[str, str] = MappingProxyType(
    {"normal": "in normal light", "bright": "in bright light", "dark": "in the dark"}
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One image's contents.

    Args:
        kinds: the kinds of object in it, in the order of `KINDS`; several only with the count `one` (one object of each).
        instance: number of the image among others of the same contents; it decides details and the noise of features.
    """

    kinds: tuple[str, ...] = ("disc",)
    colour: str = "red"
    size: str = "medium"
    background: str = "plain"
    count: str = "one"
    position: str = "middle"
    lighting: str = "normal"
    instance: int = 0

    def __post_init__(self) -> None:
        for name in FACTOR_NAMES[1:]:
            if getattr(self, name) not in FACTORS[name]:
                raise DataError(
                    f"There is no {name} {getattr(self, name)!r}.",
                    fix=f"Choose one of {list(FACTORS[name])}.",
                )
        if not self.kinds or set(self.kinds) - set(KINDS):
            raise DataError(
                "A scene needs known kinds of object.",
                given=self.kinds,
                fix=f"Choose from {list(KINDS)}.",
            )
        if self.kinds != tuple(kind for kind in KINDS if kind in self.kinds):
            raise DataError(
                "The kinds of a scene must be in the order of KINDS, each once.", given=self.kinds
            )
        if len(self.kinds) > 1 and self.count != "one":
            raise DataError(
                "A scene with several kinds shows one object of each.",
                given=self.count,
                fix="Use count='one'.",
            )

    @property
    def codes(self) -> ByteArray:
        """Return the scene as numbers [7]: a bit mask of kinds, then the position of each value among its factor's values."""
        mask = sum(1 << KINDS.index(kind) for kind in self.kinds)
        return np.array(
            [mask, *(FACTORS[name].index(getattr(self, name)) for name in FACTOR_NAMES[1:])],
            dtype=np.uint8,
        )

    @property
    def caption(self) -> str:
        """Return a sentence that tells every factor.

        >>> Scene(kinds=("disc",), count="two", size="small", background="striped", lighting="dark").caption
        'a photo of two small red discs in the middle of a striped background, in the dark'
        """
        nouns = " and ".join(
            f"{self.count} {self.size} {self.colour} {self._noun(kind)}" for kind in self.kinds
        )
        return f"a photo of {nouns} {PLACES[self.position]} a {self.background} background, {LIGHTS[self.lighting]}"

    def _noun(self, kind: str) -> str:
        if self.count == "one":
            return kind
        return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def scene_from_codes(codes: ByteArray, *, instance: int = 0) -> Scene:
    """Return the scene of a row of codes [7]."""
    kinds = tuple(kind for place, kind in enumerate(KINDS) if int(codes[0]) >> place & 1)
    values = {
        name: FACTORS[name][int(code)]
        for name, code in zip(FACTOR_NAMES[1:], codes[1:], strict=True)
    }
    return Scene(kinds=kinds, instance=instance, **values)


def _value_words() -> dict[str, tuple[str, str]]:
    words = {value: (name, value) for name, values in FACTORS.items() for value in values}
    words.update({f"{kind}s": ("kind", kind) for kind in KINDS})
    words.update({word: words[value] for word, value in SYNONYMS.items()})
    return words


VALUE_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(_value_words())


def words_of(phrase: str) -> list[str]:
    return re.findall(r"[a-z]+", phrase.lower())


def factors_of(phrase: str) -> dict[str, tuple[str, ...]]:
    """Return the values that a phrase names, by factor.

    >>> factors_of("a photo of a red disc at night")
    {'colour': ('red',), 'kind': ('disc',), 'lighting': ('dark',)}
    """
    found: dict[str, dict[str, None]] = {}
    for word in words_of(phrase):
        if word in VALUE_WORDS:
            name, value = VALUE_WORDS[word]
            found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items()}


def scene_from_phrase(phrase: str, *, generator: np.random.Generator, instance: int = 0) -> Scene:
    """Return a scene of which the phrase is true; what the phrase leaves open is drawn at random."""
    named = factors_of(phrase)
    drawn = {name: values[int(generator.integers(len(values)))] for name, values in FACTORS.items()}
    chosen = {name: named[name][0] if name in named else drawn[name] for name in FACTOR_NAMES[1:]}
    wanted = named.get("kind", (drawn["kind"],))
    if len(wanted) > 1:
        chosen["count"] = "one"
    return Scene(kinds=tuple(kind for kind in KINDS if kind in wanted), instance=instance, **chosen)


CELLS = 16
LEVELS = np.array([32, 96, 160, 224])
LEVEL_TOLERANCE = 28
GREY_TOLERANCE = 40
CODE_BITS = (8, 3, 2, 3, 2, 3, 2)
INSTANCE_BITS = 24
CHECK_BITS = 17
N_INSTANCES = 1 << INSTANCE_BITS


def strip_height(side: int) -> int:
    return max(side // CELLS, 1)


def write_marker(pixels: ByteArray, scene: Scene) -> ByteArray:
    """Return a copy of pixels [h, w, 3] with the scene written along its edges."""
    payload = _payload(scene)
    levels = np.array([payload >> 2 * place & 3 for place in range(2 * CELLS)])
    marked = pixels.copy()
    height = strip_height(pixels.shape[0])
    cell_of_column = np.arange(pixels.shape[1]) * CELLS // pixels.shape[1]
    marked[:height] = LEVELS[levels[:CELLS]][cell_of_column][None, :, None]
    marked[-height:] = LEVELS[levels[CELLS:]][cell_of_column][None, :, None]
    return marked


def read_marker(image: Image.Image) -> Scene:
    """Return the scene that a planted image shows.

    Raises:
        ModelError: if the image is not from the planted world.
    """
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64)
    if min(pixels.shape[:2]) < CELLS:
        raise _foreign("it is smaller than 16 pixels")
    height = strip_height(pixels.shape[0])
    cells = np.concatenate([_cells(pixels[:height]), _cells(pixels[-height:])])
    greys = cells.mean(axis=1)
    levels = np.abs(greys[:, None] - LEVELS[None, :]).argmin(axis=1)
    if (
        np.abs(greys - LEVELS[levels]).max() > LEVEL_TOLERANCE
        or np.ptp(cells, axis=1).max() > GREY_TOLERANCE
    ):
        raise _foreign("its edges carry no marker")
    return _scene(sum(int(level) << 2 * place for place, level in enumerate(levels)))


def _cells(strip: AnyArray) -> AnyArray:
    edges = np.linspace(0, strip.shape[1], CELLS + 1)
    margin = (edges[1] - edges[0]) / 4
    spans = [(int(np.floor(low + margin)), int(np.ceil(low + 3 * margin))) for low in edges[:-1]]
    return np.stack([strip[:, low:high].mean(axis=(0, 1)) for low, high in spans])


def _payload(scene: Scene) -> int:
    value, shift = 0, 0
    for code, bits in zip(
        [*scene.codes, scene.instance % N_INSTANCES], [*CODE_BITS, INSTANCE_BITS], strict=True
    ):
        value |= int(code) << shift
        shift += bits
    return value | _check_sum(value) << shift


def _scene(payload: int) -> Scene:
    n_bits = sum(CODE_BITS) + INSTANCE_BITS
    content, check = payload & (1 << n_bits) - 1, payload >> n_bits
    if check != _check_sum(content):
        raise _foreign("its marker has a wrong check sum")
    codes = []
    for bits in CODE_BITS:
        codes.append(content & (1 << bits) - 1)
        content >>= bits
    return scene_from_codes(np.array(codes, dtype=np.uint8), instance=content)


def _check_sum(content: int) -> int:
    return zlib.crc32(b"planted" + content.to_bytes(8, "big")) & (1 << CHECK_BITS) - 1


def _foreign(reason: str) -> ModelError:
    return ModelError(
        f"This image is not from the planted world: {reason}.",
        fix="The planted models are test doubles. Choose a real model for your own images.",
    )


Texture = Callable[[int, np.random.Generator], DoubleArray]

LIGHT = np.array([176.0, 170.0, 160.0])
DARK = np.array([104.0, 100.0, 96.0])
STRIPE = 0.5
DOT = 0.28
CLIP = (0.16, 0.07)


def _grid(side: int) -> tuple[DoubleArray, DoubleArray]:
    steps = (np.arange(side) + 0.5) / side
    rows, columns = np.meshgrid(steps, steps, indexing="ij")
    return rows, columns


def _mix(share: AnyArray, *, low: DoubleArray = DARK, high: DoubleArray = LIGHT) -> DoubleArray:
    return np.asarray(low + np.asarray(share, dtype=np.float64)[..., None] * (high - low))


def _plain(side: int, _generator: np.random.Generator) -> DoubleArray:
    return _mix(np.full((side, side), 0.5))


def _striped(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mix(((rows + columns) * 5 + generator.random()) % 1.0 < STRIPE)


def _check(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    return _mix((np.floor(rows * 6 + down) + np.floor(columns * 6 + across)) % 2)


def _dotted(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    distance = np.hypot((rows * 7 + down) % 1.0 - 0.5, (columns * 7 + across) % 1.0 - 0.5)
    return _mix(distance < DOT, low=LIGHT, high=DARK - 24.0)


def _grassy(side: int, generator: np.random.Generator) -> DoubleArray:
    blades = generator.random((side, side))
    length = max(side // 10, 2)
    drawn = np.mean([np.roll(blades, step, axis=0) for step in range(length)], axis=0)
    spread = (drawn - drawn.min()) / max(float(np.ptp(drawn)), 1e-9)
    return _mix(spread, low=np.array([34.0, 62.0, 26.0]), high=np.array([142.0, 168.0, 84.0]))


def _gradient(side: int, _generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mix(
        rows * 0.85 + columns * 0.15,
        low=np.array([216.0, 206.0, 190.0]),
        high=np.array([56.0, 58.0, 66.0]),
    )


def _wavy(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    height = rows * 7 + 0.35 * np.sin(2 * np.pi * (columns * 2 + generator.random()))
    return _mix(
        0.5 + 0.5 * np.sin(2 * np.pi * (height + generator.random())),
        low=np.array([74.0, 104.0, 122.0]),
        high=np.array([158.0, 182.0, 190.0]),
    )


def _brick(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    course = np.floor(rows * 7)
    along = (columns * 3.5 + 0.5 * (course % 2) + generator.random()) % 1.0
    is_mortar = (rows * 7 % 1.0 < CLIP[0]) | (along < CLIP[1])
    return _mix(is_mortar, low=np.array([134.0, 88.0, 74.0]), high=np.array([190.0, 182.0, 170.0]))


TEXTURES: Mapping[str, Texture] = MappingProxyType(
    {
        "plain": _plain,
        "striped": _striped,
        "checked": _check,
        "dotted": _dotted,
        "grassy": _grassy,
        "gradient": _gradient,
        "wavy": _wavy,
        "brick": _brick,
    }
)


ROUND = 48


def _regular(angles: AnyArray, lengths: AnyArray) -> DoubleArray:
    turned = np.radians(angles) - np.pi / 2
    return np.stack([lengths * np.cos(turned), lengths * np.sin(turned)], axis=1)


def _arc(start: float, stop: float) -> DoubleArray:
    turns = np.radians(np.linspace(start, stop, ROUND))
    return np.stack([np.cos(turns), np.sin(turns)], axis=1)


def _cross() -> DoubleArray:
    arm = 0.3
    quarter = np.array([[-arm, -1.0], [arm, -1.0], [arm, -arm]])
    turns = [np.array([[0, -1], [1, 0]]), np.array([[-1, 0], [0, -1]]), np.array([[0, 1], [-1, 0]])]
    return np.concatenate([quarter, *(quarter @ turn.T for turn in turns)])


def _heart() -> DoubleArray:
    turns = np.linspace(0.0, 2 * np.pi, ROUND)
    across = 16 * np.sin(turns) ** 3
    down = -(13 * np.cos(turns) - 5 * np.cos(2 * turns) - 2 * np.cos(3 * turns) - np.cos(4 * turns))
    return np.stack([across, down - 2.0], axis=1) / 16.5


def _crescent() -> DoubleArray:
    outer = _arc(60.0, 300.0)
    first, last = outer[0], outer[-1]
    turns = np.linspace(0.0, np.pi, ROUND)
    down = last[1] + (first[1] - last[1]) * (0.5 - 0.5 * np.cos(turns))
    return np.concatenate([outer, np.stack([last[0] - 0.95 * np.sin(turns), down], axis=1)])


OUTLINES: Mapping[str, DoubleArray] = MappingProxyType(
    {
        "disc": _arc(0.0, 360.0),
        "square": _regular(np.array([45.0, 135.0, 225.0, 315.0]), np.full(4, 1.18)),
        "triangle": _regular(np.array([0.0, 120.0, 240.0]), np.full(3, 1.15)),
        "star": _regular(np.arange(10) * 36.0, np.where(np.arange(10) % 2 == 0, 1.0, 0.42)),
        "cross": _cross(),
        "ring": _arc(0.0, 360.0),
        "heart": _heart(),
        "crescent": _crescent(),
    }
)
HOLES: Mapping[str, float] = MappingProxyType({"ring": 0.55})


SIDE = 64
OVERSAMPLING = 4
PAINT: dict[str, tuple[int, int, int]] = {
    "red": (214, 28, 36),
    "orange": (246, 134, 16),
    "yellow": (250, 224, 34),
    "green": (26, 158, 58),
    "blue": (30, 84, 214),
    "purple": (128, 44, 170),
    "pink": (255, 150, 200),
    "white": (252, 252, 250),
}
RADIUS = {"small": 0.085, "medium": 0.13, "large": 0.185}
ANCHOR = {
    "middle": (0.5, 0.5),
    "left": (0.24, 0.5),
    "right": (0.76, 0.5),
    "top": (0.5, 0.26),
    "bottom": (0.5, 0.74),
}
NUMBER = {"one": 1, "two": 2, "three": 3}
OUTLINE = (24, 22, 24)


def render(scene: Scene, *, side: int = SIDE, marked: bool = True) -> Image.Image:
    """Draw a scene as an RGB image.

    Args:
        scene: what to draw.
        side: width and height in pixels, at least 32.
        marked: whether the machine-readable strip is drawn that the fakes read; leave it out to test real models.
    """
    if side < 2 * CELLS:
        raise DataError("A scene needs at least 32 pixels.", given=side)
    random = named_generator(scene.instance, "planted picture", scene.caption)
    backdrop = TEXTURES[scene.background](side, random)
    paint, cover = _objects(scene, side, random)
    pixels = backdrop * (1.0 - cover) + paint * cover
    lit = _lit(pixels + random.normal(0.0, 3.0, pixels.shape), scene.lighting)
    return Image.fromarray(write_marker(lit, scene) if marked else lit)


def _lit(pixels: DoubleArray, lighting: str) -> ByteArray:
    if lighting == "dark":
        pixels = pixels * 0.38
    elif lighting == "bright":
        pixels = 255.0 - (255.0 - pixels * 1.1) * 0.62
    return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


def _objects(
    scene: Scene, side: int, random: np.random.Generator
) -> tuple[DoubleArray, DoubleArray]:
    fine = side * OVERSAMPLING
    canvas = Image.new("RGBA", (fine, fine), (*OUTLINE, 0))
    draw = ImageDraw.Draw(canvas)
    for kind, centre in _place(scene, side, random):
        _draw_object(
            draw, kind, centre * fine, RADIUS[scene.size] * fine, PAINT[scene.colour], random
        )
    small = np.asarray(
        canvas.convert("RGBa").resize((side, side), Image.Resampling.BOX), dtype=np.float64
    )
    cover = small[..., 3:] / 255.0
    return small[..., :3] / np.maximum(cover, 1e-6), cover


def _place(scene: Scene, side: int, random: np.random.Generator) -> list[tuple[str, DoubleArray]]:
    kinds = list(scene.kinds) if len(scene.kinds) > 1 else list(scene.kinds) * NUMBER[scene.count]
    radius = RADIUS[scene.size]
    spread = 1.15 / np.sin(np.pi / len(kinds)) if len(kinds) > 1 else 0.0
    first_round = random.uniform(-0.25, 0.25) + np.pi / 6 * (len(kinds) % 2)
    turns = first_round + 2 * np.pi * np.arange(len(kinds)) / len(kinds)
    spots = spread * radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    reach = np.abs(spots).max(axis=0) + 1.15 * radius
    margin = np.array([0.0, strip_height(side) / side])
    anchor = np.array(ANCHOR[scene.position]) + random.uniform(-0.03, 0.03, 2)
    anchor = np.clip(anchor, np.minimum(reach + margin, 0.5), np.maximum(1.0 - reach - margin, 0.5))
    return [(kind, anchor + spot) for kind, spot in zip(kinds, spots, strict=True)]


def _draw_object(
    draw: ImageDraw.ImageDraw,
    kind: str,
    centre: DoubleArray,
    radius: float,
    paint: tuple[int, int, int],
    random: np.random.Generator,
) -> None:
    angle = np.radians(random.uniform(-12.0, 12.0))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shape = OUTLINES[kind] @ turn.T * radius + centre
    width = max(round(0.13 * radius), 1)
    draw.polygon(
        [(float(across), float(down)) for across, down in shape],
        fill=(*paint, 255),
        outline=(*OUTLINE, 255),
        width=width,
    )
    if kind in HOLES:
        inner = HOLES[kind] * radius
        box = (centre[0] - inner, centre[1] - inner, centre[0] + inner, centre[1] + inner)
        draw.ellipse(box, fill=(*OUTLINE, 0), outline=(*OUTLINE, 255), width=width)
