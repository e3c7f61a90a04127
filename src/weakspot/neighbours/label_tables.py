"""Labels that several people may have given, as a table with one line a sample."""

from dataclasses import dataclass, field
from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.neighbours.bundle import Written
from weakspot.neighbours.manifest_files import labels_written


@dataclass
class AgreedLabels:
    """Collects what people said of samples; a sample of which they said different things has no label."""

    _said: dict[tuple[str, str], set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, labels: tuple[str, ...], *, sample_id: str, path: str) -> None:
        """Note what one person said; nothing, if they did not say."""
        answers = self._said.setdefault((sample_id, path), set())
        if labels:
            answers.add(tuple(sorted(labels)))

    def written(self, source: Path, target: Path) -> Written:
        """Write the table of all labels that nobody contradicted.

        Raises:
            DataError: if there are none.
        """
        agreed = {place: next(iter(said)) for place, said in self._said.items() if len(said) == 1}
        n_disputed = sum(len(said) > 1 for said in self._said.values())
        if not agreed:
            disputed = f" People disagree on {n_disputed} samples." if n_disputed else ""
            raise DataError(f"There are no labels yet.{disputed}", where=str(source), fix="Label some samples and export again.")
        is_many = any(len(labels) > 1 for labels in agreed.values())
        columns: dict[str, list[object]] = {
            "sample_id": [name or None for name, _ in agreed],
            "path": [path or None for _, path in agreed],
            "labels" if is_many else "label": [list(given) if is_many else given[0] for given in agreed.values()],
        }
        written = labels_written(target, columns, left_out=len(self._said) - len(agreed) - n_disputed)
        if not n_disputed:
            return written
        sentence = f"People disagree on {n_disputed} samples, which were left out. {written.sentence}"
        return Written(files=written.files, sentence=sentence)
