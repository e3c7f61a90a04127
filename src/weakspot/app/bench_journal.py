"""What a benchmark has measured so far, so that an interrupted one goes on where it stopped."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from weakspot.benchmark.scores import MethodScore

JOURNAL = "scores.jsonl"


class BenchJournal:
    """A file of scores, one line each, written as soon as they are known.

    Args:
        folder: where it is kept.
        key: identifies what is run; lines of another key are passed over.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder / JOURNAL
        self._key = key
        self._known = dict(self._read())

    def known(self, method: str, source: str, kind: str, number: int) -> MethodScore | None:
        """Return the score of an earlier, interrupted benchmark."""
        return self._known.get((method, source, kind, number))

    def add(self, score: MethodScore) -> None:
        """Keep a score."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"key": self._key, "score": score.model_dump(mode="json")}) + "\n")

    def finish(self) -> None:
        """Forget the journal: the results are written."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Mapping[tuple[str, str, str, int], MethodScore]:
        """Read the lines that are whole; a line that was cut off by a kill is measured again."""
        found: dict[tuple[str, str, str, int], MethodScore] = {}
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        for line in lines:
            try:
                entry = json.loads(line)
                score = MethodScore.model_validate(entry["score"])
            except (json.JSONDecodeError, ValidationError, KeyError, TypeError):
                continue
            if entry.get("key") == self._key:
                found[score.method, score.source, score.kind, score.number] = score
        return found
