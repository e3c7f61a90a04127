"""Headers that every answer carries."""

from collections.abc import Iterable, Iterator

Header = tuple[bytes, bytes]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
FORBIDDEN_POWERS = ("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "microphone", "payment", "usb")
EVERYWHERE = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": ", ".join(f"{power}=()" for power in FORBIDDEN_POWERS),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
STORED = "private, max-age=31536000, immutable"


def completed(headers: Iterable[Header], path: str, *, is_fine: bool = True) -> list[Header]:
    """Return the headers of an answer with those that it has not said itself.

    Args:
        headers: of the answer.
        path: below the server's root.
        is_fine: whether it is no refusal.
    """
    given = list(headers)
    said = {name.lower() for name, _ in given}
    return given + [(name, value) for name, value in _wanted(path, is_fine=is_fine) if name not in said]


def _wanted(path: str, *, is_fine: bool) -> Iterator[Header]:
    for name, value in EVERYWHERE.items():
        yield name.encode(), value.encode()
    yield b"cache-control", _caching(path, is_fine=is_fine).encode()


def _caching(path: str, *, is_fine: bool) -> str:
    """Return how long browsers keep an answer: names of assets change with their content, everything else is asked for again."""
    if path.startswith("/api/") or not is_fine:
        return "no-store"
    return STORED if path.startswith("/assets/") else "no-cache"
