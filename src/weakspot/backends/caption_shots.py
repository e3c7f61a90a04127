"""Images with captions that show a chat model how captions are to be written: few-shot captioning."""

import csv
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from weakspot.backends.model_hash import file_hash, settings_hash
from weakspot.core.errors import ConfigError
from weakspot.media.images import UnreadableImageError, decode_image

MOST_SHOTS = 8
SHOWN = "Caption of this image: {text}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Shot:
    """An image and how a person described it, in a few short sentences."""

    image: Image.Image
    text: str

    @property
    def said(self) -> str:
        return SHOWN.replace("{text}", self.text)


def read_shots(table: str | Path) -> tuple[Shot, ...]:
    """Return the images and captions of a CSV table with the columns `image` (beside the table) and `text`; none without a table.

    Raises:
        ConfigError: if the table, a column or an image cannot be read, or there are none or too many.
    """
    if not str(table):
        return ()
    path = Path(table)
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        shots = tuple(
            Shot(
                image=decode_image((path.parent / row["image"]).read_bytes()).image,
                text=" ".join(row["text"].split()),
            )
            for row in rows
        )
    except (OSError, ValueError, KeyError, AttributeError, UnreadableImageError) as error:
        raise _unusable(path, f"it cannot be read ({type(error).__name__}: {error})") from error
    if not 0 < len(shots) <= MOST_SHOTS or not all(shot.text for shot in shots):
        raise _unusable(path, f"it has {len(shots)} rows, or one without a text")
    return shots


def shots_id(table: str | Path) -> tuple[str, ...]:
    """Return what tells a table and its images from others; nothing without a table, so that older ids stay."""
    if not str(table):
        return ()
    shots = read_shots(table)
    return (file_hash(Path(table)), settings_hash(*[shot.image.tobytes() for shot in shots]))


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The examples for captions cannot be used: {why}.",
        where="shots",
        given=str(path),
        fix=f"Give a CSV table with the columns image and text, 1 to {MOST_SHOTS} rows, images beside it.",
    )
