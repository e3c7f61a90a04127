import json

import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import require_data
from weakspot_lab.reproduce.labelled_files import (
    CIFAR_10,
    CIFAR_100,
    IMAGENET,
    INATURALIST,
    RPC,
    read_cifar,
    read_files,
    read_imagenet,
    read_rpc,
)


def _splits(found):
    return [(one.label, one.split) for one in found.files]


@pytest.fixture
def imagenet(tmp_path):
    """Two classes of the same words, one training image and 31 validation images each."""
    for number in ("n02", "n01"):
        for part, count in (("train", 1), ("val", 31)):
            folder = tmp_path / part / number
            folder.mkdir(parents=True)
            for place in range(count):
                (folder / f"{place:02d}.JPEG").write_bytes(b"")
    (tmp_path / "LOC_synset_mapping.txt").write_text("n01 crane, a bird\nn02 crane, a machine\n")
    return tmp_path


def test_read_imagenet__divided_as_refine_divides_it(imagenet, tmp_path):
    assert require_data(imagenet, [IMAGENET], paper="p") is IMAGENET
    found = read_files(IMAGENET, imagenet, tmp_path)
    assert found.class_names == ("crane (n01)", "crane (n02)")
    own = [one.split for one in found.files if one.label == "crane (n01)"]
    assert own == [Split.TRAIN, *[Split.VALIDATION] * 30, Split.TEST]


def test_read_imagenet__a_class_without_words(imagenet):
    (imagenet / "LOC_synset_mapping.txt").write_text("n01 crane\n")
    with pytest.raises(DataError) as caught:
        read_imagenet(imagenet)
    assert caught.value.given == ["n02"]


@pytest.mark.parametrize(("is_fine", "n_labels"), [(True, 2), (False, 1)])
def test_read_cifar__records_become_files_once(tmp_path, is_fine, n_labels):
    pixels = np.arange(3072, dtype=np.uint8)
    record = bytes([7] * (n_labels - 1) + [1]) + pixels.tobytes()
    names = (
        ("train.bin", "test.bin", "fine_label_names.txt")
        if is_fine
        else ("data_batch_1.bin", "test_batch.bin", "batches.meta.txt")
    )
    for name in names[:2]:
        (tmp_path / name).write_bytes(record)
    (tmp_path / names[2]).write_text("apple\nbear\n")
    data_set = CIFAR_100 if is_fine else CIFAR_10
    found = read_files(require_data(tmp_path, [data_set], paper="p"), tmp_path, tmp_path / "work")
    assert _splits(found) == [("bear", Split.TRAIN), ("bear", Split.VALIDATION)]
    with Image.open(found.files[0].path) as image:
        shown = np.asarray(image)
    assert shown[0, 1].tolist() == [pixels[1], pixels[1025], pixels[2049]]
    (tmp_path / names[0]).write_bytes(record[:-1])
    with pytest.raises(DataError, match="whole records"):
        read_cifar(tmp_path, tmp_path / "work", is_fine=is_fine)


@pytest.fixture
def rpc(tmp_path):
    for part in ("train", "val", "test"):
        (tmp_path / f"{part}2019").mkdir()
        given = {
            "categories": [{"id": 5, "name": "tea"}, {"id": 6, "name": "milk"}],
            "images": [{"id": 1, "file_name": "a.jpg"}],
            "annotations": [
                {"image_id": 1, "category_id": 5, "bbox": [1, 2, 3, 4]},
                {"image_id": 1, "category_id": 6, "bbox": [0, 0, 2, 2]},
            ],
        }
        (tmp_path / f"instances_{part}2019.json").write_text(json.dumps(given))
    return tmp_path


def test_read_rpc__every_box_is_a_sample_and_half_of_validation_is_the_pool(rpc):
    found = read_files(require_data(rpc, [RPC], paper="p"), rpc, rpc)
    assert found.class_names == ("tea", "milk")
    assert found.files[0].box == (1.0, 2.0, 4.0, 6.0)
    assert [one.split for one in found.files] == [
        *[Split.TRAIN] * 2,
        Split.VALIDATION,
        Split.POOL,
        *[Split.TEST] * 2,
    ]
    (rpc / "instances_val2019.json").write_text("{")
    with pytest.raises(DataError, match="no JSON"):
        read_rpc(rpc)


def test_read_inaturalist__names_and_splits_and_a_manifest(tmp_path):
    (tmp_path / "train_val2018").mkdir()
    (tmp_path / "categories.json").write_text(json.dumps([{"id": 3, "name": "Rana"}]))
    for part, count in (("train", 1), ("val", 4)):
        given = {
            "images": [
                {"id": place, "file_name": f"train_val2018/{part}{place}.jpg"}
                for place in range(count)
            ],
            "annotations": [{"image_id": place, "category_id": 3} for place in range(count)],
        }
        (tmp_path / f"{part}2018.json").write_text(json.dumps(given))
    found = read_files(require_data(tmp_path, [INATURALIST], paper="p"), tmp_path, tmp_path)
    assert [one.split for one in found.files] == [Split.TRAIN, *[Split.VALIDATION] * 3, Split.TEST]
    found.write_manifest(tmp_path / "manifest.csv")
    lines = (tmp_path / "manifest.csv").read_text().splitlines()
    assert lines[0] == "path,label,split"
    assert lines[1].endswith("train0.jpg,Rana,train")
