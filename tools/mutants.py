"""Breaks vital lines one at a time and checks that the tests of their own room notice.

    python tools/mutants.py                     every line of tools/mutants.toml
    python tools/mutants.py verify halves       only those whose name or file holds one of the words
    python tools/mutants.py --skip-baseline     do not run the tests on the unchanged package first

The packages are copied to a temporary folder; the checkout is never changed. A mutant that survives, one whose text is not found
exactly once, and one whose tests take too long are failures: the vital line is then not guarded at home.
"""

import argparse
import gc
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "mutants.toml"
PACKAGES = ("src/weakspot", "packages/weakspot-lab/src/weakspot_lab")
SECONDS_EACH = 120.0
PLUGINS = ("xdist.plugin", "pytest_timeout")
WARM = multiprocessing.get_context("forkserver")
WARM.set_forkserver_preload(
    [
        "pytest",
        "execnet",
        "numpy",
        "scipy.stats",
        "sklearn.linear_model",
        "PIL.Image",
        "pyarrow.parquet",
        "pydantic.main",
        "numba",
        "hypothesis",
        "fastapi.testclient",
        "sqlalchemy.orm",
        "alembic.command",
        "argon2",
        "onnx",
        "torch",
    ]
)  # importing them takes longer than most tests here
TESTS_PASSED, TESTS_FAILED, PYTEST_BROKE = 0, 1, 99


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One vital line and how it is broken.

    Args:
        name: what is lost when the line is wrong.
        file: of the package, relative to the checkout.
        text: what is replaced; it must be there exactly once.
        by: what it becomes.
        test: the test file that must fail; it is in the folder of the file's room.
        only: expression that chooses tests of that file, where all of them take long.
    """

    name: str
    file: str
    text: str
    by: str
    test: str
    only: str = ""

    def broken(self, content: str) -> str:
        """Return the content of the file with the line broken.

        Raises:
            ValueError: if the text is not there exactly once.
        """
        if content.count(self.text) != 1:
            raise ValueError(f"its text is {content.count(self.text)} times in {self.file}")
        return content.replace(self.text, self.by)


@dataclass(frozen=True, kw_only=True)
class MutantResult:
    """What became of a mutant: `killed`, or one of the failures `survived`, `not found`, `timed out`, `broken tests`."""

    mutant: Mutant
    status: str
    seconds: float
    output: str = ""


def read_mutants(path: Path = LIST) -> list[Mutant]:
    return [Mutant(**entry) for entry in tomllib.loads(path.read_text())["mutant"]]


def home_of(file: str) -> str:
    """Return the folder of the tests that are at home with a file: those of its room.

    >>> home_of("src/weakspot/verify/halves.py"), home_of("packages/weakspot-lab/src/weakspot_lab/bench/scores.py")
    ('tests/verify/', 'packages/weakspot-lab/tests/')
    """
    top, name, *inside = Path(file).parts
    if top == "packages":
        return f"{top}/{name}/tests/"
    return f"tests/{inside[0]}/" if len(inside) > 1 else "tests/"


class PackageCopy:
    """A copy of the package that tests import in place of the checkout's."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        for package in PACKAGES:
            if (root / package).is_dir():
                shutil.copytree(root / package, folder / package, symlinks=True)

    def _sources(self) -> list[str]:
        return [str((self._folder / package).parent) for package in PACKAGES]

    def try_mutant(self, mutant: Mutant) -> MutantResult:
        """Break the line, run its tests, and put the line back."""
        begun = time.monotonic()
        path = self._folder / mutant.file
        try:
            facts, content = path.stat(), path.read_text()
            broken = mutant.broken(content)
        except (OSError, ValueError) as error:
            return MutantResult(mutant=mutant, status="not found", seconds=0.0, output=str(error))
        path.write_text(broken)
        try:
            code, output = self.run_tests(mutant)
        finally:
            path.write_text(content)
            os.utime(
                path, ns=(facts.st_atime_ns, facts.st_mtime_ns)
            )  # its compiled form is still good
        status = {TESTS_FAILED: "killed", TESTS_PASSED: "survived", None: "timed out"}.get(
            code, "broken tests"
        )
        return MutantResult(
            mutant=mutant, status=status, seconds=time.monotonic() - begun, output=output
        )

    def run_tests(self, mutant: Mutant) -> tuple[int | None, str]:
        """Return pytest's exit code, None if it took too long, and what it printed."""
        arguments = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider"]
        arguments += [f"-p{name}" for name in PLUGINS]
        arguments += ["-k", mutant.only] if mutant.only else []
        printed = self._folder / "printed"
        process = WARM.Process(
            target=_run_pytest,
            args=([*arguments, mutant.test], self._root, self._sources(), printed),
        )
        process.start()
        process.join(SECONDS_EACH)
        if process.exitcode is None:
            process.kill()
            process.join()
            return None, f"no end after {SECONDS_EACH:.0f} seconds"
        return process.exitcode, printed.read_text(errors="replace")


