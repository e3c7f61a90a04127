"""Collecting everything that is wrong with a source, so that it is said at once."""

from dataclasses import dataclass, field

from weakspot.core.errors import DataError, raise_all

MAX_SHOWN = 20
_MAX_ROWS_SHOWN = 3


@dataclass
class _Alike:
    n_found: int = 0
    first_rows: list[str] = field(default_factory=list)


@dataclass
class Problems:
    """Problems met so far; alike ones are counted together and only the first are kept, so memory stays bounded."""

    _kinds: dict[str, _Alike] = field(default_factory=dict)
    _n_more: int = 0

    def add(self, message: str, *, row: str | None = None) -> None:
        if message not in self._kinds and len(self._kinds) >= MAX_SHOWN:
            self._n_more += 1
            return
        alike = self._kinds.setdefault(message, _Alike())
        alike.n_found += 1
        if row is not None and len(alike.first_rows) < _MAX_ROWS_SHOWN:
            alike.first_rows.append(row)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def raise_if_any(self, *, what: str, where: str, fix: str | None = None) -> None:
        """Raise one DataError that lists them all."""
        listed = [_sentence(message, alike) for message, alike in self._kinds.items()]
        if self._n_more:
            listed.append(f"and {self._n_more} more like these.")
        raise_all(listed, error=DataError, what=what, where=where, fix=fix)


def _sentence(message: str, alike: _Alike) -> str:
    if not alike.first_rows:
        return message
    rows = ", ".join(alike.first_rows)
    if alike.n_found == len(alike.first_rows):
        return f"{message} ({rows})"
    return f"{message} ({alike.n_found} times, first: {rows})"
