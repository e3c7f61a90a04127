"""What is sent as JSON must be text: half a character can be written there, but neither kept nor sent back."""

import json
import re

from starlette.types import Message, Receive

from weakspot.web.problems import RefusedError

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


async def whole_text(receive: Receive) -> Receive:
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
