"""How large a request may be: by what it announces, and by what really comes."""

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

MEBIBYTE = 1024 * 1024
LARGEST = 1 * MEBIBYTE
LARGEST_UPLOAD = 20 * MEBIBYTE
UPLOADS = "/api/uploads/"


def largest_for(path: str) -> int:
    """Return how many bytes a request to a path may have."""
    return LARGEST_UPLOAD if path.startswith(UPLOADS) else LARGEST


def is_too_large(announced: str | None, largest: int) -> bool:
    """Return whether a request announces too much; an announcement that is no number is left to the server.

    >>> is_too_large("12", 10), is_too_large(None, 10)
    (True, False)
    """
    return announced is not None and announced.isdecimal() and int(announced[:20]) > largest


def limited(receive: Receive, largest: int) -> Receive:
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
