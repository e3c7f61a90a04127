"""Files and functions stay small enough to be read in one go."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 400
MAX_LINES_ELSEWHERE = 500  # tests and benchmarks write out inputs and expected values, one per line
MAX_FUNCTION_LINES = 60  # wrapped at 100; ruff counts statements and branches
ABOUT_A_WHOLE_PACKAGE = {
    "lab/adversarial/test_command.py",
    "lab/decode/test_command.py",
    "lab/refine/test_command.py",
    "release/watching/test_endpoint_down.py",
    "web/auth/test_proxy.py",
    "web/routes/test_schema.py",
    "web/state/test_annotators.py",
}
BANNED_NAMES = {"utils", "helpers", "misc", "common", "manager", "base"}


def _sources() -> list[Path]:
    found = [
        path
        for folder in ("src", "tests", "benchmarks", "examples", "tools")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(found) > 60
    return found


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    has_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (function.end_lineno or 0) - first.lineno + 1 - docstring_lines


def test_sources__no_file_is_too_long():
    too_long = {}
    for path in _sources():
        name, length = path.relative_to(ROOT), len(path.read_text().splitlines())
        if length > (MAX_FILE_LINES if name.parts[0] == "src" else MAX_LINES_ELSEWHERE):
            too_long[str(name)] = length
    assert too_long == {}


def test_sources__no_function_is_too_long():
    too_long = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and _body_lines(node) > MAX_FUNCTION_LINES
            ):
                too_long[f"{path.relative_to(ROOT)}:{node.name}"] = _body_lines(node)
    assert too_long == {}


def test_sources__no_grab_bags():
    assert [str(path) for path in _sources() if path.stem in BANNED_NAMES] == []


def test_sources__every_test_file_mirrors_a_source_file():
    """At every depth: tests/a/b/test_c.py is about src/weakspot/a/b/c.py, or about the package src/weakspot/a/b/c.

    A folder of tests that is no package only groups them: they are about modules of the package around it.
    """
    tests, package = ROOT / "tests", ROOT / "src/weakspot"
    packages = {path.name for path in package.iterdir() if path.is_dir()}
    orphans = []
    for path in sorted(tests.rglob("test_*.py")):
        inside = path.relative_to(tests)
        if inside.parts[0] not in packages or inside.as_posix() in ABOUT_A_WHOLE_PACKAGE:
            continue
        folder = package / inside.parent
        while not folder.is_dir():
            folder = folder.parent
        about = folder / path.stem.removeprefix("test_")
        if not about.is_dir() and not about.with_suffix(".py").is_file():
            orphans.append(inside.as_posix())
    assert orphans == []


def test_sources__exceptions_are_still_needed():
    assert [name for name in ABOUT_A_WHOLE_PACKAGE if not (ROOT / "tests" / name).is_file()] == []
