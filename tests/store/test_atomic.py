import pytest

from weakspot.core.errors import StoreError
from weakspot.store import atomic


def test_write_bytes__replaces(tmp_path):
    path = tmp_path / "a.bin"
    atomic.write_bytes(path, b"old")
    atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert [found.name for found in tmp_path.iterdir()] == ["a.bin"]


def half_written(path):
    with atomic.replacing(path) as temporary:
        temporary.write_bytes(b"half")
        raise ValueError("stop")


def test_replacing__error_keeps_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "a.bin"
    atomic.write_bytes(path, b"old")
    with pytest.raises(ValueError, match="stop"):
        half_written(path)
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.bin"]


def test_replacing__folder_appears_at_once(tmp_path):
    with atomic.replacing(tmp_path / "tables") as temporary:
        (temporary / "inner").mkdir(parents=True)
        (temporary / "inner" / "b.txt").write_text("b")
        assert not (tmp_path / "tables").exists()
    assert (tmp_path / "tables" / "inner" / "b.txt").read_text() == "b"


def test_remove_leftovers__only_temporaries(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "keep.parquet").write_text("k")
    (tmp_path / "sub" / "part.parquet.tmp-01ab").write_text("half")
    (tmp_path / "tables.tmp-ff00").mkdir()
    (tmp_path / "tables.tmp-ff00" / "x").write_text("half")
    atomic.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["keep.parquet", "sub"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_read_json__damaged(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*a\.json.*To do: Delete it"):
        atomic.read_json(path)


def test_read_json__round_trip(tmp_path):
    atomic.write_json(tmp_path / "a.json", {"n": 3, "names": ["ä"]})
    assert atomic.read_json(tmp_path / "a.json") == {"n": 3, "names": ["ä"]}
