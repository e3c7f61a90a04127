"""Scenes with true masks: photographed cut-outs of Debian's tuxpaint-stamps-default put on real photographs.

Objects and grounds are parted by name into two halves that share nothing: the mask gate learns on one, figures are of the other.
"""

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from embedded_images import STAMP_KINDS, run
from PIL import Image, ImageOps
from pyarrow import parquet

from weakspot.core.arrays import ByteArray, FloatArray
from weakspot.models.packages import fetch
from weakspot.project.demo import GROCERIES

Kind = Literal["one", "cut", "heap"]
SIDE = 320
SHARES: dict[Kind, float] = {"one": 0.55, "cut": 0.15, "heap": 0.3}
DRAWN = "cartoon|mirror|outlined"
MIN_COLOURS = 150
NATURE_SHARE = 0.4
BESIDE_SHARE = 0.2
MIN_SHARE = 0.02


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueScene:
    """An image, how much of each of its pixels is object, what was put there, and how."""

    pixels: ByteArray
    truth: FloatArray
    name: str
    kind: Kind


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Half of all cut-outs and grounds."""

    stamps: tuple[Path, ...]
    shops: tuple[bytes, ...]
    nature: tuple[Image.Image, ...]


def material(work: Path, half: int) -> Material:
    """Return the cut-outs, shop photographs and landscapes of one half (0 or 1), fetched from registries if need be."""
    stamps = debian_folder(work, "tuxpaint-stamps-default") / "usr/share/tuxpaint/stamps"
    nature = debian_folder(work, "mate-backgrounds") / "usr/share/backgrounds/mate/nature"
    shops = parquet.read_table(fetch(GROCERIES), columns=["image_data"]).column(0).to_pylist()
    return Material(
        stamps=tuple(
            path for path in photographed(stamps) if half_of(path.relative_to(stamps)) == half
        ),
        shops=tuple(
            one
            for one in sorted(set(shops), key=lambda one: hashlib.sha256(one).digest())
            if half_of(hashlib.sha256(one).hexdigest()) == half
        ),
        nature=tuple(
            _small(path) for path in sorted(nature.glob("*.jpg")) if half_of(path.name) == half
        ),
    )


def scenes(given: Material, n: int, *, seed: int) -> Iterator[TrueScene]:
    """Yield scenes, no more than n: those where hardly anything is left within the image are dropped."""
    rng = np.random.default_rng(seed)
    rounds = -(-n // len(given.stamps))
    order = np.concatenate([rng.permutation(len(given.stamps)) for _ in range(rounds)])[:n]
    for number in order:
        kind: Kind = rng.choice(list(SHARES), p=list(SHARES.values()))
        scene = _scene(given, given.stamps[number], kind, rng)
        if scene.truth.mean() >= MIN_SHARE:
            yield scene


def _scene(given: Material, stamp: Path, kind: Kind, rng: np.random.Generator) -> TrueScene:
    canvas = np.asarray(_ground(given, rng), dtype=np.float32)
    truth = np.zeros((SIDE, SIDE), dtype=np.float32)
    gain = rng.uniform(0.75, 1.15)
    if kind == "one" and rng.random() < BESIDE_SHARE:
        other = given.stamps[int(rng.integers(len(given.stamps)))]
        spot = rng.choice([0.18, 0.82]), rng.choice([0.2, 0.8])
        canvas, _ = _put(canvas, _object(other, rng), rng.uniform(0.15, 0.3), spot, gain)
    one = _object(stamp, rng)
    for length, spot in _places(kind, rng):
        turned = one.rotate(rng.uniform(-40, 40), expand=True) if kind == "heap" else one
        canvas, cover = _put(canvas, turned, length, spot, gain * rng.uniform(0.9, 1.1))
        truth = np.maximum(truth, cover)
    noisy = canvas + rng.normal(size=canvas.shape) * rng.uniform(0, 6)
    return TrueScene(
        pixels=_photographed(noisy, int(rng.integers(70, 95))),
        truth=truth,
        name=stamp.stem,
        kind=kind,
    )


def _places(kind: Kind, rng: np.random.Generator) -> list[tuple[float, tuple[float, float]]]:
    middle = 0.5 + rng.normal(size=2) * 0.09
    if kind == "one":
        return [(rng.uniform(0.35, 0.95), (middle[0], middle[1]))]
    if kind == "cut":
        side = rng.choice([0.15, 0.5, 0.85], size=2)
        return [(rng.uniform(0.6, 1.3), (side[0], side[1]))]
    length, spread = rng.uniform(0.15, 0.4), rng.uniform(0.1, 0.42)
    return [
        (length * rng.uniform(0.85, 1.15), (middle[0] + across, middle[1] + down))
        for across, down in rng.normal(size=(int(rng.integers(6, 50)), 2)) * spread
    ]


def _ground(given: Material, rng: np.random.Generator) -> Image.Image:
    if rng.random() < NATURE_SHARE:
        image = given.nature[int(rng.integers(len(given.nature)))]
    else:
        shop = given.shops[int(rng.integers(len(given.shops)))]
        image = Image.open(io.BytesIO(shop)).convert("RGB")
    length = int(min(image.size) * rng.uniform(0.45, 0.95))
    left, top = (int(rng.integers(side - length + 1)) for side in image.size)
    return image.crop((left, top, left + length, top + length)).resize(
        (SIDE, SIDE), Image.Resampling.BICUBIC
    )


def _object(path: Path, rng: np.random.Generator) -> Image.Image:
    image = Image.open(path).convert("RGBA")
    image = image.crop(image.getchannel("A").point(lambda value: 255 * (value > 20)).getbbox())
    image.thumbnail((500, 500))
    return ImageOps.mirror(image) if rng.random() < 0.5 else image


def _put(
    canvas: FloatArray, image: Image.Image, length: float, spot: Sequence[float], gain: float
) -> tuple[FloatArray, FloatArray]:
    factor = length * SIDE / max(image.size)
    size = (max(4, round(image.width * factor)), max(4, round(image.height * factor)))
    layer = Image.new("RGBA", (SIDE, SIDE), (0, 0, 0, 0))
    corner = round(spot[0] * SIDE - size[0] / 2), round(spot[1] * SIDE - size[1] / 2)
    layer.paste(image.resize(size, Image.Resampling.LANCZOS), corner)
    values = np.asarray(layer, dtype=np.float32)
    alpha = values[..., 3] / 255
    seen = np.clip(values[..., :3] * gain, 0, 255)
    return canvas * (1 - alpha[..., None]) + seen * alpha[..., None], alpha


def _photographed(canvas: FloatArray, quality: int) -> ByteArray:
    stream = io.BytesIO()
    Image.fromarray(np.clip(canvas, 0, 255).astype(np.uint8)).save(stream, "JPEG", quality=quality)
    return np.array(Image.open(stream).convert("RGB"), dtype=np.uint8)


def photographed(root: Path) -> list[Path]:
    """Return the cut-outs that are photographs, by their number of colours, with a true outline."""
    found = [
        path
        for path in sorted(root.rglob("*.png"), key=str)
        if path.relative_to(root).parts[0] in STAMP_KINDS
        and not re.search(DRAWN, str(path.relative_to(root)))
    ]
    return [path for path in found if _has_outline(np.asarray(Image.open(path).convert("RGBA")))]


def _has_outline(values: ByteArray) -> bool:
    alpha = values[..., 3]
    if (alpha > 250).mean() > 0.97 or (alpha > 128).mean() < 0.05:
        return False
    colours = np.unique(values[..., :3][alpha > 128] // 8, axis=0)
    return len(colours) >= MIN_COLOURS


def half_of(name: object) -> int:
    return hashlib.sha256(str(name).encode()).digest()[-1] % 2


def debian_folder(work: Path, package: str) -> Path:
    """Return a Debian package unpacked below a folder, downloaded if need be."""
    folder = work / package
    if not folder.exists():
        run(["apt-get", "download", package], cwd=work)
        run(["dpkg-deb", "-x", str(next(work.glob(f"{package}_*.deb"))), str(folder)])
    return folder


def _small(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    image.thumbnail((900, 900))
    return image
