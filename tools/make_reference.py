"""Writes the pages of docs/reference that follow from the code: commands and settings. A test compares them."""

import inspect
import sys
from pathlib import Path

from pydantic import BaseModel

from weakspot.app.config import Settings
from weakspot.cli.main import app

FOLDER = Path(__file__).parent.parent / "docs" / "reference"


def command_page() -> str:
    """Return the page on the command line."""
    import typer.main

    group = typer.main.get_command(app)
    lines = ["# Command line", "", "Made by `tools/make_reference.py`; do not edit.", ""]
    lines += ["Exit codes: 0 done, 1 a confirmed slice is above `--fail-above`, 2 bad input, 130 interrupted.", ""]
    for name, command in group.commands.items():
        lines += [f"## weakspot {name}", "", inspect.cleandoc(command.help or ""), ""]
        lines += ["| option | meaning | default |", "|---|---|---|"]
        lines += [_option_row(option) for option in command.params if option.name != "help"]
        lines.append("")
    return "\n".join(lines)


def _option_row(option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts) if option.opts[0].startswith("-") else f"`{option.name.upper()}`"
    default = option.default() if callable(option.default) else option.default
    shown = "" if default in (None, "", False) else f"`{default}`"
    return f"| {names} | {getattr(option, 'help', '') or ''} | {shown} |"


def settings_page() -> str:
    """Return the page on weakspot.toml."""
    lines = ["# Settings", "", "Made by `tools/make_reference.py`; do not edit. Unknown keys are errors.", ""]
    scalars = {name: field for name, field in Settings.model_fields.items() if not isinstance(field.default, BaseModel)}
    lines += _settings_table(scalars)
    for name, field in Settings.model_fields.items():
        if name not in scalars:
            lines += [f"## [{name}]", "", type(field.default).__doc__ or "", "", *_settings_table(type(field.default).model_fields)]
    return "\n".join(lines)


def _settings_table(fields) -> list[str]:
    rows = ["| setting | meaning | default |", "|---|---|---|"]
    for name, field in fields.items():
        rows.append(f"| `{name}` | {field.description} | `{field.get_default(call_default_factory=True)!r}` |")
    return [*rows, ""]


PAGES = {"cli.md": command_page, "settings.md": settings_page}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"wrote docs/reference/{name}\n")


if __name__ == "__main__":
    main()
