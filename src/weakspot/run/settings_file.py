"""Reading weakspot.toml, and values as they are written in it; every problem is reported at once."""

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from weakspot.core.errors import ConfigError, raise_all
from weakspot.run.settings import SETTINGS_FILE, Settings


def toml_value(value: Any) -> str:
    """Return a value as TOML; entries of a table that are None are left out.

    >>> toml_value({"colour": "bgr", "mean": (0.5, 0.5)})
    '{"colour" = "bgr", "mean" = [0.5, 0.5]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inner = ", ".join(
            f"{json.dumps(key)} = {toml_value(item)}"
            for key, item in value.items()
            if item is not None
        )
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def load_settings(folder: Path) -> Settings:
    """Read weakspot.toml of a project folder.

    Raises:
        ConfigError: with every problem that the file has.
    """
    path = folder / SETTINGS_FILE
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"There is no {SETTINGS_FILE} here.",
            where=str(folder),
            fix="Run `weakspot init`, or name the project with --project.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{SETTINGS_FILE} is not valid TOML: {error}.", where=str(path)
        ) from error
    return parse_settings(given, where=str(path))


def parse_settings(given: dict[str, Any], *, where: str) -> Settings:
    """Turn nested settings into checked ones; all problems are reported in one error."""
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        problems = [_problem(dict(item)) for item in error.errors()]
        raise_all(
            problems,
            error=ConfigError,
            what="Some settings cannot be used:",
            where=where,
            fix="Correct them and start again.",
        )
        raise
    settings.failure.criterion()
    return settings


def _problem(item: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = ", ".join(sorted(_known_keys(item["loc"][:-1])))
        return f"{name}: there is no such setting (known here: {known})"
    return f"{name}: {item['msg']} (given: {item.get('input')!r})"


def _known_keys(location: tuple[str | int, ...]) -> set[str]:
    model: Any = Settings
    for part in location:
        model = model.model_fields[str(part)].annotation
    return set(model.model_fields)
