import csv
import json
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image
from repair_results.cifar_project import RememberedTexts, write_manifest

from weakspot.core.dataset import Split
from weakspot.testing.fakes import PlantedEmbedder

FILES = (
    ("test_batch", "test_lables", 2, Split.TEST),
    ("data_batch_1", "train_lables", 3, Split.TRAIN),
)


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    for name, labels, first in (
        ("test_batch", "test_lables", 10),
        ("data_batch_1", "train_lables", 100),
    ):
        shades = np.arange(first, first + 4, dtype=np.uint8)
        Image.fromarray(np.repeat(shades, 32 * 32 * 3).reshape(4, 32 * 32, 3)).save(
            folder / f"{name}.png"
        )
        (folder / f"{labels}.json").write_text(json.dumps([3, 5, 0, 9]))
    return folder


def test_write_manifest__first_images_of_both_files_in_order(package, tmp_path):
    manifest = write_manifest(tmp_path / "project", package, FILES)
    with manifest.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["path"], row["label"], row["split"]) for row in rows] == [
        ("photos/test_batch-00000.png", "cat", "test"),
        ("photos/test_batch-00001.png", "dog", "test"),
        ("photos/data_batch_1-00000.png", "cat", "train"),
        ("photos/data_batch_1-00001.png", "dog", "train"),
        ("photos/data_batch_1-00002.png", "airplane", "train"),
    ]
    with Image.open(tmp_path / "project" / rows[3]["path"]) as image:
        assert np.unique(np.asarray(image)).tolist() == [101]


class Counting(PlantedEmbedder):
    """Notes what it is asked for."""

    asked: ClassVar[list[str]] = []

    def embed_texts(self, texts):
        self.asked.extend(texts)
        return super().embed_texts(texts)


def test_remembered_texts__every_phrase_is_embedded_once():
    embedder = Counting()
    texts = RememberedTexts(embedder)
    first, second = texts(["a red disc", "a star"]), texts(["a star", "a square", "a star"])
    assert embedder.asked == ["a red disc", "a star", "a square"]
    assert np.array_equal(second[0], first[1])
    assert np.array_equal(second[0], second[2])
    assert np.allclose(second[1], PlantedEmbedder().embed_texts(["a square"])[0])
    assert texts([]).shape == (0, 64)


def test_write_manifest__what_is_there_stays(package, tmp_path):
    (tmp_path / "manifest.csv").write_text("mine")
    assert write_manifest(tmp_path, package, FILES).read_text() == "mine"
    assert not (tmp_path / "photos").exists()
