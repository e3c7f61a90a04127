"""The settings file of a new project."""

import os
import re
import textwrap
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, JsonValue

from weakspot.core.errors import ConfigError, raise_all
from weakspot.core.roles import Classifier
from weakspot.data.columns import did_you_mean
from weakspot.data.locations import is_local, is_pattern, local_path, shown_location
from weakspot.data.settings import DataSettings
from weakspot.data.source import SampleSource
from weakspot.run.settings import (
    SETTINGS_FILE,
    DiscoverSettings,
    PartSettings,
    Settings,
    VerifySettings,
    toml_value,
)

WIDTH = 110


def recommended_settings() -> Settings:
    """Return what a new project starts from: what finds most at the same error rate (decision 020)."""
    return Settings(
        discover=DiscoverSettings(methods=("auto",)), verify=VerifySettings(scheme="cross-fit")
    )


def commented_settings(settings: Settings) -> str:
    """Return weakspot.toml with every setting, its meaning and its value; unchanged ones are commented out."""
    lines = ["# Settings of a weakspot project. A line that starts with '#' shows the default.", ""]
    scalars = [
        name for name, field in Settings.model_fields.items() if not _is_section(field.default)
    ]
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
    return [*comment, f"{mark}{name} = {toml_value(value)}"]


BY_SUFFIX = {".onnx": "onnx", ".pt": "torch", ".ts": "torch", ".pth": "torch", ".skops": "sklearn"}
IMPORT_STRING = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def classifier_settings(text: str) -> PartSettings:
    """Guess the kind of classifier from a path, URL, import string or `kind:name`.

    >>> classifier_settings("https://models.example/v1").name
    'endpoint'
    >>> classifier_settings("transformers:google/vit-base-patch16-224").options
    {'model': 'google/vit-base-patch16-224'}
    """
    kind, _, rest = text.partition(":")
    if text.startswith(("http://", "https://")):
        return PartSettings(name="endpoint", options={"url": text})
    if kind in ("transformers", "timm") and rest:
        return PartSettings(name=kind, options={"model": rest})
    if Path(text).suffix.lower() in BY_SUFFIX:
        options: dict[str, JsonValue] = {"path": text}
        return PartSettings(name=BY_SUFFIX[Path(text).suffix.lower()], options=options)
    if IMPORT_STRING.fullmatch(text):
        return PartSettings(name="callable", options={"target": text})
    if Path(text).is_dir() and (Path(text) / "config.json").is_file():
        return PartSettings(name="transformers", options={"model": text})
    raise ConfigError(
        "It is not clear what kind of classifier this is.",
        given=text,
        fix="Give an .onnx, TorchScript or .skops file, a transformers folder, transformers:NAME, timm:NAME, an http address, "
        "or package.module:name; or write [classifier] in weakspot.toml.",
    )


def write_settings(folder: Path, settings: Settings, *, overwrite: bool) -> None:
    """Write weakspot.toml into a folder, which is made if need be.

    Raises:
        ConfigError: if there is one already, or the folder cannot be written.
    """
    target = folder / SETTINGS_FILE
    if target.exists() and not overwrite:
        raise ConfigError(
            f"There is a {SETTINGS_FILE} already.",
            where=str(target),
            fix="Edit it, or overwrite it with --force.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target.write_text(commented_settings(settings), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The project folder cannot be written: {error.strerror}.", where=str(folder)
        ) from error


def with_inputs(
    settings: Settings, folder: Path, data: str | SampleSource, classifier: str | Classifier
) -> Settings:
    """Return settings with data and classifier as they were given; paths become relative to the project folder.

    Raises:
        ConfigError: naming every file that is not there.
    """
    raise_all(
        _absent_inputs(settings, folder, data, classifier),
        error=ConfigError,
        what="The project is not made, because something it needs is not there:",
        fix="Correct the path. For a data set on the hub leave --data out, and set source and kind = 'hf-dataset' in weakspot.toml.",
    )
    changes: dict[str, DataSettings | PartSettings] = {}
    if isinstance(data, str) and data:
        changes["data"] = settings.data.model_copy(update={"source": _from_folder(data, folder)})
    if isinstance(classifier, str) and classifier:
        guessed = classifier_settings(classifier)
        options = {
            key: _from_folder(value, folder) if isinstance(value, str) else value
            for key, value in guessed.options.items()
        }
        changes["classifier"] = guessed.model_copy(update={"options": options})
    return settings.model_copy(update=changes)


def _absent_inputs(
    settings: Settings, folder: Path, data: str | SampleSource, classifier: str | Classifier
) -> list[str]:
    given: dict[str, str] = {}
    if isinstance(data, str) and data and settings.data.kind != "hf-dataset":
        given["data"] = data
    if isinstance(classifier, str) and classifier:
        given["classifier"] = str(classifier_settings(classifier).options.get("path", ""))
    return [
        f"{name}: there is nothing at {shown_location(path)}{_alike(path)}"
        for name, path in given.items()
        if path and not _is_there(path, folder)
    ]


def _is_there(path: str, folder: Path) -> bool:
    """Return whether something is at a path, from here or from the project folder; what is elsewhere is not asked."""
    if is_pattern(path) or not is_local(path):
        return True
    return local_path(path).exists() or (folder / path).exists()


def _alike(path: str) -> str:
    parent = local_path(path).parent
    names = [item.name for item in islice(parent.iterdir(), 1000)] if parent.is_dir() else []
    return did_you_mean(local_path(path).name, tuple(sorted(names)))


def _from_folder(text: str, folder: Path) -> str:
    if not Path(text).exists():
        return text
    return Path(os.path.relpath(text, folder)).as_posix()
