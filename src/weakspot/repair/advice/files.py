"""The files of an advice: what to label, what to collect, which labels to look at. They lie in the folder `next` of the project."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset
from weakspot.media.locations import shown_location
from weakspot.repair.advice.kinds import ImageKind
from weakspot.repair.advice.wishes import Wish
from weakspot.repair.advice.wording import expectation, number_words
from weakspot.repair.export import keys_of, shown_labels
from weakspot.repair.labels.requests import LIST_FILE, suggested_classes, write_label_table
from weakspot.repair.labels.tables import IMAGE, LABEL, SAMPLE_ID, table_bytes
from weakspot.store.atomic import write_bytes

NEXT_FOLDER = "next"
LABEL_FILE = f"{NEXT_FOLDER}/{LIST_FILE}"
COLLECT_PAGE = f"{NEXT_FOLDER}/to_collect.md"
SUSPECT_FILE = f"{NEXT_FOLDER}/labels_to_check.csv"
LABEL_COLUMNS = (
    "finding_id",
    "finding",
    "rank",
    SAMPLE_ID,
    IMAGE,
    "key",
    "suggested_class",
    "known_label",
    LABEL,
)
SUSPECT_COLUMNS = (
    "finding_id",
    "finding",
    SAMPLE_ID,
    IMAGE,
    "key",
    "split",
    LABEL,
    "prediction",
)
N_EXAMPLES = 8
N_WORDS = 3


def write_label_list(folder: Path, wishes: Sequence[Wish], dataset: Dataset) -> None:
    """Write the pool images to label, best first by finding, each once; what people filled in before is kept.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    lines: dict[str, dict[str, str]] = {}
    for wish in wishes:
        rows = wish.choice.rows
        columns = (
            dataset.sample_ids(rows),
            _places(rows, dataset),
            keys_of(rows, dataset),
            suggested_classes(dataset, rows),
            shown_labels(rows, dataset),
        )
        for rank, cells in enumerate(zip(*columns, strict=True), 1):
            first = (wish.kind.subject, wish.kind.title, str(rank))
            line = dict(zip(LABEL_COLUMNS, (*first, *cells, ""), strict=True))
            lines.setdefault(line[SAMPLE_ID], line)
    path = folder / LABEL_FILE
    if not lines and not path.exists():
        return
    if not write_label_table(path, LABEL_COLUMNS, list(lines.values())):
        path.unlink()


def write_suspects(folder: Path, suspects: Mapping[ImageKind, IntArray], dataset: Dataset) -> None:
    """Write the evaluation samples whose label is suspect; without any there is no such file."""
    path = folder / SUSPECT_FILE
    if not suspects:
        path.unlink(missing_ok=True)
        return
    lines = []
    for kind, rows in suspects.items():
        columns = (
            dataset.sample_ids(rows),
            _places(rows, dataset),
            keys_of(rows, dataset),
            [SPLIT_ORDER[code].value for code in dataset.splits[rows].tolist()],
            shown_labels(rows, dataset),
            suggested_classes(dataset, rows),
        )
        lines += [
            dict(zip(SUSPECT_COLUMNS, (kind.subject, kind.title, *cells), strict=True))
            for cells in zip(*columns, strict=True)
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, table_bytes(SUSPECT_COLUMNS, lines))


def write_collect_page(folder: Path, wishes: Sequence[Wish], dataset: Dataset) -> None:
    """Write a page for those who collect: in words, how many, example images, what is missing; without a wish there is none."""
    path = folder / COLLECT_PAGE
    if not wishes:
        path.unlink(missing_ok=True)
        return
    parts = [
        "# What to collect",
        "",
        "Kinds of images that the classifier gets wrong and has seen too few of. New images must be new: not from the sets that the",
        "classifier is measured on, and not many of one object, place or moment.",
    ]
    for wish in wishes:
        parts += ["", *_section(wish, dataset)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, ("\n".join(parts) + "\n").encode())


def _section(wish: Wish, dataset: Dataset) -> list[str]:
    kind = wish.kind
    n_known = "unknown" if kind.n_known is None else f"{kind.n_known:,}"
    lines = [
        f"## {kind.title}",
        "",
        f"- **How many:** {number_words(wish)}, of the class “{kind.class_name}”; {expectation(wish)}.",
        f"- **What they show:** {_words(kind)}",
        f"- **In training now:** {n_known} such images, of {kind.n_class_training:,} of the class.",
        f"- **Wrong now:** {kind.n_failed:,} of {kind.n_evaluated:,} such evaluation images.",
    ]
    if kind.words_there:
        shown = ", ".join(kind.words_there[:N_WORDS])
        lines.append(f"- **Not these:** training has images that show: {shown}.")
    if wish.choice.n_candidates:
        lines.append(
            f"- **In the pool:** {wish.choice.n_candidates:,} candidates, the best in {Path(LABEL_FILE).name}."
        )
    examples = kind.rows[np.argsort(~kind.failed, kind="stable")][:N_EXAMPLES]
    places = [
        place or key
        for place, key in zip(_places(examples, dataset), keys_of(examples, dataset), strict=True)
    ]
    if places:
        lines += ["- **Like these** (of the half of the evaluation images that may be looked at):"]
        lines += [f"  - `{place}`" for place in places]
    return lines


def _words(kind: ImageKind) -> str:
    if kind.words:
        return ", ".join(f"“{word}”" for word in kind.words[:N_WORDS]) + "."
    if kind.slice_ is not None:
        return kind.slice_.rule.sentence
    return "no words are known; see the examples."


def _places(rows: IntArray, dataset: Dataset) -> list[str]:
    return [shown_location(place) if place else "" for place in dataset.locations(rows)]
