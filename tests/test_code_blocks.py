"""Code in the README and the guides runs: Python blocks are executed, commands and options exist, TOML blocks are settings."""

import builtins
import re
import shlex
import symtable
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer.main
from PIL import Image

from weakspot.cli.main import app
from weakspot.run.settings import Settings
from weakspot.testing.planted import plant, rare

ROOT = Path(__file__).parent.parent
FOLDERS = ("guide", "tutorials", "explanation")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/index.md",
    *(page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
NOT_HERE = re.compile(r"Salesforce/|model\.onnx|my-project|memory_sampler|labels=y")
"""What only the reader has: a downloaded model, a project. Of such blocks the imports are run, and the rest is compiled."""


def _blocks(language: str) -> list[object]:
    return [
        pytest.param(block[2], id=f"{page.name}-{text[: block.start()].count(chr(10)) + 1}")
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for block in FENCE.finditer(text)
        if block[1] == language
    ]


@pytest.fixture
def reader(tmp_path, monkeypatch) -> dict[str, object]:
    """What a reader of the guides has: a folder with images and a model, arrays, and names used on the page."""
    world = plant(rare(0.02), 60, seed=0)
    for row in range(60):
        kind = world.dataset.class_names[int(world.dataset.labels[row])]
        kind = {"disc": "apple"}.get(kind, kind)
        (tmp_path / "images" / kind).mkdir(parents=True, exist_ok=True)
        world.image(row, side=64).save(tmp_path / "images" / kind / f"{row}.png")
    np.save(tmp_path / "part.npy", np.eye(8, dtype=np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "tests/plugin_package/src")
    return {
        "np": np,
        "Path": Path,
        "Image": Image,
        "folder": tmp_path / "world",
        "images": [world.image(0)],
        "paths": [tmp_path / "part.npy"],
        "query": np.eye(8, dtype=np.float32)[:1],
        "mask": np.ones(8, dtype=np.bool_),
        "__name__": "guide",
    }


@pytest.mark.parametrize("code", _blocks("python"))
def test_python_blocks__run(code, reader):
    compile(code, "guide", "exec")
    if NOT_HERE.search(code) or _has_open_names(code, reader):
        imports = re.findall(r"^(?:import|from) .*", code, re.M)
        code = "\n".join(line for line in imports if not NOT_HERE.search(line))
    exec(compile(code, "guide", "exec"), reader)  # noqa: S102 - our own pages


def _has_open_names(code: str, given: dict[str, object]) -> bool:
    """Return whether a block uses names that only the reader has."""
    table = symtable.symtable(code, "guide", "exec")
    names = {
        one.get_name()
        for scope in (table, *table.get_children())
        for one in scope.get_symbols()
        if one.is_referenced() and (one.is_global() or scope is table)
    }
    own = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    return bool(names - own - {*given, *dir(builtins)})


def _commands() -> list[object]:
    """Return every call of weakspot in a shell block, as words after `weakspot`."""
    lines = [(block.id, line) for block in _blocks("sh") for line in block.values[0].splitlines()]
    calls = [
        (page, words[place + 1 :])
        for page, line in lines
        for part in line.split("&&")
        for words in [shlex.split(part, comments=True)]
        for place, word in enumerate(words)
        if place == 0 and Path(word).name == "weakspot"
    ]
    return [pytest.param(words, id=f"{page}-{' '.join(words[:3])}") for page, words in calls]


@pytest.mark.parametrize("words", _commands())
def test_shell_blocks__commands_and_options_exist(words):
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "commands") and rest:
        assert rest[0] in command.commands, f"there is no command {rest[0]!r}"
        command = command.commands[rest.pop(0)]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert given - known - {"--help"} == set()


@pytest.mark.parametrize("text", _blocks("toml"))
def test_toml_blocks__are_settings_where_they_look_like_it(text):
    given = tomllib.loads(text)
    if set(given) <= set(Settings.model_fields):
        Settings.model_validate(given)
