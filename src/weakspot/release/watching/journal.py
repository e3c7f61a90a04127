"""What a watcher did, one line a turn that did something; lines that were cut off are passed over."""

import json
import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from weakspot.core.record import Record
from weakspot.store import atomic

JOURNAL_FILE = "watch.jsonl"


class RoundKind(StrEnum):
    """What became of a turn."""

    UNCHANGED = "unchanged"
    RUN = "run"
    ERROR = "error"


class WatchRound(Record):
    """One turn.

    Args:
        kind: what became of it.
        time: when it ended, ISO 8601, UTC.
        changed: what had changed since the last turn that succeeded: samples, model, settings, policy; `first look` at first.
        inputs: what samples, model, settings and policy were, as hashes and ids.
        run_id: the run of these inputs.
        is_new_run: whether it was made in this turn.
        n_samples: samples that the project has now.
        n_new_samples: samples that it had not before.
        n_new_embeddings: images that went through the encoder.
        n_new_predictions: images that went through the classifier.
        n_confirmed: findings of the run.
        new: titles of findings that the run before had not; None if they cannot be compared.
        gone: titles of findings that only the run before had; None if they cannot be compared.
        is_kept: whether the policy is kept; None without one.
        verdict: the same in words.
        error: what went wrong, in words.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {
        "n_new_vectors": "n_new_embeddings",
        "n_new_outcomes": "n_new_predictions",
    }

    kind: RoundKind
    time: str
    changed: tuple[str, ...] = ()
    inputs: dict[str, str] = Field(default_factory=dict)
    run_id: str = ""
    is_new_run: bool = False
    n_samples: int = 0
    n_new_samples: int = 0
    n_new_embeddings: int = 0
    n_new_predictions: int = 0
    n_confirmed: int = 0
    new: tuple[str, ...] | None = None
    gone: tuple[str, ...] | None = None
    is_kept: bool | None = None
    verdict: str = ""
    error: str = ""

    @property
    def line(self) -> str:
        """Return the round as one line for people."""
        if self.kind is RoundKind.ERROR:
            return f"{self.time} failed: {self.error}"
        if self.kind is RoundKind.UNCHANGED:
            return f"{self.time} nothing changed; run {self.run_id} stands.{self._judged}"
        made = f"run {self.run_id}" if self.is_new_run else f"run {self.run_id} was there already"
        n_new = f"{self.n_new_embeddings} embeddings, {self.n_new_predictions} predictions computed"
        computed = f"{self.n_new_samples} new samples, {n_new}"
        found = f"{self.n_confirmed} confirmed{self._statuses}"
        return (
            f"{self.time} {' and '.join(self.changed)}: {computed}; {made}: {found}.{self._judged}"
        )

    @property
    def _statuses(self) -> str:
        if self.new is None or self.gone is None:
            return ""
        return f"; new: {_listed(self.new)}; gone: {_listed(self.gone)}"

    @property
    def _judged(self) -> str:
        return f" {self.verdict}" if self.verdict else ""


class WatchJournal:
    """The turns of a project, oldest first; only added to, and only by the one watcher that there is.

    Args:
        folder: the data folder of the project.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL_FILE

    def turns(self) -> Iterator[WatchRound]:
        """Yield all turns; a line that is none, because a machine stopped while it was written, is passed over."""
        for line in self._path.read_bytes().splitlines() if self._path.exists() else []:
            try:
                yield WatchRound.model_validate_json(line)
            except ValidationError:
                continue

    def last_run(self) -> WatchRound | None:
        """Return the last turn that succeeded, None if there is none."""
        found = None
        for turn in self.turns():
            found = turn if turn.kind is RoundKind.RUN else found
        return found

    def add(self, turn: WatchRound) -> None:
        """Write a turn down, on disk, beginning a new line even after one that was cut off."""
        entry = json.dumps(turn.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
        with self._path.open("ab+") as stream:
            stream.seek(0, os.SEEK_END)
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                entry = entry if stream.read(1) == b"\n" else f"\n{entry}"
            stream.write(f"{entry}\n".encode())
            stream.flush()
            os.fsync(stream.fileno())
        atomic.flush_folder(self._path.parent)


def _listed(titles: tuple[str, ...]) -> str:
    return ", ".join(f"“{title}”" for title in titles) if titles else "none"
