"""Labels of a table joined to samples, with what is wrong about each line."""

import difflib
import json
import re
from collections import defaultdict
from functools import cached_property
from pathlib import PurePosixPath

import numpy as np

from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.repair.labels.tables import IMAGE, SAMPLE_ID, LabelLine

SEPARATORS = re.compile(r"[|;]")
NO_LABELS = frozenset({"none", "[]"})

Codes = tuple[int, ...]


class LabelTaker:
    """Takes lines one by one; what was taken becomes labels of the data set."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._rows = {name: row for row, name in enumerate(dataset.sample_ids())}
        self._taken: dict[int, tuple[Codes, int]] = {}
        self._hints: dict[str, str] = {}

    def take(self, line: LabelLine) -> str:
        row = self._row(line)
        if isinstance(row, str):
            return row
        codes = self._codes(line.label)
        if isinstance(codes, str):
            return codes
        return self._contradiction(row, codes) or self._earlier(row, codes, line.number)

    def labelled(self) -> Dataset:
        """Return the data set with the labels that were taken."""
        rows = np.array(sorted(self._taken), dtype=np.int64)
        codes = [self._taken[row][0] for row in rows.tolist()]
        if not len(rows):
            return self._dataset
        if self._dataset.task is Task.SINGLE_LABEL:
            return self._dataset.with_labels(rows, [code for (code,) in codes])
        return self._dataset.with_labels(rows, codes)

    def _row(self, line: LabelLine) -> int | str:
        name, image = line.cells.get(SAMPLE_ID, ""), line.cells.get(IMAGE, "")
        by_id = self._rows.get(name) if name else None
        if by_id is not None and self._dataset.locations(np.array([by_id]))[0] in (None, image):
            return by_id
        by_image = self._with_image(image) if image else []
        if by_id is not None:
            other = [row for row in by_image if row != by_id]
            return (
                f"the sample {name!r} has another image than {image!r}"
                if by_image and other == by_image
                else by_id
            )
        if len(by_image) == 1:
            return by_image[0]
        if by_image:
            return (
                f"{len(by_image)} samples have an image called {image!r}; add the column sample_id"
            )
        return f"there is no sample {name or image!r}" if name or image else "it names no sample"

    def _with_image(self, image: str) -> list[int]:
        """Return rows by location, else by file name; those of the pool if there are any."""
        exact, by_name = self._places
        slashed = image.replace("\\", "/")
        rows = (
            exact.get(image) or exact.get(slashed) or by_name.get(PurePosixPath(slashed).name, [])
        )
        pool = SPLIT_ORDER.index(Split.POOL)
        return [row for row in rows if self._dataset.splits[row] == pool] or rows

    @cached_property
    def _places(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        exact: dict[str, list[int]] = defaultdict(list)
        by_name: dict[str, list[int]] = defaultdict(list)
        for row, location in enumerate(self._dataset.locations()):
            if location is not None:
                exact[location].append(row)
                by_name[PurePosixPath(location.replace("\\", "/")).name].append(row)
        return dict(exact), dict(by_name)

    def _codes(self, label: str) -> Codes | str:
        names = [label] if self._dataset.task is Task.SINGLE_LABEL else self._listed(label)
        if not names and label.casefold() not in NO_LABELS:
            return f"the label {label!r} names no class"
        unknown = [name for name in names if self._code(name) is None]
        if unknown:
            return " and ".join(f"there is no class {name!r}{self._hint(name)}" for name in unknown)
        return tuple(sorted({code for name in names if (code := self._code(name)) is not None}))

    def _listed(self, label: str) -> list[str]:
        if self._code(label) is not None:
            return [label]
        if label.casefold() in NO_LABELS:
            return []
        if label.startswith("["):
            try:
                return [str(name) for name in json.loads(label)]
            except (ValueError, RecursionError):
                return [label]
        return [name.strip() for name in SEPARATORS.split(label) if name.strip()]

    def _code(self, name: str) -> int | None:
        return self._known.get(name, self._known_loosely.get(name.casefold()))

    @cached_property
    def _known(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self._dataset.class_names)}

    @cached_property
    def _known_loosely(self) -> dict[str, int]:
        """Return codes by name without regard to capitals, where that leaves no doubt."""
        by_name: dict[str, list[int]] = defaultdict(list)
        for name, code in self._known.items():
            by_name[name.casefold()].append(code)
        return {name: codes[0] for name, codes in by_name.items() if len(codes) == 1}

    def _hint(self, name: str) -> str:
        if name not in self._hints:
            near = difflib.get_close_matches(name.casefold(), list(self._known_loosely), n=1)
            shown = self._dataset.class_names[self._known_loosely[near[0]]] if near else ""
            self._hints[name] = f" (did you mean {shown!r}?)" if shown else ""
        return self._hints[name]

    def _contradiction(self, row: int, codes: Codes) -> str:
        """Return why a sample may not get a label; the one that it has already is always welcome."""
        dataset = self._dataset
        name = dataset.sample_ids(np.array([row]))[0]
        is_labelled = bool(dataset.is_labelled[row])
        if is_labelled and tuple(np.flatnonzero(dataset.label_matrix[row]).tolist()) == codes:
            return ""
        split = SPLIT_ORDER[int(dataset.splits[row])]
        if split is not Split.POOL:
            return f"the sample {name!r} is in the {split.value} split, and only pool samples are labelled here"
        if is_labelled:
            present = [
                dataset.class_names[code] for code in np.flatnonzero(dataset.label_matrix[row])
            ]
            return f"the sample {name!r} is labelled {' and '.join(map(repr, present)) or 'none'} already"
        return ""

    def _earlier(self, row: int, codes: Codes, number: int) -> str:
        """Take a label, or return which line said otherwise before."""
        before, line = self._taken.setdefault(row, (codes, number))
        return "" if before == codes else f"line {line} gives the same sample another label"
