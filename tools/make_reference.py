"""Writes what follows from the code on the pages of docs/reference: commands, settings, methods. A test compares them."""

import importlib.util
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from pydantic import BaseModel

from weakspot.cli.main import app
from weakspot.core.registry import OWN_DISTRIBUTION, ROLES, part_class, registered
from weakspot.core.rules import BUILT_IN_RULES
from weakspot.run.settings import Settings

FOLDER = Path(__file__).parent.parent / "docs" / "reference"


def command_page() -> str:
    """Return the page on the command line."""
    import typer.main

    group = typer.main.get_command(app)
    lines = ["# Command line", "", "Made by `tools/make_reference.py`; do not edit.", ""]
    lines += [
        "Exit codes: 0 done, 1 a confirmed slice is above `--fail-above`, 2 bad input, 130 interrupted.",
        "",
    ]
    lines += [
        "`weakspot -v COMMAND` logs what is done to the error stream, `-vv` also details. `weakspot run -v` (and `verify`, "
        "`demo`) shows every figure instead of the first fifteen lines.",
        "",
    ]
    lab = group.commands["lab"].commands
    commands = {name: command for name, command in group.commands.items() if name != "lab"}
    commands |= {f"lab {name}": command for name, command in lab.items()}
    rows = {
        name: {
            _names(option): _option_row(option)
            for option in command.params
            if option.name != "help"
        }
        for name, command in commands.items()
    }
    shared = _repeated(rows.values(), MIN_COMMANDS)
    lines += ["## Options of many commands", "", *OPTION_HEAD, *sorted(shared), ""]
    for name, command in commands.items():
        own = [row for row in rows[name].values() if row not in shared]
        others = [option for option, row in rows[name].items() if row in shared]
        lines += [f"## weakspot {name}", "", inspect.cleandoc(command.help or ""), ""]
        lines += [*OPTION_HEAD, *own, ""] if own else []
        lines += [f"{'Also' if own else 'Options:'} {', '.join(others)}.", ""] if others else []
    return "\n".join(lines)


OPTION_HEAD = ["| option | meaning | default |", "|---|---|---|"]
MIN_COMMANDS = 2
"""An option that is the same in so many commands is explained once."""


def _repeated(tables: Iterable[Mapping[str, str]], least: int) -> list[str]:
    """Return the rows that stand in at least so many tables."""
    counts = Counter(row for table in tables for row in table.values())
    return [row for row, n in counts.items() if n >= least]


def _names(option) -> str:
    if option.opts[0].startswith("-"):
        return ", ".join(f"`{name}`" for name in option.opts)
    return f"`{option.name.upper()}`"


def _option_row(option) -> str:
    default = option.default() if callable(option.default) else option.default
    shown = "" if default in (None, "", False, []) else f"`{default}`"
    return f"| {_names(option)} | {getattr(option, 'help', '') or ''} | {shown} |"


def settings_page() -> str:
    """Return the page on weakspot.toml."""
    lines = [
        "# Settings",
        "",
        "Made by `tools/make_reference.py`; do not edit. Unknown keys are errors.",
        "",
    ]
    scalars = {
        name: field
        for name, field in Settings.model_fields.items()
        if not isinstance(field.default, BaseModel)
    }
    lines += _settings_table(scalars)
    alike: dict[str, list[str]] = {}
    for name, field in Settings.model_fields.items():
        if name not in scalars:
            section = [
                type(field.default).__doc__ or "",
                "",
                *_settings_table(type(field.default).model_fields),
            ]
            alike.setdefault("\n".join(section), []).append(f"[{name}]")
    for section, names in alike.items():
        lines += [f"## {', '.join(names)}", "", section]
    return "\n".join(lines)


def _settings_table(fields) -> list[str]:
    rows = ["| setting | meaning | default |", "|---|---|---|"]
    for name, field in fields.items():
        rows.append(
            f"| `{name}` | {field.description} | `{field.get_default(call_default_factory=True)!r}` |"
        )
    return [*rows, ""]


GUIDES = {
    "classifiers": "classifiers",
    "embedders": "embedders",
    "captioners": "assistants",
    "question_answerers": "assistants",
    "text_generators": "assistants",
    "image_generators": "generate",
    "segmenters": "generate",
    "discoverers": "discovery",
    "verifiers": "evidence",
    "repairers": "repair",
    "engines": "engines",
    "rules": "plug-ins",
}
METHODS = ("discoverers", "describers", "verifiers", "repairers")
"""Roles whose parameters are explained; those of models are in the guides of their roles."""
MIN_METHODS = 2
"""A parameter that is the same in so many methods of a role is explained once."""
METHOD_HEAD = """# Methods

Made by `tools/make_reference.py` from the classes; do not edit. Every registered part, by role. The parameters of a method are the
fields of its class: give them in `weakspot.toml` under the stage's `parameters`. [Methods and their
papers](../explanation/methods.md) says what was taken from each paper and where ours departs from it. In lists of parameters
brackets hold the default, and what must be given is bold.
"""
_SECTION = re.compile(r"\n(?:Args|Raises|Returns):\n|\n>>> ")


