"""Labels that people give: which samples are worth it, tables of them, and joining them to samples."""

import csv
import difflib
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import DataError, raise_all
from weakspot.core.failures import predicted_classes, predicted_labels, top_classes
from weakspot.core.repairs import LabellingRequest
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.store.atomic import write_bytes
from weakspot.store.csv_tables import csv_text, plain_cell

N_LIKELIEST = 2


def chosen_for(
    rows: IntArray, slices: Sequence[FailureSlice], samples: SampleSet
) -> dict[int, str]:
    """Return by row the title of the slice that it is most likely a member of; rows that are in no slice are left out.

    A row is in a slice if the rule holds and the class, as far as the classifier tells, is one of the two likeliest. Of several
    slices it is the one whose class is the likeliest, else the first.
    """
    best = np.full(len(rows), -1.0)
    titles: dict[int, str] = {}
    for found in slices:
        belief = np.where(found.rule.members(samples, rows), _belief(found, samples, rows), -1.0)
        for place in np.flatnonzero(belief > best):
            titles[int(rows[place])] = found.title
        best = np.maximum(best, belief)
    return titles


def _belief(found: FailureSlice, samples: SampleSet, rows: IntArray) -> IntArray:
    """Return how likely the class of a slice is for every row, -1 if it is out of the question and 0 if nobody can tell."""
    dataset = samples.dataset
    if dataset.probabilities is None:
        return np.zeros(len(rows), dtype=np.int64)
    probabilities = np.nan_to_num(np.asarray(dataset.probabilities)[rows], nan=0.0)
    code = dataset.class_code(found.class_name)
    possible: BoolArray = np.ones(len(rows), dtype=np.bool_)
    if dataset.task is Task.SINGLE_LABEL:
        possible = np.any(top_classes(probabilities, N_LIKELIEST) == code, axis=1)
    return np.where(possible, probabilities[:, code], -1.0)


SAMPLE_ID = "sample_id"
IMAGE = "image"
LABEL = "label"
NAMES: Mapping[str, tuple[str, ...]] = {
    SAMPLE_ID: ("sample_id", "sample id"),
    IMAGE: ("image", "picture", "path", "location", "image_path", "file", "filename", "file_name"),
    LABEL: ("label", "labels"),
}
DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, kw_only=True)
class LabelLine:
    """One line of a table.

    Args:
        number: its number in the file, for messages.
        cells: what it holds, by column; the columns that matter have the names above, whatever they are called in the file.
        fault: what is wrong with it, empty if it can be read.
    """

    number: int
    cells: Mapping[str, str]
    fault: str = ""

    @property
    def label(self) -> str:
        """Return the label as given, empty if there is none yet."""
        return self.cells.get(LABEL, "")


def read_table(path: Path) -> tuple[tuple[str, ...], tuple[LabelLine, ...]]:
    """Return the columns and lines of a table with the columns label and sample_id or image; the delimiter is recognised.

    Raises:
        DataError: if it cannot be read, or lacks these columns.
    """
    text = _text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(
        DELIMITERS,
        key=lambda one: len(set(_known(next(csv.reader([first], delimiter=one), []))) & set(NAMES)),
    )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        columns = _known(
            next((fields for fields in reader if any(field.strip() for field in fields)), [])
        )
        _refuse_columns(columns, path)
        lines = tuple(
            _line(reader.line_num, fields, columns)
            for fields in reader
            if any(field.strip() for field in fields)
        )
    except csv.Error as error:
        raise DataError(
            f"The table cannot be read: {error}.",
            where=f"{path}, line {reader.line_num}",
            fix="Correct the quotes there.",
        ) from error
    return columns, lines


def table_bytes(columns: Sequence[str], lines: Iterable[Mapping[str, str]]) -> bytes:
    """Return a CSV table, marked as UTF-8 where that matters."""
    text = csv_text(columns, ([line.get(column, "") for column in columns] for line in lines))
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            "The table is not UTF-8 text.",
            where=str(path),
            fix="Save it as CSV with the encoding UTF-8.",
        ) from error
    except OSError as error:
        raise DataError(
            f"The table cannot be read: {error.strerror}.",
            where=str(path),
            fix="Give the CSV file.",
        ) from error


def _known(names: Sequence[str]) -> tuple[str, ...]:
    """Return column names, those that matter under one name each; where several would do, the one that is listed first."""
    given = [name.strip() for name in names]
    lowered = [name.lower() for name in given]
    for role, accepted in NAMES.items():
        found = next((name for name in accepted if name in lowered), None)
        given = [role if name == found else old for name, old in zip(lowered, given, strict=True)]
    return tuple(given)


def _refuse_columns(columns: Sequence[str], path: Path) -> None:
    repeated = [name for name in NAMES if columns.count(name) > 1]
    if repeated:
        raise DataError(
            "A column occurs twice.", where=str(path), given=repeated, fix="Leave one of them."
        )
    if LABEL not in columns or not {SAMPLE_ID, IMAGE} & set(columns):
        raise DataError(
            "A table of labels needs the column label and one of sample_id and image.",
            where=str(path),
            given=list(columns),
            fix="Keep the header line of the list that was written.",
        )


