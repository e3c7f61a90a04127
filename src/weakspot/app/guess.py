"""What a user types for a classifier, to settings."""

import re
from pathlib import Path

from pydantic import JsonValue

from weakspot.app.config import PartSettings
from weakspot.core.errors import ConfigError

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
