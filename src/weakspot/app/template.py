"""Writes a commented weakspot.toml from the settings themselves, so that file and code cannot disagree."""

import json
import textwrap
from typing import Any

from pydantic import BaseModel

from weakspot.app.config import Settings

WIDTH = 110


def commented_settings(settings: Settings) -> str:
    """Return weakspot.toml with every setting, its meaning and its value; unchanged ones are commented out."""
    lines = ["# Settings of a weakspot project. A line that starts with '#' shows the default.", ""]
    scalars = [name for name, field in Settings.model_fields.items() if not _is_section(field.default)]
    for name in scalars:
        lines += _entry(name, settings, Settings())
    for name, field in Settings.model_fields.items():
        if _is_section(field.default):
            lines += ["", f"[{name}]", f"# {type(field.default).__doc__ or ''}".rstrip()]
            section, default = getattr(settings, name), field.default
            for key in type(default).model_fields:
                lines += _entry(key, section, default)
    return "\n".join(lines) + "\n"


def _is_section(value: object) -> bool:
    return isinstance(value, BaseModel)


def _entry(name: str, section: BaseModel, default: BaseModel) -> list[str]:
    meaning = type(section).model_fields[name].description or ""
    value, usual = getattr(section, name), getattr(default, name)
    mark = "# " if value == usual else ""
    comment = [f"# {line}" for line in textwrap.wrap(meaning, WIDTH)]
    return [*comment, f"{mark}{name} = {_toml(value)}"]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
