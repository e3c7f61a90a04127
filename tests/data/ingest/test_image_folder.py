import os

import fsspec
import pytest

from weakspot.core.errors import DataError
from weakspot.data.image_folder import ImageFolderSource


def folder_of(tmp_path, *names):
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return ImageFolderSource(location=str(tmp_path))


def facts(source, start=0):
    return [
        (sample.key, sample.labels, sample.split, dict(sample.metadata))
        for sample in source.read(start)
    ]


def test_read__folder_per_class(tmp_path):
    source = folder_of(
        tmp_path,
        "dog/2.PNG",
        "cat/1.jpg",
        "cat/red/old/3.jpeg",
        "cat/.hidden.jpg",
        ".git/4.jpg",
        "cat/notes.txt",
        "5.jpg",
    )
    assert facts(source) == [
        ("5.jpg", (), None, {}),
        ("cat/1.jpg", ("cat",), None, {}),
        ("cat/red/old/3.jpeg", ("cat",), None, {"subfolder": "red/old"}),
        ("dog/2.PNG", ("dog",), None, {}),
    ]
    assert source.count() == 4
    assert next(source.read(1)).location == str(tmp_path / "cat/1.jpg")


def test_read__folder_per_split(tmp_path):
    source = folder_of(tmp_path, "train/cat/1.jpg", "Val/dog/2.jpg", "unlabelled/3.jpg")
    assert facts(source) == [
        ("Val/dog/2.jpg", ("dog",), "validation", {}),
        ("train/cat/1.jpg", ("cat",), "train", {}),
        ("unlabelled/3.jpg", (), "pool", {}),
    ]


def test_read__train_can_be_a_vehicle(tmp_path):
    source = folder_of(tmp_path, "train/1.jpg", "bus/2.jpg", "car/3.jpg")
    assert [labels for _, labels, _, _ in facts(source)] == [("bus",), ("car",), ("train",)]


def test_read__unclear_levels_are_refused(tmp_path):
    source = folder_of(tmp_path, "train/cat/1.jpg", "test/cat/2.jpg", "extra/cat/3.jpg")
    with pytest.raises(DataError, match="unclear which level is the class"):
        list(source.read())


def test_read__no_images_says_what_is_there(tmp_path):
    source = folder_of(tmp_path, "a/1.txt", "a/2.txt", "b.docx")
    with pytest.raises(DataError, match=r"2 with \.txt, 1 with \.docx"):
        list(source.read())


def test_read__remote_folder():
    for name in ("cat/1.jpg", "dog/2.jpg"):
        with fsspec.open(f"memory://image-folder/{name}", "wb") as file:
            file.write(b"x")
    samples = list(ImageFolderSource(location="memory://image-folder").read())
    assert [(sample.location, sample.labels) for sample in samples] == [
        ("memory://image-folder/cat/1.jpg", ("cat",)),
        ("memory://image-folder/dog/2.jpg", ("dog",)),
    ]


def test_fingerprint__notices_new_changed_and_renamed_files(tmp_path):
    source = folder_of(tmp_path, "a/1.jpg")
    seen = {source.fingerprint()}
    assert source.fingerprint() in seen
    os.utime(tmp_path / "a/1.jpg", ns=(5, 5))
    seen.add(source.fingerprint())
    (tmp_path / "a/1.jpg").rename(tmp_path / "a/2.jpg")
    seen.add(source.fingerprint())
    folder_of(tmp_path, "b/3.jpg")
    seen.add(source.fingerprint())
    assert len(seen) == 4
    folder_of(tmp_path, "b/notes.txt")
    assert source.fingerprint() in seen


def test_read__generated_images_beside_class_folders(tmp_path):
    source = folder_of(tmp_path, "cat/1.jpg", "dog/2.jpg", "synthetic/cat/3.jpg", "synthetic/4.jpg")
    assert [fact[:3] for fact in facts(source)] == [
        ("cat/1.jpg", ("cat",), None),
        ("dog/2.jpg", ("dog",), None),
        ("synthetic/4.jpg", (), "synthetic"),
        ("synthetic/cat/3.jpg", ("cat",), "synthetic"),
    ]


def test_read__synthetic_can_be_a_class(tmp_path):
    source = folder_of(tmp_path, "cotton/1.jpg", "synthetic/2.jpg")
    assert [fact[1:3] for fact in facts(source)] == [(("cotton",), None), (("synthetic",), None)]


def test_read__synthetic_with_folders_of_its_own_is_unclear(tmp_path):
    with pytest.raises(DataError, match="unclear which level is the class"):
        facts(folder_of(tmp_path, "cotton/1.jpg", "synthetic/nylon/2.jpg"))
