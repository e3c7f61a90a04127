"""Reading weakspot.toml, and values as they stand in it: earlier names are understood, and every problem is reported at once."""

import json
import logging
import tomllib
from collections.abc import Mapping
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


RENAMED_KEYS = {
    ("boxes", "pictures"): "images",
    ("generator", "max_pictures"): "max_images",
    ("report", "n_pictures"): "n_images",
}
RENAMED_OPTIONS = {
    "control": "correction",
    "picture_side": "image_side",
    "pictures": "images",
    "price_per_picture": "price_per_image",
    "vector_column": "embedding_column",
    "vector_length": "embedding_length",
}
RENAMED_VALUES = {
    "name": {"given-vectors": "given-embeddings"},
    "space": {"joint": "clip", "own": "features"},
}
PLACES_OF_OPTIONS = ("options", "parameters")


def use_current_names(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return settings under today's names, and a sentence for every name that changed.

    A setting that is given under both names keeps both, so that checking refuses the earlier one.

    >>> use_current_names({"report": {"n_pictures": 4}})
    ({'report': {'n_images': 4}}, ('report.n_pictures is called report.n_images now.',))
    """
    renamed: list[str] = []
    return _rename(given, (), renamed), tuple(renamed)


def _rename(given: Mapping[str, Any], place: tuple[str, ...], renamed: list[str]) -> dict[str, Any]:
    today: dict[str, Any] = {}
    for key, value in given.items():
        name = _current_key(key, place)
        if name in given and name != key:
            name = key
        if name != key:
            renamed.append(f"{_shown(place, key)} is called {_shown(place, name)} now.")
        today[name] = _current_value(name, value, (*place, name), renamed)
    return today


def _current_key(key: str, place: tuple[str, ...]) -> str:
    if any(part in PLACES_OF_OPTIONS for part in place):
        return RENAMED_OPTIONS.get(key, key)
    return RENAMED_KEYS.get((*place, key), key) if len(place) == 1 else key


def _current_value(name: str, value: Any, place: tuple[str, ...], renamed: list[str]) -> Any:
    if isinstance(value, Mapping):
        return _rename(value, place, renamed)
    current = RENAMED_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
    if current != value:
        renamed.append(f"{'.'.join(place)} = {value!r} is called {current!r} now.")
    return current


def _shown(place: tuple[str, ...], key: str) -> str:
    return ".".join((*place, key))


logger = logging.getLogger(__name__)


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
    given, renamed = use_current_names(given)
    for sentence in renamed:
        logger.warning("%s: %s", path, sentence)
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
