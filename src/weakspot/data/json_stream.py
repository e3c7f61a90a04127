"""Large JSON objects read piece by piece: one element of a long list at a time."""

import codecs
import json
from collections.abc import Iterator
from typing import BinaryIO

from weakspot.core.errors import DataError

_BLOCK_BYTES = 1 << 20
_MAX_PIECE = 1 << 26
# A number near the end of a block, such as `2.` or `1e+`, may go on in the next.
_MAX_CUT_LENGTH = 3
_BLANK = " \t\n\r"


def read_members(stream: BinaryIO, *, where: str) -> Iterator[tuple[str, object]]:
    """Yield (name, value) of a JSON object; members that are lists are yielded element by element, under the same name.

    Memory holds one element and a block of the file.

    Raises:
        DataError: if the stream holds anything else, or one element is larger than 64 MB.
    """
    text = _Text(stream, where)
    text.take("{")
    if text.ahead() == "}":
        return
    while True:
        name = text.value()
        if not isinstance(name, str):
            raise text.wrong("a name was expected")
        text.take(":")
        if text.ahead() == "[":
            for element in _elements(text):
                yield name, element
        else:
            yield name, text.value()
        if text.ahead() != ",":
            break
        text.take(",")
    text.take("}")


def _elements(text: "_Text") -> Iterator[object]:
    text.take("[")
    if text.ahead() == "]":
        text.take("]")
        return
    while True:
        yield text.value()
        if text.ahead() != ",":
            break
        text.take(",")
    text.take("]")


class _Text:
    """The part of a stream that is in memory."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._stream = stream
        self._where = where
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = json.JSONDecoder()
        self._buffer = ""
        self._place = 0

    def ahead(self) -> str:
        """Return the next character that is not blank, empty at the end."""
        while True:
            while self._place < len(self._buffer) and self._buffer[self._place] in _BLANK:
                self._place += 1
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._fill(_BLOCK_BYTES):
                return ""

    def take(self, wanted: str) -> None:
        found = self.ahead()
        if found != wanted:
            raise self.wrong(
                f"{wanted!r} was expected where {found!r} stands"
                if found
                else f"it ends where {wanted!r} was expected"
            )
        self._place += 1

    def value(self) -> object:
        self.ahead()
        block = _BLOCK_BYTES
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._place)
            except json.JSONDecodeError as error:
                # It may only be cut off by the end of the block.
                if len(self._buffer) - self._place > _MAX_PIECE or not self._fill(block):
                    raise self.wrong(error.msg.lower()) from error
                block *= 2
                continue
            except (RecursionError, ValueError) as error:
                raise self.wrong(
                    "it is nested too deeply, or has a number of too many digits"
                ) from error
            if len(self._buffer) - end >= _MAX_CUT_LENGTH or not self._fill(block):
                self._place = end
                return value

    def wrong(self, what: str) -> DataError:
        near = self._buffer[self._place : self._place + 40]
        return DataError(
            f"The file is no JSON object: {what}.",
            where=self._where,
            given=near,
            fix="Export it again.",
        )

    def _fill(self, n_bytes: int) -> bool:
        data = self._stream.read(n_bytes)
        try:
            more = self._decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise DataError(
                "The file is not UTF-8 text.", where=self._where, fix="Export it again."
            ) from error
        if data:
            self._buffer, self._place = self._buffer[self._place :] + more, 0
        return bool(data)
