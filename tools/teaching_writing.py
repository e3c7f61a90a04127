"""Draws the images that teach the embedded text side writing in an image and the size of an object in it.

Photographs of grocery shops (their training part), of Debian's `mate-backgrounds` and cut-outs of `tuxpaint-stamps-default` are
shown with and without writing. Half of the cut-outs and backgrounds, the test photographs, other words and another font are
held back for the figures. No image is kept after its embedding has been computed.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import embedded_images as shown
from attribute_images import place, plain_background, random_view
from written_images import WRITINGS

from weakspot.project.demo import groceries

SEED = 41
LEARN, MEASURE = "train", "test"
WORDS = {
    LEARN: [
        "SALE",
        "open",
        "hotel",
        "Fresh",
        "ORGANIC",
        "music",
        "News",
        "school",
        "EXIT",
        "summer",
        "Price",
        "BANK",
        "coffee",
        "happy",
        "welcome",
        "TAXI",
        "Sony",
        "office",
        "2.99",
        "50%",
        "new",
        "STOP",
        "radio",
        "garden",
    ],
    MEASURE: [
        "Bakery",
        "MARKET",
        "paris",
        "hello",
        "Winner",
        "ticket",
        "LIBRARY",
        "dream",
        "Nikon",
        "sample",
        "7.45",
        "Copyright",
        "LONDON",
        "quality",
        "Police",
        "river",
    ],
}
FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSansCondensed-Bold.ttf",
)
SIZES = {"small": (0.12, 0.25), "medium": (0.4, 0.55), "large": (0.85, 1.0)}
N_PHOTOGRAPHS = {LEARN: 34, MEASURE: 26}
N_COMPOSED = {LEARN: 16, MEASURE: 14}
N_VIEWS = 10
N_SIZED = {LEARN: 28, MEASURE: 20}
CLOSE_UP_SHARE, MIN_CLOSE_UP = 0.45, 20


@dataclass(frozen=True)
class Drawn:
    """One image: the part it is for, the scene it shows and what was done to it."""

    part: str
    scene: int
    what: str
    image: Image.Image


def draw(work: Path, fonts: Path) -> list[Drawn]:
    """Draw every image, the same every time; `work` holds downloads as in `benchmarks/embedded_default.py`."""
    rng = np.random.default_rng(SEED)
    measured = {image.tobytes() for _, _, image in shown.groceries(work)}
    cutouts = shown.stamps(work)
    halves = _halves(cutouts, rng)
    backgrounds = sorted((work / "stamps").rglob("nature/*.jpg"), key=str)
    grounds = {
        part: [_photograph(path) for path in own] for part, own in _halves(backgrounds, rng).items()
    }
    bases = {
        part: [
            *_shop(part, measured, rng),
            *[random_view(one, rng) for one in grounds[part] for _ in range(2)][:N_VIEWS],
            *[_composed(halves[part], grounds[part], rng) for _ in range(N_COMPOSED[part])],
        ]
        for part in (LEARN, MEASURE)
    }
    made: list[Drawn] = []
    for part, own in (
        (LEARN, [fonts / name for name in FONTS]),
        (MEASURE, []),
    ):
        for scene, base in enumerate(bases[part]):
            made.append(Drawn(f"{part}-text", scene, "clean", base))
            for what, write in WRITINGS.items():
                image = write(base, WORDS[part], own, rng)
                made.append(Drawn(f"{part}-text", scene, what, image))
    for part in (LEARN, MEASURE):
        made += _sized(part, halves[part], grounds[part], rng)
    return made


def read_or_embed(work: Path, fonts: Path) -> tuple[list[tuple[str, int, str]], np.ndarray]:
    """Return (part, scene, what) of every image and centred embeddings [n, 512]; kept in the work folder."""
    names, rows = work / "made.json", work / "made.npy"
    if names.is_file() and rows.is_file():
        return [tuple(one) for one in json.loads(names.read_text())], np.load(rows)
    from weakspot.models.embedded.encoder import EmbeddedDefault

    embedder = EmbeddedDefault()
    drawn = draw(work, fonts)
    embeddings = [embedder.embed_prepared([embedder.prepare(one.image)])[0] for one in drawn]
    found = [(one.part, one.scene, one.what) for one in drawn]
    np.save(rows, np.stack(embeddings))
    names.write_text(json.dumps(found))
    return found, np.stack(embeddings)


def _halves(given: list[Path], rng: np.random.Generator) -> dict[str, list[Path]]:
    order = rng.permutation(len(given))
    middle = len(order) // 2
    return {
        LEARN: [given[index] for index in order[:middle]],
        MEASURE: [given[index] for index in order[middle:]],
    }


def _photograph(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    image.thumbnail((900, 900))
    return image


def _shop(part: str, measured: set[bytes], rng: np.random.Generator) -> list[Image.Image]:
    """Return shop photographs; those that other figures are measured on are never learnt from."""
    own = [one for one in groceries() if one.split == part]
    found: list[Image.Image] = []
    for index in rng.permutation(len(own)):
        image = shown.square(own[index].data)
        if part != LEARN or image.tobytes() not in measured:
            found.append(image)
        if len(found) == N_PHOTOGRAPHS[part]:
            break
    return found


def _composed(
    cutouts: list[Path], grounds: list[Image.Image], rng: np.random.Generator
) -> Image.Image:
    is_plain = rng.random() < 0.5
    ground = (
        plain_background(rng) if is_plain else random_view(grounds[rng.integers(len(grounds))], rng)
    )
    return place(shown.stamp(cutouts[rng.integers(len(cutouts))]), ground, rng)


def _sized(
    part: str, cutouts: list[Path], grounds: list[Image.Image], rng: np.random.Generator
) -> list[Drawn]:
    made = []
    for scene in range(N_SIZED[part]):
        cutout = shown.stamp(cutouts[rng.integers(len(cutouts))])
        for what, scale in SIZES.items():
            ground = (
                plain_background(rng)
                if scene % 2
                else random_view(grounds[rng.integers(len(grounds))], rng)
            )
            made.append(Drawn(f"{part}-size", scene, what, place(cutout, ground, rng, scale=scale)))
        trimmed = cutout.crop(cutout.getchannel("A").getbbox())
        side = max(int(min(trimmed.size) * CLOSE_UP_SHARE), MIN_CLOSE_UP)
        left, top = (trimmed.width - side) // 2, (trimmed.height - side) // 2
        flat = Image.new("RGB", trimmed.size, (200, 200, 200))
        flat.paste(trimmed, (0, 0), trimmed)
        near = flat.crop((left, top, left + side, top + side))
        near = near.resize((shown.SIDE, shown.SIDE), Image.Resampling.BICUBIC)
        made.append(Drawn(f"{part}-size", scene, "close-up", near))
    return made
