"""What an experiment has measured so far, so that an interrupted one goes on with the next unit."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from repair_results.figures import Figures


class UnitJournal:
    """A file with one line a unit, written as soon as the unit is done.

    Args:
        path: the file.
        key: identifies what is run; lines of another key are passed over.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key
        self._known = dict(self._read())

    def known(self, unit: str) -> tuple[Figures, ...] | None:
        """Return what an earlier, interrupted run measured."""
        return self._known.get(unit)

    def add(self, unit: str, figures: tuple[Figures, ...]) -> None:
        """Keep a unit."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = {
            "key": self._key,
            "unit": unit,
            "figures": [one.model_dump(mode="json") for one in figures],
        }
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def finish(self) -> None:
        """Forget the journal: the results are written."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Iterator[tuple[str, tuple[Figures, ...]]]:
        """Yield the lines that are whole; a unit whose line was cut off by a kill is measured again."""
        for line in (
            self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        ):
            try:
                entry = json.loads(line)
                figures = tuple(Figures.model_validate(one) for one in entry["figures"])
                unit, key = entry["unit"], entry["key"]
            except (json.JSONDecodeError, ValidationError, KeyError, TypeError):
                continue
            if key == self._key:
                yield unit, figures