def _run_pytest(arguments: list[str], root: Path, sources: list[str], printed: Path) -> NoReturn:
    """Run pytest in this process, which has the large libraries but nothing of the package yet, and end it."""
    gc.freeze()  # what all share is neither looked through nor copied
    with printed.open("wb") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(sources),
        "PYTHONDONTWRITEBYTECODE": "1",  # what is compiled of a broken file must not be found afterwards
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # importing all of them takes longer than most tests here
    }
    sys.dont_write_bytecode = True
    os.chdir(root)
    sys.path[:0] = [str(root), *sources]
    for name in [
        one for one in sys.modules if one.split(".")[0] in ("weakspot", "weakspot_lab", "tests")
    ]:
        del sys.modules[name]
    code = PYTEST_BROKE
    try:
        import pytest

        code = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        os._exit(code)  # an error of pytest itself must not look like a test that failed


def run_all(
    mutants: Sequence[Mutant], *, root: Path = ROOT, n_workers: int = 0, with_baseline: bool = True
) -> Iterator[MutantResult]:
    """Yield what became of every mutant, in the order of the list."""
    n_copies = n_workers or len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: queue.Queue[PackageCopy] = queue.Queue()
        for number in range(n_copies):
            free.put(PackageCopy(root, Path(folder) / str(number)))
        with ThreadPoolExecutor(n_copies) as pool:
            if with_baseline:
                _refuse_failing_tests(mutants, free, pool)
            yield from pool.map(lambda mutant: _try(mutant, free), mutants)


def _try(mutant: Mutant, free: "queue.Queue[PackageCopy]") -> MutantResult:
    copy = free.get()
    try:
        return copy.try_mutant(mutant)
    finally:
        free.put(copy)


def _refuse_failing_tests(
    mutants: Sequence[Mutant], free: "queue.Queue[PackageCopy]", pool: ThreadPoolExecutor
) -> None:
    """Refuse to go on where tests fail on the unchanged package: they would kill every mutant."""

    def run(mutant: Mutant) -> tuple[int | None, str]:
        copy = free.get()
        try:
            return copy.run_tests(mutant)
        finally:
            free.put(copy)

    different = list({(one.test, one.only): one for one in mutants}.values())
    for mutant, (code, output) in zip(different, pool.map(run, different), strict=True):
        if code != TESTS_PASSED:
            raise SystemExit(f"{mutant.test} fails on the unchanged package:\n{output}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "words", nargs="*", help="only mutants whose name or file holds one of these"
    )
    parser.add_argument("--skip-baseline", action="store_true", help="the tests are known to pass")
    given = parser.parse_args()
    mutants = [
        one
        for one in read_mutants()
        if not given.words or any(word in f"{one.name} {one.file}" for word in given.words)
    ]
    begun, failures = time.monotonic(), []
    for result in run_all(mutants, with_baseline=not given.skip_baseline):
        print(f"{result.status:12} {result.seconds:5.1f} s  {result.mutant.name}", flush=True)
        if result.status != "killed":
            failures.append(result)
    for result in failures:
        print(
            f"\n{result.status}: {result.mutant.name} ({result.mutant.file}, {result.mutant.test})"
        )
        print(result.output[-2000:])
    n_killed = len(mutants) - len(failures)
    print(
        f"{n_killed} of {len(mutants)} mutants killed at home in {time.monotonic() - begun:.0f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
