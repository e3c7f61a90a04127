"""The product does not grow unseen: how much of it there is to hold in mind, against the figures in pyproject.toml.

A figure is lowered when it can be. Raising one takes a sentence in docs/decisions that says what the reader gets for it.
"""

import ast
import tomllib
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parent.parent
SLACK = 0.01
TWIN_FIELDS, TWIN_SHARE = 4, 0.7
BANNED_NAMES = {"utils", "helpers", "misc", "common", "manager", "base"}


def _trees(package: Path) -> dict[Path, ast.Module]:
    trees = {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}
    assert len(trees) > 20
    return trees


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _statements(trees: dict[Path, ast.Module]) -> int:
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in nodes)


def _twins(trees: dict[Path, ast.Module]) -> list[tuple[str, str]]:
    """Return pairs of classes that share most of the fields of the smaller one."""
    records = []
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                annotated = (item for item in node.body if isinstance(item, ast.AnnAssign))
                fields = {item.target.id for item in annotated if isinstance(item.target, ast.Name)}
                if len(fields) >= TWIN_FIELDS:
                    records.append((node.name, fields))
    return [
        (first, second)
        for (first, own), (second, others) in combinations(records, 2)
        if len(own & others) >= max(TWIN_FIELDS, TWIN_SHARE * min(len(own), len(others)))
    ]


def test_house__no_larger_than_the_figures_and_the_figures_are_no_larger_than_needed():
    measured, allowed = {}, {}
    for name, figures in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "house"
    ].items():
        trees = _trees(ROOT / figures["folder"])
        allowed[name] = {key: value for key, value in figures.items() if key != "folder"}
        measured[name] = {
            "statements": _statements(trees),
            "modules": len(trees),
            "twin_records": len(_twins(trees)),
        }
        assert set(allowed[name]) == set(measured[name])
    grown = {
        f"{name}: {key}": (value, allowed[name][key])
        for name, figures in measured.items()
        for key, value in figures.items()
        if value > allowed[name][key] or value < (1 - SLACK) * allowed[name][key] - 1
    }
    assert grown == {}, "more than the figure: make it smaller; less: lower the figure"


def test_house__no_grab_bags():
    folders = ("src", "packages", "tests", "benchmarks", "tools")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in sources if path.stem in BANNED_NAMES] == []
