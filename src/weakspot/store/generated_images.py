"""Generated images on disk: files named by content, and a journal that only grows."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image
from pydantic import Field, ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.generated import GenerationRequest, GenerationResult
from weakspot.core.record import Record
from weakspot.store import atomic

JOURNAL = "journal.jsonl"
IMAGES = "images"
LOCK = "lock"
_KEY_START = b'{"key":"'
_KEY_DIGITS = 32
_KEY_END = len(_KEY_START) + _KEY_DIGITS


class ImageFacts(Record):
    """What a quality check needs to know of earlier images without opening them.

    Args:
        quality: id of the quality check that gave the verdicts.
        fingerprint: of the image; empty when none came.
        size: width and height in pixels.
    """

    quality: str = ""
    fingerprint: str = ""
    size: tuple[int, int] = (0, 0)


class StoredImage(Record):
    """One image to be stored, and its line in the journal. The key comes first, so that lines can be told apart without being parsed.

    Args:
        key: of the request, made when it is written.
        generated: its record, with the sha256 of the data.
        look: for later quality checks.
        data: the encoded image; None when none came, or when it is stored already.
    """

    key: str = ""
    generated: GenerationResult
    look: ImageFacts = ImageFacts()
    data: bytes | None = Field(default=None, exclude=True, repr=False)


class GeneratedImageStore:
    """Generated images by generator, class, prompt and seed.

    A record is written only after its image is on disk; of several records of one request the last holds. A line that a crash left
    unfinished is not read, and is cut off by the next writer. A record whose image is gone or has changed counts as not generated.

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

    def __iter__(self) -> Iterator[GenerationResult]:
        return (stored.generated for stored in self.all())

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
        with atomic.exclusive(self.folder / LOCK):
            has_more = self._read_on()
            self._cut_back()
            self._depth += 1
            try:
                yield has_more
            finally:
                self._depth -= 1
                self._close()

    def find(self, generator_id: str, request: GenerationRequest) -> GenerationResult | None:
        """Return what came of a request, None if it was not generated or its image is lost."""
        stored = self.stored(generator_id, request)
        return stored.generated if stored is not None else None

    def stored(self, generator_id: str, request: GenerationRequest) -> StoredImage | None:
        """Return the same with what quality checks need to know, without the data."""
        place = self._places.get(_key(generator_id, request).encode())
        found = self._read([place])[0] if place is not None else None
        if (
            found is None
            or found.generated.request != request
            or found.generated.generator_id != generator_id
        ):
            return None
        return found if self._is_sound(found.generated) else None

    def all(self) -> Iterator[StoredImage]:
        """Yield the record that holds for every request, as they were written, whether the image is still there or not."""
        places = sorted(self._places.values())
        for start in range(0, len(places), 4096):
            yield from (
                found for found in self._read(places[start : start + 4096]) if found is not None
            )

    def add(self, generated: GenerationResult, data: bytes | None = None) -> GenerationResult:
        return self.add_all([StoredImage(generated=generated, data=data)])[0]

    def add_all(self, stored_images: Sequence[StoredImage]) -> list[GenerationResult]:
        """Store images, and return their records with the places of their files; all are on disk when this returns.

        Raises:
            StoreError: if they cannot be written.
        """
        if not self._depth:
            with self.writing():
                return self.add_all(stored_images)
        try:
            placed = [self._place(stored) for stored in stored_images]
            self._append(placed, stored_images)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        return placed

    def image(self, generated: GenerationResult) -> Image.Image:
        """Return a stored image.

        Raises:
            StoreError: if there is none, or it cannot be read.
        """
        try:
            with Image.open(BytesIO(self.data(generated))) as image:
                image.load()
                return image.convert("RGB")
        except (OSError, ValueError, SyntaxError) as error:
            raise _lost(self.folder / generated.file, str(error)) from error

    def data(self, generated: GenerationResult) -> bytes:
        """Return a stored image as it was encoded.

        Raises:
            StoreError: if there is none, or it has changed.
        """
        path = self._path(generated)
        try:
            content = path.read_bytes() if path is not None else b""
        except OSError as error:
            raise _lost(self.folder / generated.file, error.strerror or str(error)) from error
        if hashlib.sha256(content).hexdigest() != generated.content_hash:
            raise _lost(self.folder / generated.file, "it is not the image that was generated")
        return content

    def _path(self, generated: GenerationResult) -> Path | None:
        return self.folder / file_of(generated.content_hash) if generated.content_hash else None

    def _is_sound(self, generated: GenerationResult) -> bool:
        if not generated.content_hash or generated.content_hash in self._sound:
            return True
        try:
            self.data(generated)
        except StoreError:
            return False
        self._sound.add(generated.content_hash)
        return True

    def _place(self, stored: StoredImage) -> GenerationResult:
        generated = stored.generated.model_copy(
            update={"file": file_of(stored.generated.content_hash)}
        )
        path = self._path(generated)
        if path is None or self._is_sound(generated):
            return generated
        if stored.data is None or hashlib.sha256(stored.data).hexdigest() != generated.content_hash:
            raise StoreError(
                "An image must be stored with its data.",
                where=str(path),
                given=generated.content_hash,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.write(stored.data)
            stream.flush()
            os.fsync(stream.fileno())
        self._sound.add(generated.content_hash)
        return generated

    def _append(
        self, placed: Sequence[GenerationResult], stored_images: Sequence[StoredImage]
    ) -> None:
        if self._journal is None:
            self._journal = (self.folder / JOURNAL).open("ab")
        lines = [
            StoredImage(
                key=_key(generated.generator_id, generated.request),
                generated=generated,
                look=stored.look,
            )
            .model_dump_json()
            .encode()
            + b"\n"
            for generated, stored in zip(placed, stored_images, strict=True)
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

    def _read(self, places: Sequence[tuple[int, int]]) -> list[StoredImage | None]:
        with (self.folder / JOURNAL).open("rb") as stream:
            return [_parse(stream, start, length) for start, length in places]


def file_of(content_hash: str) -> str:
    """Return where an image is, relative to the folder of all; empty for none.

    >>> file_of("ab12")
    'images/ab/ab12.png'
    """
    return f"{IMAGES}/{content_hash[:2]}/{content_hash}.png" if content_hash else ""


def _key(generator_id: str, request: GenerationRequest) -> str:
    content = "\0".join([generator_id, request.class_name, request.prompt, str(request.seed)])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGITS]


def _parse(stream: BinaryIO, start: int, length: int) -> StoredImage | None:
    stream.seek(start)
    try:
        line = StoredImage.model_validate_json(stream.read(length))
    except ValidationError:
        return None
    generated = line.generated.model_copy(update={"file": file_of(line.generated.content_hash)})
    return line.model_copy(update={"generated": generated})


def _lost(path: Path, why: str) -> StoreError:
    return StoreError(
        f"A generated image cannot be read: {why}.",
        where=str(path),
        fix="Run the command again: it is generated again.",
    )


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"Generated images cannot be written: {error.strerror or error}.", where=str(folder)
    )
