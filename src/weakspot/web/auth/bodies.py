"""The body of a request: how large it may be, and that JSON is whole text."""

import json
import re

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from weakspot.web.problems import RefusedError

MEBIBYTE = 1024 * 1024
LARGEST = 1 * MEBIBYTE
LARGEST_UPLOAD = 20 * MEBIBYTE
UPLOADS = "/api/uploads/"


def largest_for(path: str) -> int:
    return LARGEST_UPLOAD if path.startswith(UPLOADS) else LARGEST


def is_too_large(announced: str | None, largest: int) -> bool:
    """Return whether a request announces too much; an announcement that is no number is left to the server.

    >>> is_too_large("12", 10), is_too_large(None, 10)
    (True, False)
    """
    return announced is not None and announced.isdecimal() and int(announced[:20]) > largest


def limit_body(receive: Receive, largest: int) -> Receive:
    """Return the same receiver, which refuses a body that grows beyond its limit."""
    n_bytes = 0

    async def limited_receive() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > largest:
            raise HTTPException(413)
        return message

    return limited_receive


_MAY_BE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def has_half_character(body: bytes) -> bool:
    r"""Return whether a JSON text holds half a character; what is no JSON is left to others.

    >>> has_half_character(b'{"name": "\\ud800"}'), has_half_character(b'{"name": "\\ud83c\\udf4e"}')
    (True, False)
    """
    if _MAY_BE_HALF.search(body) is None:
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


async def read_whole_text(receive: Receive) -> Receive:
    """Read a JSON request to its end and return a receiver that gives it once more.

    Raises:
        RefusedError: 400 if it holds half a character.
    """
    chunks: list[bytes] = []
    message: Message = {"type": "http.request", "more_body": True}
    while message["type"] == "http.request" and message.get("more_body", False):
        message = await receive()
        chunks.append(message.get("body", b""))
    body = b"".join(chunks)
    if has_half_character(body):
        raise RefusedError(400, "A text in the request ends in the middle of a character.")
    waiting = [message] if message["type"] != "http.request" else []
    waiting.append({"type": "http.request", "body": body, "more_body": bool(waiting)})

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
