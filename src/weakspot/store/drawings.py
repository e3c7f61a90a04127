"""Generated pictures on disk: files named by content, and a journal that only grows."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image
from pydantic import ValidationError

from weakspot.core.drawn import DrawnPicture, PictureOrder
from weakspot.core.errors import StoreError
from weakspot.core.record import Record
from weakspot.store import atomic, lock

JOURNAL = "journal.jsonl"
PICTURES = "pictures"
LOCK = "lock"
_KEY_START = b'{"key":"'
_KEY_DIGITS = 32
_KEY_END = len(_KEY_START) + _KEY_DIGITS


class PictureLook(Record):
    """What a gate needs to know of earlier pictures without opening them.

    Args:
        gate: id of the gate that gave the verdicts.
        fingerprint: of the picture; empty when none came.
        size: width and height in pixels.
    """

    gate: str = ""
    fingerprint: str = ""
    size: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """One picture to be stored.

    Args:
        drawn: its record, with the sha256 of the data.
        data: the encoded picture; None when none came, or when it is stored already.
        look: for later gates.
    """

    drawn: DrawnPicture
    data: bytes | None = None
    look: PictureLook = field(default_factory=PictureLook)


class _Line(Record):
    """One line of the journal. The key comes first, so that lines can be told apart without being parsed."""

    key: str
    drawn: DrawnPicture
    look: PictureLook = PictureLook()


class Drawings:
    """Drawn pictures by generator, class, prompt and seed.

    A record is written only after its picture is on disk; of several records of one order the last holds. A line that a crash left
    unfinished is not read, and is cut off by the next writer. A record whose picture is gone or has changed counts as not drawn.

    Args:
        folder: made by the first writer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0
        self._sound: set[str] = set()
        self._depth = 0
        self._journal: BinaryIO | None = None
        self._read_on()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[DrawnPicture]:
        return (drawing.drawn for drawing in self.all())

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Be the only writer, and say whether another one wrote since this object last looked; may be nested, in one thread.

        Raises:
            StoreError: if another process writes, or the folder cannot be made.
        """
        if self._depth:
            yield False
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        with lock.exclusive(self.folder / LOCK):
            has_more = self._read_on()
            self._cut_back()
            self._depth += 1
            try:
                yield has_more
            finally:
                self._depth -= 1
                self._close()

    def find(self, generator_id: str, order: PictureOrder) -> DrawnPicture | None:
        """Return what came of an order, None if it was not drawn or its picture is lost."""
        drawing = self.drawing(generator_id, order)
        return drawing.drawn if drawing is not None else None

    def drawing(self, generator_id: str, order: PictureOrder) -> Drawing | None:
        """Return the same with what gates need to know, without the data."""
        place = self._places.get(_key(generator_id, order).encode())
        found = self._read([place])[0] if place is not None else None
        if found is None or found.drawn.order != order or found.drawn.generator_id != generator_id:
            return None
        return found if self._is_sound(found.drawn) else None

    def all(self) -> Iterator[Drawing]:
        """Yield the record that holds for every order, as they were written, whether the picture is still there or not."""
        places = sorted(self._places.values())
        for start in range(0, len(places), 4096):
            yield from (found for found in self._read(places[start : start + 4096]) if found is not None)

    def add(self, drawn: DrawnPicture, data: bytes | None = None) -> DrawnPicture:
        """Store one picture, and return its record with the place of the file."""
        return self.add_all([Drawing(drawn=drawn, data=data)])[0]

    def add_all(self, drawings: Sequence[Drawing]) -> list[DrawnPicture]:
        """Store pictures, and return their records with the places of their files; all are on disk when this returns.

        Raises:
            StoreError: if they cannot be written.
        """
        if not self._depth:
            with self.writing():
                return self.add_all(drawings)
        try:
            placed = [self._placed(drawing) for drawing in drawings]
            self._append(placed, drawings)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        return placed

    def picture(self, drawn: DrawnPicture) -> Image.Image:
        """Return a stored picture.

        Raises:
            StoreError: if there is none, or it cannot be read.
        """
        try:
            with Image.open(BytesIO(self.data(drawn))) as picture:
                picture.load()
                return picture.convert("RGB")
        except (OSError, ValueError, SyntaxError) as error:
            raise _lost(self.folder / drawn.file, str(error)) from error

    def data(self, drawn: DrawnPicture) -> bytes:
        """Return a stored picture as it was encoded.

        Raises:
            StoreError: if there is none, or it has changed.
        """
        path = self._path(drawn)
        try:
            content = path.read_bytes() if path is not None else b""
        except OSError as error:
            raise _lost(self.folder / drawn.file, error.strerror or str(error)) from error
        if hashlib.sha256(content).hexdigest() != drawn.content_hash:
            raise _lost(self.folder / drawn.file, "it is not the picture that was drawn")
        return content

    def _path(self, drawn: DrawnPicture) -> Path | None:
        return self.folder / file_of(drawn.content_hash) if drawn.content_hash else None

    def _is_sound(self, drawn: DrawnPicture) -> bool:
        if not drawn.content_hash or drawn.content_hash in self._sound:
            return True
        try:
            self.data(drawn)
        except StoreError:
            return False
        self._sound.add(drawn.content_hash)
        return True

    def _placed(self, drawing: Drawing) -> DrawnPicture:
        drawn = drawing.drawn.model_copy(update={"file": file_of(drawing.drawn.content_hash)})
        path = self._path(drawn)
        if path is None or self._is_sound(drawn):
            return drawn
        if drawing.data is None or hashlib.sha256(drawing.data).hexdigest() != drawn.content_hash:
            raise StoreError("A picture must be stored with its data.", where=str(path), given=drawn.content_hash)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.write(drawing.data)
            stream.flush()
            os.fsync(stream.fileno())
        self._sound.add(drawn.content_hash)
        return drawn

    def _append(self, placed: Sequence[DrawnPicture], drawings: Sequence[Drawing]) -> None:
        if self._journal is None:
            self._journal = (self.folder / JOURNAL).open("ab")
        lines = [
            _Line(key=_key(drawn.generator_id, drawn.order), drawn=drawn, look=drawing.look).model_dump_json().encode() + b"\n"
            for drawn, drawing in zip(placed, drawings, strict=True)
        ]
        self._journal.write(b"".join(lines))
        self._journal.flush()
        os.fsync(self._journal.fileno())
        for line in lines:
            self._note(line)

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _read_on(self) -> bool:
        """Take in lines that are new since the last time, and return whether there were any."""
        before = self._end
        try:
            with (self.folder / JOURNAL).open("rb") as stream:
                stream.seek(self._end)
                for line in stream:
                    if not line.endswith(b"\n"):
                        break
                    self._note(line)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise atomic.damaged(self.folder / JOURNAL, error.strerror or str(error)) from error
        return self._end > before

    def _note(self, line: bytes) -> None:
        if line.startswith(_KEY_START):
            self._places[line[len(_KEY_START) : _KEY_END]] = (self._end, len(line))
        self._end += len(line)

    def _cut_back(self) -> None:
        path = self.folder / JOURNAL
        if path.exists() and path.stat().st_size > self._end:
            os.truncate(path, self._end)

    def _read(self, places: Sequence[tuple[int, int]]) -> list[Drawing | None]:
        with (self.folder / JOURNAL).open("rb") as stream:
            return [_parsed(stream, start, length) for start, length in places]


def file_of(content_hash: str) -> str:
    """Return where a picture is, relative to the folder of all; empty for none.

    >>> file_of("ab12")
    'pictures/ab/ab12.png'
    """
    return f"{PICTURES}/{content_hash[:2]}/{content_hash}.png" if content_hash else ""


def _key(generator_id: str, order: PictureOrder) -> str:
    content = "\0".join([generator_id, order.class_name, order.prompt, str(order.seed)])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGITS]


def _parsed(stream: BinaryIO, start: int, length: int) -> Drawing | None:
    stream.seek(start)
    try:
        line = _Line.model_validate_json(stream.read(length))
    except ValidationError:
        return None
    return Drawing(drawn=line.drawn, look=line.look)


def _lost(path: Path, why: str) -> StoreError:
    return StoreError(
        f"A generated picture cannot be read: {why}.", where=str(path), fix="Run the command again: it is drawn anew."
    )


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(f"Generated pictures cannot be written: {error.strerror or error}.", where=str(folder))
