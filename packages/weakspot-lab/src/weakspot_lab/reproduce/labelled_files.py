"""The papers' data sets of labelled photographs, read as they are distributed: ImageNet, iNaturalist, RPC, CIFAR-10 and CIFAR-100."""

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot_lab.reproduce.cifar_files import read_records
from weakspot_lab.reproduce.expected_files import DataSet

SUFFIXES = frozenset({".jpeg", ".jpg", ".png"})
N_TRAIN, N_DEBUG = 30, 30
"""Images of a class that the Refine paper trains on, and of its validation images those that failures are looked for in."""


@dataclass(frozen=True, kw_only=True)
class LabelledFile:
    """One photograph.

    Args:
        path: the file.
        label: its class.
        split: what it is for.
        box: left, top, right and bottom of the object, in pixels; None for the whole image.
    """

    path: Path
    label: str
    split: Split
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class LabelledFiles:
    """Photographs with labels.

    Args:
        class_names: in the order of the data set.
        files: the photographs.
    """

    class_names: tuple[str, ...]
    files: tuple[LabelledFile, ...]

    def write_manifest(self, path: Path) -> None:
        """Write a table that a project reads."""
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("path", "label", "split"))
            writer.writerows(
                (str(one.path.resolve()), one.label, one.split.value) for one in self.files
            )


IMAGENET = DataSet(
    name="ImageNet",
    files={
        "train/n*": "a folder of training images a WordNet id",
        "val/n*": "a folder of validation images a WordNet id",
        "LOC_synset_mapping.txt": "the words of every WordNet id",
    },
)
INATURALIST = DataSet(
    name="iNaturalist-2018",
    files={
        "train2018.json": "training images and their categories",
        "val2018.json": "validation images and their categories",
        "categories.json": "names of the categories",
        "train_val2018": "folder of images",
    },
)
PARTS = {"train": Split.TRAIN, "val": Split.VALIDATION, "test": Split.TEST}
RPC = DataSet(
    name="RPC",
    files={
        f"instances_{part}2019.json": f"boxes and products of the {part} images" for part in PARTS
    }
    | {f"{part}2019": f"folder of the {part} images" for part in PARTS},
)
CIFAR_100 = DataSet(
    name="CIFAR-100",
    files={
        "train.bin": "50,000 records of the binary version",
        "test.bin": "10,000 records of the binary version",
        "fine_label_names.txt": "names of the 100 classes",
    },
)
CIFAR_10 = DataSet(
    name="CIFAR-10",
    files={
        "data_batch_*.bin": "five files of 10,000 records, binary version",
        "test_batch.bin": "10,000 records",
        "batches.meta.txt": "names of the 10 classes",
    },
)


def read_files(found: DataSet, folder: Path, work: Path) -> LabelledFiles:
    """Read a data set that is there; `work` takes images that are not stored as files.

    Raises:
        DataError: if a list cannot be read.
    """
    readers: Mapping[str, Callable[[], LabelledFiles]] = {
        IMAGENET.name: lambda: read_imagenet(folder),
        INATURALIST.name: lambda: read_inaturalist(folder),
        RPC.name: lambda: read_rpc(folder),
        CIFAR_100.name: lambda: read_cifar(folder, work, is_fine=True),
        CIFAR_10.name: lambda: read_cifar(folder, work, is_fine=False),
    }
    return readers[found.name]()


def read_imagenet(folder: Path) -> LabelledFiles:
    """Read ImageNet as Refine divides it: 30 training images a class, 30 validation images for failures, the others for test."""
    words = dict(
        line.split(" ", 1)
        for line in (folder / "LOC_synset_mapping.txt").read_text(encoding="utf-8").splitlines()
        if " " in line
    )
    numbers = sorted(one.name for one in (folder / "train").iterdir() if one.is_dir())
    unknown = [one for one in numbers if one not in words]
    if unknown:
        raise DataError(
            "The mapping has no words for these WordNet ids.",
            where=str(folder / "LOC_synset_mapping.txt"),
            given=unknown[:5],
        )
    names = {one: words[one].split(",")[0].strip() for one in numbers}
    names = {
        one: f"{name} ({one})" if list(names.values()).count(name) > 1 else name
        for one, name in names.items()
    }
    files: list[LabelledFile] = []
    for number, name in names.items():
        for path in image_files(folder / "train" / number)[:N_TRAIN]:
            files.append(LabelledFile(path=path, label=name, split=Split.TRAIN))
        for place, path in enumerate(image_files(folder / "val" / number)):
            split = Split.VALIDATION if place < N_DEBUG else Split.TEST
            files.append(LabelledFile(path=path, label=name, split=split))
    return LabelledFiles(class_names=tuple(names.values()), files=tuple(files))


