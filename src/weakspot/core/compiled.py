"""Compiled loops: kept on disk for all environments of a user, and compiled beforehand by another process.

numba keeps compiled code beside the source file, so every new environment compiles again, for half a minute, in the middle of a run.
Here the folder is the user's cache, by Python, numba and the text of all compiled loops; numba itself tells processors apart. While
another process fills it (`compile_beside`), whoever needs a loop waits for that process instead of doing the same work.
"""

import hashlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from weakspot.core.machine import user_cache_folder, waiting

log = logging.getLogger(__name__)
KERNELS_VARIABLE = "WEAKSPOT_KERNELS"
WAITING = "compile loops (once per user)"
_READY = "ready"
_USUAL = "usual"
_BEGUN = "begun"
_POLL_SECONDS = 0.1
_MAX_SECONDS = 300.0
_WITH_LOOPS = ("*kernels.py", "embedding_pass.py")
_PACKAGE = Path(__file__).parents[1]

Loop = TypeVar("Loop", bound=Callable[..., Any])
_Tell = Callable[[str, int, int | None], None]


def kernel(**options: Any) -> Callable[[Loop], Loop]:
    """Decorate a loop that numba compiles on first use, as `numba.njit` does; `nogil` is always on."""
    from numba import njit

    def compile_later(loop: Loop) -> Loop:
        _COMPILER.wait(loop.__module__)
        made = njit(nogil=True, **options)(loop)
        _keep(made, loop)
        result: Loop = made
        return result

    return compile_later


def kernels_folder() -> Path:
    """Return where compiled loops are kept: $WEAKSPOT_KERNELS, else a folder of the user's cache."""
    given = os.environ.get(KERNELS_VARIABLE)
    root = Path(given).expanduser() if given else user_cache_folder() / "kernels"
    python = f"{sys.implementation.name}{sys.version_info.major}.{sys.version_info.minor}"
    return root / f"{python}-numba{version('numba')}-{_sources_hash()}"


@cache
def _sources_hash() -> str:
    """Return a hash of every file beside compiled loops: one may call those of another."""
    digest = hashlib.sha256()
    for path in sorted(path for name in _WITH_LOOPS for path in _PACKAGE.rglob(name)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def is_compiled() -> bool:
    """Return whether a process has compiled beforehand what runs need."""
    return (kernels_folder() / _READY).exists()


def note_usual_compiled() -> None:
    """Tell every process that the loops of all modules so far are compiled: whoever needs only these need not wait for the rest."""
    folder = kernels_folder()
    modules = sorted(path.name for path in folder.iterdir() if path.is_dir())
    partial = folder / f"{_USUAL}.{os.getpid()}"
    partial.write_text("\n".join(modules), encoding="utf-8")
    os.replace(partial, folder / _USUAL)


def _usual_modules() -> frozenset[str]:
    try:
        return frozenset((kernels_folder() / _USUAL).read_text(encoding="utf-8").split("\n"))
    except OSError:
        return frozenset()


def note_compiled() -> None:
    """Tell every process that what runs need is compiled."""
    (kernels_folder() / _READY).touch()
    (kernels_folder() / _BEGUN).unlink(missing_ok=True)


def compile_beside(command: Sequence[str], *, tell: _Tell) -> None:
    """Begin to compile in another process, unless that was done or somebody does it; it must call `note_compiled` in the end.

    Args:
        command: what compiles everything.
        tell: called with a stage, 0 and None when somebody has to wait.
    """
    if is_compiled():
        return
    try:
        _COMPILER.start(command, tell)
    except OSError as error:
        log.info("nothing is compiled beforehand: %s", error)


class _Compiler:
    """The process that compiles beforehand, if there is one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._tell: _Tell | None = None
        self._lock = Lock()

    def start(self, command: Sequence[str], tell: _Tell) -> None:
        with self._lock:
            if self._tell is not None:
                return
            if not _others_compile():
                begun = kernels_folder() / _BEGUN
                begun.parent.mkdir(parents=True, exist_ok=True)
                quiet = subprocess.DEVNULL
                self._process = subprocess.Popen(
                    list(command), stdin=quiet, stdout=quiet, stderr=quiet
                )
                begun.touch()
            self._tell = tell

    def wait(self, module: str) -> None:
        """Return when the loops of a module are compiled, the process is done, or took too long; then everybody compiles for himself."""
        with self._lock:
            if self._tell is None or not self._is_working() or module in _usual_modules():
                return
            self._tell(WAITING, 0, None)
            stop = time.monotonic() + _MAX_SECONDS
            with waiting():
                while self._is_working() and module not in _usual_modules():
                    if time.monotonic() > stop:
                        self._tell = None
                        break
                    time.sleep(_POLL_SECONDS)

    def _is_working(self) -> bool:
        if self._process is None:
            return not is_compiled() and _others_compile()
        is_alive = self._process.poll() is None
        if not is_alive:
            (kernels_folder() / _BEGUN).unlink(missing_ok=True)
        return is_alive


_COMPILER = _Compiler()


def _others_compile() -> bool:
    """Return whether a process of this user has begun to compile not long ago."""
    try:
        return time.time() - (kernels_folder() / _BEGUN).stat().st_mtime < _MAX_SECONDS
    except OSError:
        return False


def _keep(made: Any, loop: Callable[..., Any]) -> None:
    """Keep compiled code in the user's folder; where this numba has other insides, beside the source as it always does."""
    try:
        made._cache = _user_cache()(loop)  # noqa: SLF001
    except Exception as problem:  # noqa: BLE001 (an optimisation on the insides of another library)
        log.info("compiled code is kept by numba itself: %s", problem)
        made.enable_caching()


@cache
def _user_cache() -> Any:
    from numba.core import caching

    locator_base: Any = getattr(caching, "_CacheLocator")  # noqa: B009

    class UserFolder(locator_base):  # type: ignore[misc]
        def __init__(self, loop: Callable[..., Any]) -> None:
            self._folder = str(kernels_folder() / loop.__module__)

        def get_cache_path(self) -> str:
            return self._folder

        def get_source_stamp(self) -> str:
            return _sources_hash()

        def get_disambiguator(self) -> str:
            return ""

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], _py_file: str) -> Any:
            found = cls(py_func)
            found.ensure_cache_path()
            return found

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (UserFolder,)

    class UserCache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

    return UserCache