def _line(number: int, fields: Sequence[str], columns: Sequence[str]) -> LabelLine:
    cells = dict(zip(columns, (plain_cell(field.strip()) for field in fields), strict=False))
    surplus = any(field.strip() for field in fields[len(columns) :])
    fault = f"it has {len(fields)} fields where the header has {len(columns)}" if surplus else ""
    return LabelLine(number=number, cells=cells, fault=fault)


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


LIST_FILE = "to_label.csv"
IMAGE_FILE = "to_label.txt"
SUGGESTED = "suggested_class"
WHY = "why"
COLUMNS = (SAMPLE_ID, IMAGE, SUGGESTED, WHY, LABEL)
MAX_LISTED = 200


def write_labelling_list(
    folder: Path,
    rows: IntArray,
    samples: SampleSet,
    slices: Sequence[FailureSlice],
    *,
    roles: Mapping[int, str],
) -> LabellingRequest:
    """Write the samples to label as a CSV table and as a plain list of images; labels filled in before are kept.

    Args:
        folder: where to, usually the run's folder.
        rows: the samples to label.
        samples: the data set they are rows of.
        slices: what is repaired; a row inside one of them is listed with its title.
        roles: what else a row was chosen for, by row: the strategy.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    wanted = _lines(rows, samples, slices, roles)
    merged = write_label_table(folder / LIST_FILE, COLUMNS, wanted)
    images = [line[IMAGE] for line in wanted if len(line[IMAGE].splitlines()) == 1]
    write_bytes(folder / IMAGE_FILE, "".join(f"{image}\n" for image in images).encode())
    n_labelled = sum(bool(line[LABEL]) for line in merged[: len(wanted)])
    return LabellingRequest(
        file=LIST_FILE, image_list=IMAGE_FILE, n_samples=len(wanted), n_labelled=n_labelled
    )


def write_label_table(
    path: Path, columns: Sequence[str], wanted: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """Write lines of samples to label, and return them with what people wrote into the file before, and the labelled lines of others.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    old_columns, old = read_table(path) if path.exists() else (tuple(columns), ())
    raise_all(
        [f"Line {line.number}: {line.fault}." for line in old if line.fault],
        error=DataError,
        what="There is a labelling list already, and it cannot be read:",
        where=str(path),
        fix="Correct these lines, or move the file elsewhere.",
    )
    merged = _merge(wanted, old, columns)
    every = (*columns, *(name for name in old_columns if name not in columns))
    if not path.exists() or merged != [dict(line.cells) for line in old]:
        write_bytes(path, table_bytes(every, merged))
    return merged


def read_labels(path: Path, dataset: Dataset) -> Dataset:
    """Return the data set with the labels of a table, which may come from another tool; samples without one stay unlabelled.

    Lines are joined by sample id, else by image. Several labels of a sample are separated by `|` or `;`, and `none` says that a
    sample of a multi-label task has none of them. Only pool samples are labelled so.

    Raises:
        DataError: with every line that cannot be used.
    """
    taker = LabelTaker(dataset)
    faults = [
        (line.number, line.fault or taker.take(line))
        for line in read_table(path)[1]
        if line.label or line.fault
    ]
    problems = [f"Line {number}: {fault}." for number, fault in faults if fault]
    if len(problems) > MAX_LISTED:
        problems = [*problems[:MAX_LISTED], f"And {len(problems) - MAX_LISTED} more lines."]
    raise_all(
        problems,
        error=DataError,
        what="Some labels cannot be used:",
        where=str(path),
        fix="Correct these lines; leave the label empty where there is none yet.",
    )
    return taker.labelled()


def _lines(
    rows: IntArray, samples: SampleSet, slices: Sequence[FailureSlice], roles: Mapping[int, str]
) -> list[dict[str, str]]:
    dataset = samples.dataset
    titles = chosen_for(rows, slices, samples)
    columns = (dataset.sample_ids(rows), dataset.locations(rows), suggested_classes(dataset, rows))
    return [
        {
            SAMPLE_ID: name,
            IMAGE: location or "",
            SUGGESTED: likely,
            WHY: f"{title} ({role})" if title and role else title or role,
            LABEL: "",
        }
        for row, name, location, likely in zip(rows.tolist(), *columns, strict=True)
        for title, role in [(titles.get(row, ""), roles.get(row, ""))]
    ]


def suggested_classes(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return the prediction of every row, empty where nothing is known."""
    names = dataset.class_names
    if not dataset.has_predictions:
        return [""] * len(rows)
    if dataset.task is Task.MULTI_LABEL:
        predicted = predicted_labels(dataset, rows)
        return [
            "|".join(name for name, is_said in zip(names, line, strict=True) if is_said)
            for line in predicted
        ]
    return [names[code] if code >= 0 else "" for code in predicted_classes(dataset, rows).tolist()]


def _merge(
    wanted: Sequence[dict[str, str]], old: Sequence[LabelLine], columns: Sequence[str]
) -> list[dict[str, str]]:
    """Return the wanted lines with what people wrote before, then the lines of others that were labelled."""
    before = {line.cells.get(SAMPLE_ID, ""): dict(line.cells) for line in old}
    lines = []
    for line in wanted:
        written = before.pop(line[SAMPLE_ID], {})
        added = {
            name: cell
            for name, cell in written.items()
            if name not in columns or (name == LABEL and cell)
        }
        lines.append({**line, **added})
    return [*lines, *(written for written in before.values() if written.get(LABEL))]
