import numpy as np
import pytest

from weakspot.core.errors import StoreError
from weakspot.store.array_files import (
    checked_records,
    grow,
    mapped,
    write_records,
    writing_array,
)


def test_writing_array__blocks(tmp_path):
    path = tmp_path / "a.npy"
    with writing_array(path, (3, 2), np.float32) as write:
        write(np.array([[1, 2], [3, 4]]))
        write(np.array([[5, 6]]))
    assert mapped(path).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert mapped(path).dtype == np.float32


def test_writing_array__too_few_rows(tmp_path):
    with (
        pytest.raises(ValueError, match="1 rows were written, 3 were announced"),
        writing_array(tmp_path / "a", (3,), np.int64) as write,
    ):
        write(np.array([1]))


def test_mapped__cut_short(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100.0))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(StoreError, match="damaged"):
        mapped(path)


def test_mapped__other_number_of_rows(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(StoreError, match="3 rows instead of 4"):
        mapped(tmp_path / "a.npy", n_rows=4)


def test_mapped__pickle_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match="damaged"):
        mapped(tmp_path / "a.npy")


def test_checked_records__one_changed_byte(tmp_path):
    keys = np.array([b"a" * 16, b"b" * 16], dtype="S16")
    path = write_records(
        tmp_path, "shard-000000", keys, np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    )
    checksum = int(path.stem.split("-")[-1], 16)
    found = checked_records(path, checksum)
    assert found is not None
    assert found[0].tolist() == [b"a" * 16, b"b" * 16]
    assert found[1] == 2
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert checked_records(path, checksum) is None


def test_grow__rows_of_an_interrupted_growth_are_overwritten(tmp_path):
    old, new = tmp_path / "old.npy", tmp_path / "new.npy"
    np.save(old, np.arange(4, dtype=np.float32).reshape(2, 2))
    with old.open("ab") as stream:
        stream.write(b"half of a r")
    assert mapped(old, n_rows=2).tolist() == [[0, 1], [2, 3]]
    assert grow(old, new, iter([np.ones((1, 2))]), n_rows=3)
    assert mapped(new, n_rows=3).tolist() == [[0, 1], [2, 3], [1, 1]]


def test_grow__failing_rows_leave_the_old_file(tmp_path):
    old = tmp_path / "old.npy"
    np.save(old, np.arange(4, dtype=np.float32).reshape(2, 2))
    before = old.read_bytes()

    def rows():
        yield np.ones((1, 2))
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        grow(old, tmp_path / "new.npy", rows(), n_rows=4)
    assert old.read_bytes() == before
    assert not (tmp_path / "new.npy").exists()


def test_grow__columns_in_memory_order_cannot(tmp_path):
    old = tmp_path / "old.npy"
    np.save(old, np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)))
    assert not grow(old, tmp_path / "new.npy", iter([np.ones((1, 2))]), n_rows=4)
    assert old.exists()
