"""Calls of models that a run can do without: whatever goes wrong in them is a ModelError."""

from collections.abc import Iterator
from contextlib import contextmanager

from weakspot.core.errors import ModelError, WeakspotError

_SHOWN = 200


@contextmanager
def failing_as_model_error(who: str) -> Iterator[None]:
    """Turn any error of a part into a ModelError, which methods and the loop turn into a note.

    Args:
        who: how the part is called in messages, such as `captioner`.
    """
    try:
        yield
    except ModelError:
        raise
    except WeakspotError as error:
        raise ModelError(
            f"The {who} cannot be used. {error.what}",
            where=error.where,
            given=error.given,
            fix=error.fix,
        ) from error
    except Exception as error:  # a part of another package may raise anything
        raise ModelError(
            f"The {who} failed: {type(error).__name__}: {str(error)[:_SHOWN]}"
        ) from error


def storable(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of characters become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
