"""An adversarial set as a folder: one sub-folder a class, a table of its images, and a record."""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from weakspot.core.errors import ConfigError
from weakspot.core.generation_requests import GenerationResult
from weakspot.generation.search.adversarial import CaptionYield
from weakspot.lab.adversarial.records import KIND, AdversarialSet
from weakspot.store import atomic
from weakspot.store.names import folder_name

TABLE_FILE, RECORD_FILE = "metadata.csv", "manifest.json"
COLUMNS = (
    "image",
    "label",
    "prompt",
    "generator",
    "seed",
    "predicted",
    "caption_from",
    "parents",
    "sha256",
    "synthetic",
)
BETWEEN = "; "
NAME_DIGITS = 20
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def refuse_foreign(folder: Path) -> None:
    """Refuse to write into a folder that holds anything but an adversarial set; one that is there is replaced.

    Raises:
        ConfigError: if the folder cannot be taken.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError("The set needs a folder, and this is a file.", where=str(folder))
    if any(folder.iterdir()) and read_record(folder) is None:
        raise ConfigError(
            "The folder holds something else than an adversarial set.",
            where=str(folder),
            fix="Give another folder with --to.",
        )


def read_record(folder: Path) -> AdversarialSet | None:
    path = folder / RECORD_FILE
    try:
        found = AdversarialSet.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return found if found.kind == KIND else None


def write_images(
    folder: Path,
    record: AdversarialSet,
    generated: Mapping[str, GenerationResult],
    stored_images: Path,
) -> None:
    """Write the images of a set and their table; images of an earlier set in the same folder go.

    Interrupted, it leaves a folder that says it is not complete, and that the next call finishes.

    Args:
        folder: made if need be.
        record: the set.
        generated: its images by content hash.
        stored_images: the folder that they were generated into.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_record(folder, record.model_copy(update={"is_complete": False}))
        earlier = set(_listed(folder / TABLE_FILE))
        (folder / TABLE_FILE).unlink(missing_ok=True)
        rows = [
            row
            for brought in record.yields
            for row in _save(folder, brought, generated, stored_images)
        ]
        for name in earlier - {row["image"] for row in rows}:
            (folder / name).unlink(missing_ok=True)
        atomic.write_bytes(folder / TABLE_FILE, _table(rows).encode())
    except OSError as error:
        raise ConfigError(
            f"The set cannot be written: {error.strerror}.", where=str(folder)
        ) from error


def write_record(folder: Path, record: AdversarialSet) -> Path:
    path = folder / RECORD_FILE
    atomic.write_bytes(path, (record.model_dump_json(indent=2) + "\n").encode())
    return path


def _save(
    folder: Path,
    brought: CaptionYield,
    generated: Mapping[str, GenerationResult],
    stored_images: Path,
) -> Iterator[dict[str, str]]:
    name = brought.caption.class_name
    below = name if _SAFE_NAME.fullmatch(name) else folder_name(name)
    for key, predicted in zip(brought.kept, brought.predicted, strict=True):
        one = generated[key]
        content = (stored_images / one.file).read_bytes()
        place = f"{below}/{key[:NAME_DIGITS]}{Path(one.file).suffix}"
        (folder / place).parent.mkdir(exist_ok=True)
        if not (folder / place).is_file() or (folder / place).read_bytes() != content:
            atomic.write_bytes(folder / place, content)
        yield {
            "image": place,
            "label": name,
            "prompt": one.request.prompt,
            "generator": one.generator_id,
            "seed": str(one.request.seed),
            "predicted": predicted,
            "caption_from": BETWEEN.join(brought.caption.origins),
            "parents": BETWEEN.join(one.parents),
            "sha256": hashlib.sha256(content).hexdigest(),
            "synthetic": "true",
        }


def _table(rows: list[dict[str, str]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _listed(table: Path) -> list[str]:
    """Return the images that the table of an earlier set names, as far as they are below its folder."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as stream:
        names = [row.get("image") or "" for row in csv.DictReader(stream)]
    root = table.parent.resolve()
    return [name for name in names if name and (root / name).resolve().is_relative_to(root)]
