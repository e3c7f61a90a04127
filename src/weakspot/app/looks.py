"""The log of questions that were put to a confirmation half by hand: each is a test that counts."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from weakspot.core.record import Record
from weakspot.store.project import ProjectStore

HYPOTHESES_FILE = "hypotheses.jsonl"


class Look(Record):
    """One question.

    Args:
        class_name: the class, as problems call it.
        phrase: the words that were asked.
        measured_on: digest of the samples that answered.
        p_value: what they said: Fisher's exact test that samples above the threshold fail no more often.
        error_score: where the threshold was chosen.
        held_out_error_score: on the samples that answered.
        threshold: similarity from which on a sample was meant; None for the one that is best on the discovery half.
        by: who asked; empty for the command line.
    """

    class_name: str
    phrase: str
    measured_on: str
    p_value: float
    error_score: float
    held_out_error_score: float
    threshold: float | None = None
    by: str = ""

    @property
    def question(self) -> tuple[str, str, float | None]:
        """Return what makes two looks the same question."""
        return self.class_name, self.phrase, rounded(self.threshold)


def rounded(threshold: float | None) -> float | None:
    """Return a threshold with the digits that make it another question."""
    return None if threshold is None else round(threshold, 6)


class LookLog:
    """All questions of a project, oldest first, in `hypotheses.jsonl`; whoever writes holds the project's lock.

    Args:
        store: the project.
    """

    def __init__(self, store: ProjectStore) -> None:
        self._path = store.root / HYPOTHESES_FILE

    def at(self, measured_on: str) -> list[Look]:
        """Return the different questions that these samples have had to answer; of the same question the newest answer."""
        found: dict[tuple[str, str, float | None], Look] = {}
        for line in self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []:
            look = _parsed(line)
            if look is not None and look.measured_on == measured_on:
                found[look.question] = look
        return list(found.values())

    def add(self, looks: Sequence[Look]) -> None:
        """Write questions down."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._path.open("a", encoding="utf-8") as stream:
            for look in looks:
                entry = look.model_dump(mode="json", exclude_defaults=True)
                named = {"time": now, "class": entry.pop("class_name"), **entry}
                stream.write(json.dumps(named, ensure_ascii=False) + "\n")


def _parsed(line: str) -> Look | None:
    """Return a line as a look, None if it is none: a line that was cut off by a full disk must not end everything."""
    try:
        entry = json.loads(line)
        fields = {name: entry[name] for name in Look.model_fields if name in entry}
        return Look(**{"class_name": entry["class"], "error_score": 0.0, "held_out_error_score": 0.0, "p_value": 1.0, **fields})
    except (ValueError, KeyError, TypeError):
        return None
