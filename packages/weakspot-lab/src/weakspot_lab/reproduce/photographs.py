"""The papers' data sets of photographs with a known attribute, read as they are distributed: CelebA and Waterbirds."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.roles import Embedder
from weakspot.data.images import decode_image
from weakspot.run.embedding import choose_embedder
from weakspot.run.settings import EmbedderSettings
from weakspot_lab.reproduce.cifar_files import read_records
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.labelled_files import CIFAR_100

CELEBA = DataSet(
    name="CelebA",
    files={
        "list_attr_celeba.txt": "40 attributes of every image",
        "list_eval_partition.txt": "split of every image",
        "img_align_celeba": "folder of aligned images",
    },
)
WATERBIRDS = DataSet(
    name="Waterbirds",
    files={"metadata.csv": "columns img_filename, y, split and place, and the images"},
)
CIFAR100 = DataSet(
    name="CIFAR-100",
    files={**CIFAR_100.files, "coarse_label_names.txt": "names of the 20 superclasses"},
)
SPLITS = (Split.TRAIN, Split.VALIDATION, Split.TEST)
BATCH = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedSamples:
    """Samples with a label and an attribute, which together are the given groups.

    Args:
        class_names: names of the labels.
        values: names of the attribute's values.
        labels: [n].
        attributes: number of every sample's value [n].
        splits: [n] train, validation or test.
    """

    class_names: tuple[str, ...]
    values: tuple[str, ...]
    labels: IntArray
    attributes: IntArray
    splits: AnyArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageList(GroupedSamples):
    """Photographs.

    Args:
        paths: [n].
    """

    paths: tuple[Path, ...]

    def only(self, rows: IntArray) -> "ImageList":
        return replace(
            self,
            paths=tuple(self.paths[row] for row in rows.tolist()),
            labels=self.labels[rows],
            attributes=self.attributes[rows],
            splits=self.splits[rows],
        )


def read_celeba(folder: Path, *, label: str, attribute: str) -> ImageList:
    """Read CelebA: a label and an attribute among its forty, by their names in the list.

    Raises:
        DataError: if the lists cannot be read.
    """
    lines = (folder / "list_attr_celeba.txt").read_text(encoding="utf-8").splitlines()
    names = lines[1].split() if len(lines) > 1 else []
    missing = [one for one in (label, attribute) if one not in names]
    if missing:
        raise DataError(
            "The list of attributes does not name them.",
            where=str(folder / "list_attr_celeba.txt"),
            given=missing,
            fix="The second line of CelebA's list names forty attributes.",
        )
    parts = dict(
        line.split()
        for line in (folder / "list_eval_partition.txt").read_text().splitlines()
        if line
    )
    places = (names.index(label), names.index(attribute))
    rows: list[tuple[str, int, int]] = []
    for line in lines[2:]:
        words = line.split()
        if words:
            own, other = (int(words[1 + place] == "1") for place in places)
            rows.append((words[0], own, other))
    split_of = [SPLITS[int(_known(parts, name, folder))].value for name, _, _ in rows]
    return ImageList(
        class_names=(f"not {label.lower()}", label.lower()),
        values=(f"not {attribute.lower()}", attribute.lower()),
        paths=tuple(folder / "img_align_celeba" / name for name, _, _ in rows),
        labels=np.array([one for _, one, _ in rows], dtype=np.int64),
        attributes=np.array([one for _, _, one in rows], dtype=np.int64),
        splits=np.array(split_of),
    )


def _known(parts: dict[str, str], name: str, folder: Path) -> str:
    if name not in parts:
        raise DataError(
            "An image is in no split.",
            where=str(folder / "list_eval_partition.txt"),
            given=name,
            fix="Take both lists from the same distribution of CelebA.",
        )
    return parts[name]


def read_waterbirds(folder: Path) -> ImageList:
    """Read Waterbirds: the bird is the label, the place the attribute.

    Raises:
        DataError: if the table lacks a column.
    """
    path = folder / "metadata.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    wanted = ("img_filename", "y", "split", "place")
    lacking = [name for name in wanted if not rows or name not in rows[0]]
    if lacking:
        raise DataError("The table lacks columns.", where=str(path), given=lacking)
    return ImageList(
        class_names=("landbird", "waterbird"),
        values=("land", "water"),
        paths=tuple(folder / row["img_filename"] for row in rows),
        labels=np.array([int(row["y"]) for row in rows], dtype=np.int64),
        attributes=np.array([int(row["place"]) for row in rows], dtype=np.int64),
        splits=np.array([SPLITS[int(row["split"])].value for row in rows]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CifarImages:
    """CIFAR-100.

    Args:
        superclasses: 20 names.
        subclasses: 100 names.
        images: [n, 32, 32, 3] of bytes.
        coarse: superclass of every image [n].
        fine: subclass of every image [n].
        is_test: which images are of the test file [n].
    """

    superclasses: tuple[str, ...]
    subclasses: tuple[str, ...]
    images: AnyArray
    coarse: IntArray
    fine: IntArray
    is_test: AnyArray


def read_cifar100(folder: Path) -> CifarImages:
    """Read the binary version of CIFAR-100 with superclasses and subclasses.

    Raises:
        DataError: if a file does not hold whole records.
    """
    names = [
        tuple((folder / f"{kind}_label_names.txt").read_text(encoding="utf-8").split())
        for kind in ("coarse", "fine")
    ]
    parts = [read_records(folder / name, 2) for name in ("train.bin", "test.bin")]
    labels = np.concatenate([one for one, _ in parts])
    return CifarImages(
        superclasses=names[0],
        subclasses=names[1],
        images=np.concatenate([images for _, images in parts]),
        coarse=labels[:, 0],
        fine=labels[:, 1],
        is_test=np.arange(len(labels)) >= len(parts[0][0]),
    )


def embed_arrays(embedder: Embedder, images: AnyArray) -> FloatArray:
    """Return embeddings [n, d] of images that are in memory."""
    from PIL import Image

    return np.concatenate(
        [
            embedder.embed_prepared(
                [embedder.prepare(Image.fromarray(one)) for one in images[start : start + BATCH]]
            )
            for start in range(0, len(images), BATCH)
        ]
    )


def open_embedder(models: Sequence[str]) -> Embedder:
    """Return the first of the named embedders, or the one that this machine can have."""
    return choose_embedder(EmbedderSettings(name=models[0] if models else "auto"))[0]


def open_text_embedder(models: Sequence[str]) -> Embedder:
    """Return the embedder of `open_embedder`, which must take phrases too.

    Raises:
        DataError: if it has no text side.
    """
    embedder = open_embedder(models)
    if not embedder.has_text:
        raise DataError(
            "The embedder has no text side, so that phrases cannot be compared with images.",
            where="--models",
            given=embedder.encoder_id,
            fix="Name an embedder with text.",
        )
    return embedder


def embed_files(embedder: Embedder, paths: Sequence[Path]) -> FloatArray:
    """Return embeddings [n, d] of images."""
    parts = [
        embedder.embed_prepared(batch)
        for batch in _batches(paths, embedder.prepare, embedder.image_side)
    ]
    return np.concatenate(parts)


def small_images(paths: Sequence[Path], side: int) -> AnyArray:
    """Return images [n, side, side, 3] for networks trained from scratch."""

    def shrink(image: Any) -> AnyArray:
        return np.asarray(image.resize((side, side)), dtype=np.uint8)

    return np.stack([one for batch in _batches(paths, shrink, side) for one in batch])


def _batches(
    paths: Sequence[Path], prepare: Callable[[Any], AnyArray], side: int | None
) -> Iterator[list[AnyArray]]:
    for start in range(0, len(paths), BATCH):
        batch = []
        for path in paths[start : start + BATCH]:
            try:
                decoded = decode_image(path.read_bytes(), image_side=side)
            except OSError as error:
                raise DataError(
                    "An image cannot be read.", where=str(path), given=str(error.strerror)
                ) from error
            batch.append(prepare(decoded.image))
        yield batch
