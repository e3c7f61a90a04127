import os
import sys

import numpy as np
import pytest

from weakspot.core import compiled
from weakspot.core.compiled import (
    WAITING,
    _Compiler,
    compile_beside,
    is_compiled,
    kernel,
    kernels_folder,
    note_compiled,
    note_usual_compiled,
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WEAKSPOT_KERNELS", str(tmp_path))
    return tmp_path


@pytest.fixture
def compiler(monkeypatch):
    fresh = _Compiler()
    monkeypatch.setattr(compiled, "_COMPILER", fresh)
    return fresh


def add_up(values):
    total = 0
    for value in values:
        total += value
    return total


def test_kernels_folder__own_variable_then_the_user_cache(monkeypatch, tmp_path, folder):
    assert kernels_folder().parent == folder
    monkeypatch.delenv("WEAKSPOT_KERNELS")
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "own"))
    assert kernels_folder().parent == tmp_path / "own" / "kernels"


def test_kernel__is_kept_by_module_and_found_again(folder, compiler):
    assert kernel()(add_up)(np.arange(4)) == 6
    kept = sorted(path.suffix for path in (kernels_folder() / add_up.__module__).iterdir())
    assert kept == [".nbc", ".nbi"]
    again = kernel()(add_up)
    assert again(np.arange(5)) == 10
    assert sum(again.stats.cache_hits.values()) == 1
    assert not again.stats.cache_misses


def test_kernel__other_sources_are_another_folder(folder, compiler, monkeypatch):
    before = kernels_folder()
    monkeypatch.setattr(compiled, "_sources_hash", lambda: "another")
    assert kernels_folder() != before


def test_sources_hash__every_file_that_compiles_something_counts():
    package = compiled._PACKAGE
    using = [
        path.parent
        for path in package.rglob("*.py")
        if "import kernel\n" in path.read_text() or "products import compiled" in path.read_text()
    ]
    beside = {path.parent for name in compiled._WITH_LOOPS for path in package.rglob(name)}
    assert len(using) > 5
    assert set(using) <= beside


def test_kernel__a_numba_with_other_insides_keeps_it_itself(folder, compiler, monkeypatch):
    def fail():
        raise AttributeError("no such class")

    monkeypatch.setattr(compiled, "_user_cache", fail)
    assert kernel()(add_up)(np.arange(4)) == 6
    assert not (kernels_folder() / add_up.__module__).exists()


@pytest.fixture
def told():
    return []


@pytest.fixture
def tell(told):
    return lambda *given: told.append(given)


SHORT = [sys.executable, "-c", "import time; time.sleep(1)"]


def test_compile_beside__who_needs_a_loop_waits_and_is_told_once(folder, compiler, told, tell):
    compile_beside(SHORT, tell=tell)
    first = compiler._process
    compile_beside(["/nowhere/at/all"], tell=tell)
    assert compiler._process is first
    kernel()(add_up)
    assert told == [(WAITING, 0, None)]
    assert first.poll() == 0
    kernel()(add_up)
    assert len(told) == 1
    assert not (kernels_folder() / "begun").exists()


def test_compile_beside__not_where_it_was_done(folder, compiler, told, tell):
    kernels_folder().mkdir(parents=True)
    assert not is_compiled()
    note_compiled()
    assert is_compiled()
    compile_beside(["/nowhere/at/all"], tell=tell)
    kernel()(add_up)
    assert (compiler._process, told) == (None, [])


def test_compile_beside__waits_for_a_process_that_another_one_started(
    folder, compiler, told, tell, monkeypatch
):
    kernels_folder().mkdir(parents=True)
    begun = kernels_folder() / "begun"
    begun.touch()
    compile_beside(["/nowhere/at/all"], tell=tell)
    assert compiler._process is None
    monkeypatch.setattr(compiled.time, "sleep", lambda seconds: note_compiled())
    kernel()(add_up)
    assert told == [(WAITING, 0, None)]
    assert not begun.exists()


def test_compile_beside__what_was_left_long_ago_is_not_waited_for(folder, compiler, told, tell):
    kernels_folder().mkdir(parents=True)
    begun = kernels_folder() / "begun"
    begun.touch()
    os.utime(begun, (1_000_000, 1_000_000))
    compile_beside([sys.executable, "-c", ""], tell=tell)
    assert compiler._process is not None
    compiler._process.wait()


def test_compile_beside__a_process_that_cannot_start(folder, compiler, told, tell):
    compile_beside(["/nowhere/at/all"], tell=tell)
    kernel()(add_up)
    assert told == []


def test_compile_beside__a_process_that_takes_too_long(folder, compiler, told, tell, monkeypatch):
    compile_beside([sys.executable, "-c", "import time; time.sleep(60)"], tell=tell)
    process = compiler._process
    monkeypatch.setattr(compiled, "_MAX_SECONDS", 0.01)
    try:
        kernel()(add_up)
        kernel()(add_up)
        assert len(told) == 1
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_note_usual_compiled__who_needs_only_these_does_not_wait_for_the_rest(
    folder, compiler, told, tell, monkeypatch
):
    (kernels_folder() / add_up.__module__).mkdir(parents=True)
    (kernels_folder() / "begun").touch()
    compile_beside(["/nowhere/at/all"], tell=tell)
    note_usual_compiled()
    kernel()(add_up)
    assert told == []
    monkeypatch.setattr(add_up, "__module__", "weakspot.another")
    monkeypatch.setattr(compiled.time, "sleep", lambda seconds: note_compiled())
    kernel()(add_up)
    assert told == [(WAITING, 0, None)]


def test_note_usual_compiled__who_waits_goes_on_when_its_own_are_done(
    folder, compiler, told, tell, monkeypatch
):
    kernels_folder().mkdir(parents=True)
    (kernels_folder() / "begun").touch()
    compile_beside(["/nowhere/at/all"], tell=tell)

    def finish(seconds):
        (kernels_folder() / add_up.__module__).mkdir()
        note_usual_compiled()

    monkeypatch.setattr(compiled.time, "sleep", finish)
    kernel()(add_up)
    assert told == [(WAITING, 0, None)]
    assert not is_compiled()