def read_inaturalist(folder: Path) -> LabelledFiles:
    """Read iNaturalist-2018: validation images are dealt out for failures and test."""
    names = {one["id"]: str(one["name"]) for one in _json(folder / "categories.json", list)}
    files = []
    for part in ("train", "val"):
        given = _json(folder / f"{part}2018.json", dict)
        category = {one["image_id"]: one["category_id"] for one in given["annotations"]}
        for place, one in enumerate(given["images"]):
            held = Split.VALIDATION if place % 5 < 3 else Split.TEST  # noqa: PLR2004 - 30 to 20, as of ImageNet
            split = Split.TRAIN if part == "train" else held
            label = names[category[one["id"]]]
            files.append(LabelledFile(path=folder / one["file_name"], label=label, split=split))
    return LabelledFiles(class_names=tuple(names.values()), files=tuple(files))


def read_rpc(folder: Path) -> LabelledFiles:
    """Read RPC: every box is a sample; single products are for training, half of the checkouts' validation boxes are the pool."""
    names: dict[int, str] = {}
    files = []
    for part, split in PARTS.items():
        given = _json(folder / f"instances_{part}2019.json", dict)
        names |= {one["id"]: str(one["name"]) for one in given["categories"]}
        paths = {one["id"]: folder / f"{part}2019" / one["file_name"] for one in given["images"]}
        for place, one in enumerate(given["annotations"]):
            left, top, width, height = map(float, one["bbox"])
            own = Split.POOL if split is Split.VALIDATION and place % 2 else split
            files.append(
                LabelledFile(
                    path=paths[one["image_id"]],
                    label=names[one["category_id"]],
                    split=own,
                    box=(left, top, left + width, top + height),
                )
            )
    return LabelledFiles(class_names=tuple(names.values()), files=tuple(files))


def read_cifar(folder: Path, work: Path, *, is_fine: bool) -> LabelledFiles:
    """Read the binary version of CIFAR-100 (fine classes) or CIFAR-10; images are written as files once.

    Raises:
        DataError: if a file does not hold whole records.
    """
    listed = "fine_label_names.txt" if is_fine else "batches.meta.txt"
    names = tuple((folder / listed).read_text(encoding="utf-8").split())
    first = (
        ["train.bin"] if is_fine else sorted(one.name for one in folder.glob("data_batch_*.bin"))
    )
    files = []
    for name in [*first, "test.bin" if is_fine else "test_batch.bin"]:
        labels, images = read_records(folder / name, 2 if is_fine else 1)
        for place, (label, pixels) in enumerate(zip(labels[:, -1], images, strict=True)):
            path = work / Path(name).stem / f"{place:05d}.png"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
            held = Split.VALIDATION if place % 5 < 3 else Split.TEST  # noqa: PLR2004 - 30 to 20, as of ImageNet
            split = held if "test" in name else Split.TRAIN
            files.append(LabelledFile(path=path, label=names[int(label)], split=split))
    return LabelledFiles(class_names=names, files=tuple(files))


def image_files(folder: Path) -> list[Path]:
    """Return the images of a class, by name.

    Raises:
        DataError: if there is no such folder.
    """
    if not folder.is_dir():
        raise DataError("A class has no folder.", where=str(folder))
    return sorted(one for one in folder.iterdir() if one.suffix.lower() in SUFFIXES)


def _json(path: Path, kind: type) -> Any:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError("The file is no JSON.", where=str(path)) from error
    if not isinstance(found, kind):
        raise DataError("The file does not hold what the data set documents.", where=str(path))
    return found