def method_page() -> str:
    """Return the page on methods."""
    return f"{METHOD_HEAD}\n{method_rows().strip()}\n"


def method_rows(package: str = OWN_DISTRIBUTION) -> str:
    """Return all parts that a package has registered, role by role: what each does, then what its parameters mean."""
    lines = []
    papers: dict[str, str] = {}
    for role in ROLES:
        classes = {
            name: part_class(role, name)
            for name, point in registered(role).items()
            if point.dist is not None and point.dist.name == package
        }
        if role == "rules" and package == OWN_DISTRIBUTION:
            classes = dict(sorted(BUILT_IN_RULES.items()))
        if classes:
            lines += [f"## {role.replace('_', ' ').capitalize()}", ""]
            lines += (
                [f"Guide: [{GUIDES[role]}](../guide/{GUIDES[role]}.md).", ""]
                if role in GUIDES
                else []
            )
            rows = []
            for name, part in classes.items():
                paper, row = paper_of(part), part_row(name, part)
                first = papers.setdefault(paper, name)
                if paper and first != name:
                    row = row.replace(paper, f"Paper: that of `{first}`.")
                rows.append(row)
            if role in METHODS:
                rows = [row.rsplit(" | ", maxsplit=1)[0] + " |" for row in rows]
            head = ["name", "what it does", *([] if role in METHODS else ["parameters (default)"])]
            lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
            lines += ["", *(_parameters(classes) if role in METHODS else [])]
    return "\n".join(lines)


def part_row(name: str, part: object) -> str:
    """Return the row of one part.

    >>> from weakspot.discover.prediction_order import LossDiscoverer
    >>> part_row("loss", LossDiscoverer)
    '| `loss` | Baseline: the samples whose true label got the least probability. | `min_failures` (2) |'
    """
    paper = paper_of(part)
    what = f"{summary_of(part)} {paper}".strip().replace("|", "\\|")
    shown = [
        f"**`{one.name}`**"
        if one.default is one.empty
        else f"`{one.name}` ({_shown(one.default)})".removesuffix(" (none)")
        for one in inspect.signature(part).parameters.values()
        if one.kind is not one.VAR_KEYWORD and one.name != "kind"
    ]
    return f"| `{name}` | {what} | {', '.join(shown)} |"


def _parameters(classes: Mapping[str, type]) -> list[str]:
    """Return what the parameters of methods mean: first what several share, then method by method."""
    tables = {name: meanings_of(part) for name, part in classes.items()}
    repeated = _repeated(tables.values(), MIN_METHODS)
    shared = list({row.split("|")[1]: row for row in reversed(repeated)}.values())[::-1]
    lines = _meanings("several methods", shared) if shared else []
    for name, table in tables.items():
        own = [row for row in table.values() if row not in shared]
        lines += _meanings(f"`{name}`", own) if own else []
    return lines


def _meanings(whose: str, rows: list[str]) -> list[str]:
    return [f"| {whose} | default | meaning |", "|---|---|---|", *rows, ""]


def meanings_of(part: type) -> dict[str, str]:
    """Return a row for every parameter of a method, with what its docstring, or that of a base, says about it."""
    said = {
        name: meaning
        for kind in reversed(part.__mro__)
        for name, meaning in _arguments(inspect.cleandoc(kind.__doc__ or "")).items()
    }
    return {
        one.name: f"| `{one.name}` | {'' if one.default is one.empty else _shown(one.default)} | {said.get(one.name, '')} |"
        for one in inspect.signature(part).parameters.values()
    }


def summary_of(part: object) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())


def paper_of(part: object) -> str:
    """Return the sentence on the paper, `After ...`, or nothing."""
    text = " ".join(_SECTION.split(f"{inspect.getdoc(part) or ''}")[0].split())
    found = re.search(r"After [^*]*\*[^*]+\*(?:[^*.]*\*[^*]+\*)*(?: \([^)]*\))?", text)
    return f"{found[0]}." if found else ""


def _shown(default: object) -> str:
    if isinstance(default, tuple) and not default:
        return "none"
    if type(default).__repr__ is object.__repr__ or "factory" in repr(default):
        return "built in"
    return str(default) if default not in ("", None) else "none"


def _arguments(text: str) -> dict[str, str]:
    if "\nArgs:\n" not in text:
        return {}
    section = text.split("\nArgs:\n", maxsplit=1)[1].split("\n\n", maxsplit=1)[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.M)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


def _tool(name: str) -> ModuleType:
    """Return another file of this folder as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = {
    "cli.md": command_page,
    "settings.md": settings_page,
    "methods.md": method_page,
    "python.md": lambda: _tool("public_surface").python_page(),
    "json.md": lambda: _tool("json_reference").json_page(),
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or PAGES:
        (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"wrote docs/reference/{name}\n")
    _tool("json_reference").write_schemas()


if __name__ == "__main__":
    main()
