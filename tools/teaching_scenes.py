"""Draws the images that teach the embedded text side backgrounds, surfaces, numbers, weather and what is hidden.

Cut-outs of `tuxpaint-stamps-default` and views of `mate-backgrounds`, as in `teaching_writing.py`; half of them are held back. Every
scene is shown in every way of its family; what a word adds is the mean difference to the other ways. No image is kept.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import embedded_images as shown
import scene_images as scenes
from attribute_images import FILTERS, place, plain_background, random_view
from teaching_writing import LEARN, MEASURE, Drawn, _halves, _photograph

SEED = 43
N_SCENES = {LEARN: 14, MEASURE: 12}
PHOTOGRAPHED = "photograph"
MANY = 9
CARTOONS = 14


def draw(work: Path) -> list[Drawn]:
    """Draw every image, the same every time; `work` holds downloads as in `benchmarks/embedded_default.py`."""
    rng = np.random.default_rng(SEED)
    cutouts = _halves(shown.stamps(work), rng)
    found = sorted((work / "stamps").rglob("nature/*.jpg"), key=str)
    views = {part: [_photograph(path) for path in own] for part, own in _halves(found, rng).items()}
    made: list[Drawn] = []
    for part in (LEARN, MEASURE):
        chosen = rng.permutation(len(cutouts[part]))
        for scene in range(N_SCENES[part]):
            own = [
                shown.stamp(cutouts[part][chosen[(scene * 3 + k) % len(chosen)]]) for k in (0, 1, 2)
            ]
            made += [
                Drawn(f"{part}-{family}", scene, what, image)
                for family, drawn in _scene(own, views[part], rng).items()
                for what, image in drawn.items()
            ]
    cartoons = _halves(_cartoons(work), rng)
    for part in (LEARN, MEASURE):
        for scene, path in enumerate(cartoons[part][:CARTOONS]):
            image = place(shown.stamp(path), plain_background(rng), rng, scale=(0.7, 0.95))
            made.append(Drawn(f"{part}-cartoon", scene, "cartoon", image))
    return made


def read_or_embed(work: Path) -> tuple[list[tuple[str, int, str]], np.ndarray]:
    """Return (part-family, scene, what) of every image and centred embeddings [n, 512]; kept in the work folder."""
    names, rows = work / "scenes.json", work / "scenes.npy"
    if names.is_file() and rows.is_file():
        return [tuple(one) for one in json.loads(names.read_text())], np.load(rows)
    from weakspot.models.embedded.encoder import EmbeddedDefault

    embedder = EmbeddedDefault(threads=1)
    drawn = draw(work)
    embeddings = [embedder.embed_prepared([embedder.prepare(one.image)])[0] for one in drawn]
    found = [(one.part, one.scene, one.what) for one in drawn]
    np.save(rows, np.stack(embeddings))
    names.write_text(json.dumps(found))
    return found, np.stack(embeddings)


def _scene(
    own: list[Image.Image], views: list[Image.Image], rng: np.random.Generator
) -> dict[str, dict[str, Image.Image]]:
    first, *others = own
    view = random_view(views[rng.integers(len(views))], rng)
    at = int(rng.integers(1 << 31))

    def on(ground: Image.Image, cutout: Image.Image = first) -> Image.Image:
        return place(cutout, ground, np.random.default_rng(at), scale=(0.5, 0.75))

    grounds = {what: on(make(rng)) for what, make in scenes.GROUNDS.items()}
    grounds |= {
        PHOTOGRAPHED: on(view),
        "blurred": on(scenes.blurred_ground(views[rng.integers(len(views))], rng)),
        "cluttered": on(scenes.clutter(others, view, rng)),
    }
    surfaces = {what: on(view, make(first, rng)) for what, make in scenes.SURFACES.items()}
    plain = plain_background(rng) if rng.random() < 0.5 else view
    counts = {
        "single": scenes.several(first, plain, 1),
        "two": scenes.several(first, plain, 2),
        "many": scenes.several(first, plain, MANY),
        "pile": scenes.heap(first, plain, rng),
    }
    clear = on(view)
    seen = {
        "clear": clear,
        "cropped": scenes.cut_off(first, view, rng),
        "hidden": scenes.hide(clear, others[0], rng),
        "rain": scenes.rain(clear, rng),
        "overexposed": scenes.overexpose(clear, rng),
        "foggy": FILTERS["foggy"](clear, rng),
        "night": FILTERS["night"](clear, rng),
        "upside down": FILTERS["upside down"](clear, rng),
    }
    return {
        "ground": grounds,
        "surface": {**surfaces, "plain": on(view)},
        "number": counts,
        "seen": seen,
    }


def _cartoons(work: Path) -> list[Path]:
    root = work / "stamps" / "usr/share/tuxpaint/stamps"
    found = sorted(root.rglob("cartoon/*.png"), key=str)
    return [path for path in found if "mirror" not in path.name]


if __name__ == "__main__":
    read_or_embed(Path(sys.argv[1]))
