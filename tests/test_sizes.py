"""Files and functions stay small enough to be read in one go."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
BANNED_NAMES = {"utils", "helpers", "misc", "common", "manager", "base"}


def _sources() -> list[Path]:
    found = [path for folder in ("src", "tests", "benchmarks", "examples", "tools") for path in (ROOT / folder).rglob("*.py")]
    assert len(found) > 60
    return found


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (function.end_lineno or 0) - first.lineno + 1 - docstring_lines


def test_sources__no_file_is_too_long():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in _sources()}
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_sources__no_function_is_too_long():
    too_long = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _body_lines(node) > MAX_FUNCTION_LINES:
                too_long[f"{path.relative_to(ROOT)}:{node.name}"] = _body_lines(node)
    assert too_long == {}


def test_sources__no_grab_bags():
    assert [str(path) for path in _sources() if path.stem in BANNED_NAMES] == []


def test_sources__every_test_file_mirrors_a_source_file():
    packages = {path.name for path in (ROOT / "src/weakspot").iterdir() if path.is_dir()}
    orphans = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.parent.name in packages
        and path.parent.parent.name == "tests"
        and not (ROOT / "src/weakspot" / path.parent.name / (path.stem.removeprefix("test_") + ".py")).is_file()
        and not (ROOT / "src/weakspot" / path.parent.name / path.stem.removeprefix("test_")).is_dir()
    ]
    assert orphans == []
