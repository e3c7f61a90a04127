"""Writes what follows from the code on the pages of docs/reference: commands, settings, methods. A test compares them."""

import importlib.util
import inspect
import re
import sys
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
    for name, command in commands.items():
        lines += [f"## weakspot {name}", "", inspect.cleandoc(command.help or ""), ""]
        lines += ["| option | meaning | default |", "|---|---|---|"]
        lines += [_option_row(option) for option in command.params if option.name != "help"]
        lines.append("")
    return "\n".join(lines)


def _option_row(option) -> str:
    names = (
        ", ".join(f"`{name}`" for name in option.opts)
        if option.opts[0].startswith("-")
        else f"`{option.name.upper()}`"
    )
    default = option.default() if callable(option.default) else option.default
    shown = "" if default in (None, "", False) else f"`{default}`"
    return f"| {names} | {getattr(option, 'help', '') or ''} | {shown} |"


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
    for name, field in Settings.model_fields.items():
        if name not in scalars:
            lines += [
                f"## [{name}]",
                "",
                type(field.default).__doc__ or "",
                "",
                *_settings_table(type(field.default).model_fields),
            ]
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
_SECTION = re.compile(r"\n(?:Args|Raises|Returns):\n|\n>>> ")


def method_rows(package: str = OWN_DISTRIBUTION) -> str:
    """Return the tables of all parts that a package has registered, role by role."""
    lines = []
    for role in ROLES:
        classes = {
            name: part_class(role, name)
            for name, point in registered(role).items()
            if point.dist is not None and point.dist.name == package
        }
        if role == "rules" and package == OWN_DISTRIBUTION:
            classes = dict(sorted(BUILT_IN_RULES.items()))
        if classes:
            title = role.replace("_", " ").capitalize()
            guide = f" ([guide](../guide/{GUIDES[role]}.md))" if role in GUIDES else ""
            lines += [
                f"### {title}{guide}",
                "",
                "| name | what it does | parameters (default) |",
                "|---|---|---|",
            ]
            lines += [part_row(name, part) for name, part in classes.items()]
            lines.append("")
    return "\n".join(lines)


def part_row(name: str, part: object) -> str:
    """Return the row of one part.

    >>> from weakspot.discover.prediction_order import LossDiscoverer
    >>> part_row("loss", LossDiscoverer)
    '| `loss` | Baseline: the samples whose true label got the least probability. | `min_failures` (2) |'
    """
    paper = paper_of(part)
    what = f"{summary_of(part)} {paper}".strip().replace("|", "\\|")
    given = inspect.signature(part).parameters.values()
    shown = [
        _parameter(one) for one in given if one.kind is not one.VAR_KEYWORD and one.name != "kind"
    ]
    return f"| `{name}` | {what} | {', '.join(shown)} |"


def parameter_table(part: type) -> str:
    """Return a table of the parameters of a method with what its docstring says about them."""
    meanings = {
        name: meaning
        for kind in reversed(part.__mro__)
        for name, meaning in _arguments(inspect.cleandoc(kind.__doc__ or "")).items()
    }
    lines = ["| parameter | default | meaning |", "|---|---|---|"]
    for one in inspect.signature(part).parameters.values():
        default = "needed" if one.default is one.empty else f"`{_shown(one.default)}`"
        lines.append(
            f"| `{one.name}` | {default} | {meanings.get(one.name, '')} |".replace("  |", " |")
        )
    return "\n".join(lines)


def summary_of(part: object) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())


def paper_of(part: object) -> str:
    """Return the sentence on the paper, `After ...`, or nothing."""
    text = " ".join(_SECTION.split(f"{inspect.getdoc(part) or ''}")[0].split())
    found = re.search(r"After [^*]*\*[^*]+\*(?:[^*.]*\*[^*]+\*)*(?: \([^)]*\))?", text)
    return f"{found[0]}." if found else ""


def _parameter(one: inspect.Parameter) -> str:
    default = "" if one.default is one.empty else f" ({_shown(one.default)})"
    return f"`{one.name}`{default}"


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


_BLOCK = re.compile(r"(<!-- made: (.*?) -->\n).*?(<!-- end -->)", re.S)


def method_page() -> str:
    """Return the page on methods: what people wrote, with the tables between `made` and `end` made anew."""
    page = (FOLDER / "methods.md").read_text(encoding="utf-8")
    return _BLOCK.sub(lambda block: f"{block[1]}\n{_table(block[2])}\n\n{block[3]}", page)


def _table(asked: str) -> str:
    """Return the table that a block asks for: `parts`, or `parameters of <role> <name>`."""
    if asked == "parts":
        return method_rows().strip()
    role, name = asked.removeprefix("parameters of ").split()
    return parameter_table(part_class(role, name))


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
