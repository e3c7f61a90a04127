import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import require_data
from weakspot_lab.reproduce.photographs import (
    CELEBA,
    CIFAR100,
    WATERBIRDS,
    read_celeba,
    read_cifar100,
    read_waterbirds,
    small_images,
)


@pytest.fixture
def celeba(tmp_path):
    """Three images in the files of CelebA."""
    images = tmp_path / "img_align_celeba"
    images.mkdir()
    lines = ["3", "Male Young"]
    for number, values in enumerate(("1 -1", "-1 1", "1 1"), start=1):
        name = f"{number:06d}.jpg"
        Image.new("RGB", (20, 24), (40 * number, 0, 0)).save(images / name)
        lines.append(f"{name} {values}")
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    parts = "000001.jpg 0\n000002.jpg 1\n000003.jpg 2\n"
    (tmp_path / "list_eval_partition.txt").write_text(parts)
    return tmp_path


def test_read_celeba__labels_attributes_and_splits(celeba):
    assert require_data(celeba, [CELEBA], paper="p") is CELEBA
    found = read_celeba(celeba, label="Young", attribute="Male")
    assert found.labels.tolist() == [0, 1, 1]
    assert found.attributes.tolist() == [1, 0, 1]
    assert found.splits.tolist() == ["train", "validation", "test"]
    assert small_images(found.paths, 8).shape == (3, 8, 8, 3)
    assert found.only(np.array([2])).paths[0].name == "000003.jpg"


def test_read_celeba__no_such_attribute(celeba):
    with pytest.raises(DataError) as caught:
        read_celeba(celeba, label="Blond_Hair", attribute="Male")
    assert caught.value.given == ["Blond_Hair"]


def test_read_celeba__an_image_in_no_split(celeba):
    (celeba / "list_eval_partition.txt").write_text("000001.jpg 0\n")
    with pytest.raises(DataError, match="in no split"):
        read_celeba(celeba, label="Young", attribute="Male")


def test_small_images__a_missing_file(celeba):
    found = read_celeba(celeba, label="Young", attribute="Male")
    found.paths[1].unlink()
    with pytest.raises(DataError, match="cannot be read"):
        small_images(found.paths, 8)


def test_read_waterbirds__the_table(tmp_path):
    header = "img_id,img_filename,y,split,place,place_filename\n"
    (tmp_path / "metadata.csv").write_text(f"{header}1,a/b.jpg,1,0,0,x\n2,a/c.jpg,0,2,1,x\n")
    assert require_data(tmp_path, [WATERBIRDS], paper="p") is WATERBIRDS
    found = read_waterbirds(tmp_path)
    assert found.paths[0] == tmp_path / "a" / "b.jpg"
    assert (found.labels.tolist(), found.attributes.tolist()) == ([1, 0], [0, 1])
    assert found.splits.tolist() == ["train", "test"]
    (tmp_path / "metadata.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="lacks columns"):
        read_waterbirds(tmp_path)


def test_read_cifar100__bytes_in_the_order_of_the_binary_version(tmp_path):
    (tmp_path / "coarse_label_names.txt").write_text("fish\nflowers\n")
    (tmp_path / "fine_label_names.txt").write_text("rose\nshark\n")
    pixels = np.arange(3 * 32 * 32) % 251
    for name, labels in (("train.bin", [(0, 1), (1, 0)]), ("test.bin", [(0, 1)])):
        rows = [np.concatenate([labels_of, pixels]) for labels_of in labels]
        np.concatenate(rows).astype(np.uint8).tofile(tmp_path / name)
    assert require_data(tmp_path, [CIFAR100], paper="p") is CIFAR100
    found = read_cifar100(tmp_path)
    assert (found.coarse.tolist(), found.fine.tolist()) == ([0, 1, 0], [1, 0, 1])
    assert found.is_test.tolist() == [False, False, True]
    assert found.images.shape == (3, 32, 32, 3)
    assert found.images[0, 0, 1].tolist() == [1, (1024 + 1) % 251, (2048 + 1) % 251]
    (tmp_path / "test.bin").write_bytes(b"123")
    with pytest.raises(DataError, match="whole records"):
        read_cifar100(tmp_path)
