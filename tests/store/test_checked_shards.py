import numpy as np
import pytest

from weakspot.store.checked_shards import CHECKED_FILE, CheckedFile, mark_of, read_checked, write_checked
from weakspot.store.names import KEY_TYPE


@pytest.fixture
def written(tmp_path):
    files = {
        "one": CheckedFile(mark=(5, 7), width=3, keys=np.array([b"a" * 16, b"b" * 16], dtype=KEY_TYPE)),
        "empty": CheckedFile(mark=(1, 1), width=3, keys=np.empty(0, dtype=KEY_TYPE)),
        "two": CheckedFile(mark=(6, 8), width=4, keys=np.array([b"c" * 16], dtype=KEY_TYPE)),
    }
    write_checked(tmp_path, files)
    return tmp_path / CHECKED_FILE


def test_read_checked__what_was_written(written):
    found = read_checked(written.parent)
    assert {name: (one.mark, one.width, one.keys.tolist()) for name, one in found.items()} == {
        "one": ((5, 7), 3, [b"a" * 16, b"b" * 16]),
        "empty": ((1, 1), 3, []),
        "two": ((6, 8), 4, [b"c" * 16]),
    }


@pytest.mark.parametrize("harm", ["cut", "flip", "width", "empty", "text", "gone"])
def test_read_checked__damaged_is_nothing(written, harm):
    content = written.read_bytes()
    flipped = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    wider = content.replace(b'"width": 4', b'"width": 5')
    harmed = {"cut": content[:-16], "flip": flipped, "width": wider, "empty": b"", "text": b"hello\n"}
    written.write_bytes(harmed.get(harm, b""))
    if harm == "gone":
        written.unlink()
    assert read_checked(written.parent) == {}


def test_mark_of__no_file(tmp_path):
    assert mark_of(tmp_path / "none") == (-1, -1)
