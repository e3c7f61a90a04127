import os
import subprocess
import sys
import time

import pytest

from weakspot.core.errors import StoreError
from weakspot.store import atomic


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


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from weakspot.store import atomic
with atomic.replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_replacing__left_over_of_a_killed_writer__removed_by_the_next(tmp_path):
    path = tmp_path / "checked.keys"
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], check=False)
    assert [name.startswith("checked.keys.tmp-") for name in names(tmp_path)] == [True]
    atomic.write_bytes(path, b"whole")
    assert names(tmp_path) == ["checked.keys"]


def test_replacing__a_writer_that_is_alive_is_left_alone(tmp_path):
    path = tmp_path / "checked.keys"
    with atomic.replacing(path) as slow:
        slow.write_bytes(b"slow")
        atomic.write_bytes(path, b"fast")
        atomic.remove_leftovers(tmp_path)
        assert slow.read_bytes() == b"slow"
    assert path.read_bytes() == b"slow"


def test_replacing__writer_on_another_machine__given_a_day(tmp_path):
    young, old = tmp_path / "a.tmp-00000000-1-1-ab", tmp_path / "a.tmp-00000000-1-1-cd"
    for path in (young, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * atomic.ABANDONED_SECONDS,) * 2)
    atomic.write_bytes(tmp_path / "a", b"whole")
    assert names(tmp_path) == ["a", young.name]


def test_replacing__process_number_used_again__is_another_writer(tmp_path):
    with atomic.replacing(tmp_path / "a") as temporary:
        machine, process, started, _ = temporary.name.removeprefix("a.tmp-").split("-")
        temporary.write_bytes(b"whole")
    again = tmp_path / f"a.tmp-{machine}-{process}-{int(started) - 1}-ab"
    again.write_bytes(b"half")
    atomic.write_bytes(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_read_json__damaged(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*a\.json.*To do: Delete it"):
        atomic.read_json(path)
