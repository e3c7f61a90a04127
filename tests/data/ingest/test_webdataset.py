import io
import json
import tarfile

import fsspec
import pytest

from weakspot.core.errors import DataError
from weakspot.data.locations import read_location
from weakspot.data.webdataset import WebDatasetSource


def tar_bytes(members, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def image(name):
    return f"image {name}".encode()


def members_of(*names):
    return [
        item for name in names for item in ((f"{name}.jpg", image(name)), (f"{name}.cls", b"cat\n"))
    ]


def source_of(tmp_path, members, name="train-000.tar", **settings):
    (tmp_path / name).write_bytes(tar_bytes(members))
    return WebDatasetSource(location=str(tmp_path / name), **settings)


def message_of(source) -> str:
    with pytest.raises(DataError) as caught:
        list(source.read())
    return str(caught.value)


def test_read__images_are_pointed_to_by_range(tmp_path):
    record = {"split": "val", "age": 3, "probabilities": {"cat": 0.5, "dog": 0.5}, "key": "7"}
    members = [
        ("a/001.jpg", image("a/001")),
        ("a/001.cls", b"cat"),
        ("a/001.json", json.dumps(record).encode()),
        ("a/001.txt", "a cät\n".encode()),
        *members_of("a/002"),
    ]
    first, second = source_of(tmp_path, members).read()
    assert read_location(first.location) == b"image a/001"
    assert read_location(second.location) == b"image a/002"
    assert (first.key, first.data, first.labels, first.split) == (
        "train-000.tar/a/001",
        None,
        ("cat",),
        "validation",
    )
    assert first.probabilities == {"cat": 0.5, "dog": 0.5}
    assert first.metadata == {"age": 3, "key": "7", "text": "a cät"}
    assert (second.split, dict(second.metadata)) == ("train", {})


def test_read__long_names_and_padding_keep_offsets_right(tmp_path):
    names = [f"{'deep/' * 40}{number:03d}" for number in range(5)]
    for sample, name in zip(source_of(tmp_path, members_of(*names)).read(), names, strict=True):
        assert read_location(sample.location) == image(name)


def test_read__shards_by_pattern_folder_and_braces(tmp_path):
    for shard in range(8, 11):
        source_of(tmp_path, members_of(f"{shard}a", f"{shard}b"), name=f"test-{shard:02d}.tar")
    keys = [f"test-{shard:02d}.tar/{shard}{letter}" for shard in (8, 9, 10) for letter in "ab"]
    for location in (
        tmp_path,
        tmp_path / "test-*.tar",
        tmp_path / "test-{08..10}.tar",
        tmp_path / "{test-08,test-09,test-10}.tar",
    ):
        source = WebDatasetSource(location=str(location))
        assert [sample.key for sample in source.read()] == keys
        assert source.count() == 6
        for start in range(7):
            assert [sample.key for sample in source.read(start)] == keys[start:]


def test_read__compressed_shards_hold_the_data(tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(tar_bytes(members_of("1", "2"), mode="w:gz"))
    samples = list(WebDatasetSource(location=str(tmp_path / "x.tar.gz")).read())
    assert [(sample.location, sample.data, sample.labels) for sample in samples] == [
        (None, b"image 1", ("cat",)),
        (None, b"image 2", ("cat",)),
    ]


def test_read__remote_shards():
    with fsspec.open("memory://shards/val-0.tar", "wb") as file:
        file.write(tar_bytes(members_of("1", "2")))
    source = WebDatasetSource(location="memory://shards/val-0.tar")
    assert source.count() is None
    samples = list(source.read())
    assert [(read_location(sample.location), sample.split) for sample in samples] == [
        (b"image 1", "validation"),
        (b"image 2", "validation"),
    ]
    assert [sample.key for sample in source.read(1)] == ["val-0.tar/2"]


def test_read__several_images_in_a_sample(tmp_path):
    members = [
        ("1.jpg", b"photo"),
        ("1.mask.png", b"mask"),
        ("2.a.png", b"left"),
        ("2.b.png", b"right"),
    ]
    assert "several images: a.png, b.png" in message_of(source_of(tmp_path, members))
    first, second = source_of(tmp_path, members, columns={"path": "b.png"}).read()
    assert (read_location(first.location), read_location(second.location)) == (b"photo", b"right")


def test_read__every_problem_at_once(tmp_path):
    members = [
        ("1.cls", b"cat"),
        *members_of("2"),
        ("2.json", b"[1]"),
        *members_of("3"),
        ("3.json", b'{"split": "green"}'),
        ("4.jpg", b"x"),
        ("4.cls", b"\xff\xfe"),
    ]
    message = message_of(source_of(tmp_path, members))
    assert "A sample has no image, only cls. (train-000.tar/1)" in message
    assert "The .json member holds no JSON object. (train-000.tar/2)" in message
    assert "The split 'green' is unknown" in message
    assert "not UTF-8 text. (train-000.tar/4)" in message


def test_read__no_tar_truncated_tar_and_nothing(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"this is no tar file" * 100)
    assert "cannot be read" in message_of(WebDatasetSource(location=str(tmp_path / "a.tar")))
    (tmp_path / "b.tar").write_bytes(tar_bytes(members_of("1", "2"))[:700])
    assert "cannot be read" in message_of(WebDatasetSource(location=str(tmp_path / "b.tar")))
    assert "no sample in any shard" in message_of(source_of(tmp_path, [], name="c.tar"))
    assert "No tar file is there" in message_of(WebDatasetSource(location=str(tmp_path / "z*.tar")))


def test_fingerprint__notices_another_shard(tmp_path):
    source_of(tmp_path, members_of("1"), name="train-0.tar")
    first = WebDatasetSource(location=str(tmp_path)).fingerprint()
    assert WebDatasetSource(location=str(tmp_path)).fingerprint() == first
    source_of(tmp_path, members_of("2"), name="train-1.tar")
    assert WebDatasetSource(location=str(tmp_path)).fingerprint() != first
