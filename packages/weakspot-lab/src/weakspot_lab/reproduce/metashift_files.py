"""MetaShift, cat against dog, indoors and outdoors, read as the scripts of its authors write it; no pickle is opened."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from weakspot.core.arrays import generator
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.labelled_files import image_files
from weakspot_lab.reproduce.photographs import ImageList

CLASSES, PLACES = ("cat", "dog"), ("indoor", "outdoor")
GROUPS = "imageID_to_group.json"
METASHIFT = DataSet(
    name="MetaShift",
    files={
        "train/cat/cat(indoor)": "subset of MetaShift-Cat-Dog-indoor-outdoor, which names the group in the folder",
        "train/dog/dog(outdoor)": "subset",
        "test/cat/cat(outdoor)": "subset",
        "test/dog/dog(indoor)": "subset",
    },
)
METASHIFT_MIXED = DataSet(
    name="MetaShift, mixed",
    files={
        **{
            f"{part}/{name}": f"folder of images of MetaShift-subpopulation-shift or COCO-Cat-Dog-indoor-outdoor, {part}"
            for part in ("train", "val_out_of_domain")
            for name in CLASSES
        },
        GROUPS: "imageID_to_group.pkl as JSON: the pickle could run code and is not opened, so convert your own copy: python -c "
        "\"import json, pickle; json.dump(pickle.load(open('imageID_to_group.pkl', 'rb')), open('imageID_to_group.json', 'w'))\"",
    },
)
PARTS = (Split.TEST, Split.TRAIN, Split.VALIDATION)
MINORITY, MAJORITY = (144, 100, 50), (144, 750, 100)
"""Images of a subset for test and training, as the authors' script takes them; what it leaves out of its 294 and 994 is for validation."""
VALIDATION_EVERY = 3

Row = tuple[Path, int, int, str]


def read_metashift(folder: Path, *, seed: int) -> ImageList:
    """Read the subsets, and deal them out in the shift of the authors' experiment: training mostly shows cats indoors, dogs outdoors.

    Raises:
        DataError: if a subset holds too few images.
    """
    rows: list[Row] = []
    for path in METASHIFT.files:
        class_name, place = _group(Path(path).name, folder)
        images = image_files(folder / path)
        counts = MINORITY if path.startswith("test/") else MAJORITY
        if len(images) < len(PARTS):
            raise DataError(
                "A subset holds too few images.",
                where=str(folder / path),
                given=len(images),
                fix="Run subpopulation_shift_cat_dog_indoor_outdoor.py of MetaShift again.",
            )
        drawn = generator(seed, "metashift", path).permutation(len(images))[: sum(counts)]
        edges = np.round(np.cumsum(counts) * len(drawn) / sum(counts)).astype(int)
        for place_in_order, row in enumerate(drawn.tolist()):
            part = PARTS[int(np.searchsorted(edges, place_in_order, side="right"))]
            rows.append((images[row], class_name, place, part.value))
    return _listed(rows)


def read_mixed_metashift(folder: Path) -> ImageList:
    """Read the version whose folders mix the groups: a third of val_out_of_domain is for validation, the rest for test.

    Raises:
        DataError: if an image is in no group.
    """
    groups = _groups(folder / GROUPS)
    rows: list[Row] = []
    counts: dict[tuple[int, int], int] = {}
    for part in ("train", "val_out_of_domain"):
        for name in CLASSES:
            for path in image_files(folder / part / name):
                if path.stem not in groups:
                    raise DataError(
                        "An image is in no group.",
                        where=str(folder / GROUPS),
                        given=path.stem,
                        fix="Convert the imageID_to_group.pkl that was written together with these folders.",
                    )
                group = _group(groups[path.stem], folder)
                split = Split.TRAIN
                if part != "train":
                    counts[group] = counts.get(group, 0) + 1
                    is_held = counts[group] % VALIDATION_EVERY == 0
                    split = Split.VALIDATION if is_held else Split.TEST
                rows.append((path, *group, split.value))
    return _listed(rows)


def _groups(path: Path) -> Mapping[str, str]:
    """Return the group of every image: the data set gives a list with one entry."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(image): str(groups[0]) for image, groups in found.items()}
    except (ValueError, AttributeError, LookupError, TypeError) as error:
        raise DataError(
            "The groups cannot be read.",
            where=str(path),
            fix='The file gives every image a list with its group: {"2316534": ["cat(indoor)"]}.',
        ) from error


def _group(name: str, folder: Path) -> tuple[int, int]:
    """Return class and place of a subset such as `cat(indoor)`."""
    found = re.fullmatch(r"(\w+)\((\w+)\)", name)
    if found is None or found[1] not in CLASSES or found[2] not in PLACES:
        raise DataError(
            "There is no such group.",
            where=str(folder),
            given=name,
            fix="The protocol knows cat and dog, indoor and outdoor.",
        )
    return CLASSES.index(found[1]), PLACES.index(found[2])


def _listed(rows: list[Row]) -> ImageList:
    return ImageList(
        class_names=CLASSES,
        values=PLACES,
        paths=tuple(path for path, _, _, _ in rows),
        labels=np.array([label for _, label, _, _ in rows], dtype=np.int64),
        attributes=np.array([place for _, _, place, _ in rows], dtype=np.int64),
        splits=np.array([split for _, _, _, split in rows]),
    )
