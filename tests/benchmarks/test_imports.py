"""Benchmarks are run by hand and seldom: what one takes from another must be there."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
FILES = sorted(FOLDER.rglob("*.py"))


def _defined(path: Path) -> set[str]:
    """Return the names at the top of a file, and the files of a folder."""
    found = {one.stem for one in path.parent.glob("*.py")} if path.name == "__init__.py" else set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def _module(name: str) -> Path | None:
    place = FOLDER.joinpath(*name.split("."))
    return next(
        (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.exists()), None
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_imports__names_of_other_benchmarks_are_there(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        source = _module(node.module) if isinstance(node, ast.ImportFrom) and node.module else None
        if source is not None:
            assert {alias.name for alias in node.names} <= _defined(source), node.module
