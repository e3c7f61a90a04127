"""The demo's samples: apples and pears photographed in shops, with one kind of apple made rare in training."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.app.example_data import GroceryPhotograph
from weakspot.core.dataset import Split
from weakspot.core.seeding import generator

HIDDEN_KIND = "Granny-Smith"
HIDDEN_CLASS = "Apple"
KINDS = ("Granny-Smith", "Pink-Lady", "Red-Delicious", "Royal-Gala", "Anjou", "Conference", "Kaiser")
RARE_IN_TRAINING = 6
COUNTS = {Split.TRAIN: 30, Split.VALIDATION: 20, Split.TEST: 9}
HIDDEN_COUNTS = {Split.TRAIN: RARE_IN_TRAINING, Split.VALIDATION: 44, Split.TEST: 30}


@dataclass(frozen=True, kw_only=True)
class DemoSample:
    """One photograph of the demo and what is known of it.

    Args:
        path: relative to the project folder.
        label: the class that the classifier is to tell.
        kind: the hidden kind; no method ever sees it.
        split: what it is for.
    """

    path: str
    label: str
    kind: str
    split: Split


def choose_samples(photographs: Sequence[GroceryPhotograph], seed: int) -> list[tuple[DemoSample, bytes]]:
    """Pick photographs of every kind for every split, the same for the same seed."""
    chosen: list[tuple[DemoSample, bytes]] = []
    for kind in KINDS:
        shuffled = [photo for photo in photographs if photo.fine == kind]
        order = generator(seed, "demo", kind).permutation(len(shuffled))
        numbers = iter(order.tolist())
        for split, count in (HIDDEN_COUNTS if kind == HIDDEN_KIND else COUNTS).items():
            for number in [number for number, _ in zip(numbers, range(count), strict=False)]:
                photo = shuffled[number]
                path = f"photos/{split.value}/{photo.coarse.lower()}/{kind.lower()}-{number:03d}.jpg"
                chosen.append((DemoSample(path=path, label=photo.coarse.lower(), kind=kind, split=split), photo.data))
    return chosen


def write_samples(samples: Sequence[tuple[DemoSample, bytes]], folder: Path) -> None:
    """Write pictures and a manifest; the hidden kind goes to a file of its own that nothing reads but the final check."""
    for sample, data in samples:
        target = folder / sample.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    _write_table(
        folder / "manifest.csv", ["path", "label", "split"], [(item.path, item.label, item.split.value) for item, _ in samples]
    )
    _write_table(folder / "hidden_kinds.csv", ["path", "kind"], [(item.path, item.kind) for item, _ in samples])


def _write_table(path: Path, header: list[str], rows: Sequence[tuple[str, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def hidden_kinds(folder: Path) -> dict[str, str]:
    """Return the hidden kind of every sample by file name."""
    with (folder / "hidden_kinds.csv").open(newline="", encoding="utf-8") as stream:
        return {Path(row["path"]).as_posix(): row["kind"] for row in csv.DictReader(stream)}
