"""Every command that a message advises exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import typer.main

from weakspot.cli.main import app

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"(?<![\w./'\"=@-])weakspot ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?")
WORDS = """
    again and are as can cannot could data does encodes finds folder has is itself keeps loads on project projects reads request
    says screens serves tests to uses was with works wrote
"""
PROSE = frozenset(WORDS.split())
KINDS_OF_FILE = frozenset({"adversarial", "baseline", "wordnet"})


def _strings(path: Path) -> Iterator[str]:
    """Yield the text of every string of a module that is no docstring; parts of one f-string together."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def _texts() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "src" / "weakspot").rglob("*.py")):
        yield from ((path, text) for text in _strings(path))
    for pattern, folder in (("*.html", "src/weakspot/report"), ("*.tsx", "frontend/src")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            yield path, path.read_text(encoding="utf-8")


def _commands() -> dict[str, frozenset[str]]:
    """Return every command, with its sub-commands if it has any."""
    group = typer.main.get_command(app)
    return {
        name: frozenset(getattr(command, "commands", {}))
        for name, command in getattr(group, "commands", {}).items()
    }


def test_messages__name_only_commands_that_exist():
    commands = _commands()
    assert {"run", "ask", "lab"} <= commands.keys()
    wrong, n_named = [], 0
    for path, text in _texts():
        for name, second in NAMED.findall(text):
            if name in PROSE | KINDS_OF_FILE:
                continue
            n_named += 1
            below = commands.get(name)
            if below is None or (below and second and second not in below):
                wrong.append(f"{path.relative_to(ROOT)}: weakspot {name} {second}".rstrip())
    assert n_named > 30
    assert not wrong, "\n".join(wrong)
