import pyarrow as pa
import pytest

from weakspot.core.errors import StoreError
from weakspot.store.samples import SampleParts


def table(*names):
    return pa.table({"key": list(names)})


def names_in(parts):
    return [name for found in parts.tables() for name in found.column("key").to_pylist()]


@pytest.fixture
def parts(tmp_path):
    parts = SampleParts(tmp_path / "reading")
    assert parts.resume() == 0
    parts.append(table("a", "b"), stop=2)
    parts.append(table("c"), stop=4)
    return parts


def test_resume__goes_on_where_it_was(parts):
    resumed = SampleParts(parts.folder)
    assert resumed.resume() == 4
    assert not resumed.is_finished
    resumed.append(table("d"), stop=5)
    resumed.finish()
    assert resumed.is_finished
    assert names_in(resumed) == ["a", "b", "c", "d"]
    last = SampleParts(parts.folder)
    assert last.resume() == 5
    assert last.is_finished


def test_resume__damaged_part_and_all_after_it_are_read_again(parts):
    parts.append(table("d"), stop=5)
    parts.finish()
    path = parts.folder / "part-000001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    resumed = SampleParts(parts.folder)
    assert resumed.resume() == 2
    assert not resumed.is_finished
    assert [found.name for found in resumed.folder.glob("part-*")] == ["part-000000.parquet"]


def test_resume__changed_byte_in_a_part_is_noticed(parts):
    path = parts.folder / "part-000000.parquet"
    content = bytearray(path.read_bytes())
    content[30] ^= 255
    path.write_bytes(content)
    assert SampleParts(parts.folder).resume() == 0


def test_resume__images_without_samples_are_cut(parts):
    parts.images.append(b"12345")
    parts.append(table("d"), stop=5)
    parts.images.append(b"lost")
    parts.images.close()
    resumed = SampleParts(parts.folder)
    assert resumed.resume() == 5
    assert (parts.folder / "images-0000.bin").read_bytes() == b"12345"


def test_resume__samples_whose_images_are_lost_are_read_again(parts):
    parts.images.append(b"12345")
    parts.append(table("d"), stop=5)
    parts.images.close()
    (parts.folder / "images-0000.bin").unlink()
    assert SampleParts(parts.folder).resume() == 4


def test_tables__part_damaged_meanwhile(parts):
    (parts.folder / "part-000000.parquet").write_bytes(b"")
    with pytest.raises(StoreError, match="damaged"):
        list(parts.tables())
