"""The slice discovery problems of dcbench, read from tables that dcbench itself writes; none of its pickles is opened.

dcbench keeps its index of problems as YAML with Python objects, and predictions as DataPanels (`.mk`) whose numbers are files of
`torch.save`. Both can run code when they are opened. A few lines with dcbench (docs/guide/reproduce.md) write them as CSV, in
the same places.
"""

import ast
import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import DataSet

INDEX = "slice_discovery/problems.csv"
ARTIFACTS = "slice_discovery/problem/artifacts"
TABLES = ("val_predictions", "test_predictions", "test_slices")
EXPORT = "dcbench keeps this as {}, which can run code and is not opened; the lines in docs/guide/reproduce.md write it as CSV with dcbench"
PANEL = EXPORT.format("a DataPanel (.mk) of pickled tensors")
DCBENCH = DataSet(
    name="dcbench",
    files={
        INDEX: f"the problems, one a line; {EXPORT.format('problems.yaml with Python objects')}",
        f"{ARTIFACTS}/*/val_predictions.csv": f"columns id, target, probs_0, probs_1 of a problem; {PANEL}",
        f"{ARTIFACTS}/*/test_predictions.csv": "the same of its test images",
        f"{ARTIFACTS}/*/test_slices.csv": "columns id, slices_0, slices_1 and so on",
    },
)
COLUMNS = ("dataset", "slice_category", "slice_names", "target_name")
IMAGES: Mapping[str, str] = {
    "celeba": "img_align_celeba/{id}",
    "imagenet": "train/<WordNet id>/{id}.JPEG or val/<WordNet id>/{id}.JPEG",
}
N_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class SliceProblem:
    """One problem of the index.

    Args:
        key: such as `p_118045`.
        base: the data set of its images, `celeba` or `imagenet`.
        category: `correlation`, `rare` or `noisy_label`.
        target: what its classifier tells.
        slice_names: of the true slices.
        folder: with its tables.
    """

    key: str
    base: str
    category: str
    target: str
    slice_names: tuple[str, ...]
    folder: Path


@dataclass(frozen=True, kw_only=True, eq=False)
class SliceTables:
    """What a problem holds: validation images first, then test images.

    Args:
        paths: of the images [n].
        targets: 0 or 1 [n].
        probabilities: [n, 2].
        inside: which test images are in which true slice; no validation image is [n, k].
        n_validation: how many are for validation.
    """

    paths: tuple[Path, ...]
    targets: IntArray
    probabilities: FloatArray
    inside: BoolArray
    n_validation: int


def read_problems(folder: Path) -> tuple[SliceProblem, ...]:
    """Return the problems whose tables are there, in the order of the index.

    Raises:
        DataError: if the index cannot be read, or describes none of the problems that are there.
    """
    path = folder / INDEX
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
        names = list(reader.fieldnames or ())
    lacking = [name for name in COLUMNS if name not in names]
    if lacking or not rows:
        raise DataError(
            "The index of problems lacks columns or lines.",
            where=str(path),
            given=lacking or len(rows),
            fix='Write it with dcbench.tasks["slice_discovery"].problems.df.to_csv.',
        )
    there = {
        one.name
        for one in (folder / ARTIFACTS).iterdir()
        if all((one / f"{table}.csv").is_file() for table in TABLES)
    }
    found = [
        SliceProblem(
            key=row[names[0]],
            base=row["dataset"],
            category=row["slice_category"],
            target=row["target_name"],
            slice_names=_listed(row["slice_names"], path),
            folder=folder / ARTIFACTS / row[names[0]],
        )
        for row in rows
        if row[names[0]] in there
    ]
    if not found:
        raise DataError(
            "The index describes none of the problems whose tables are there.",
            where=str(path),
            given=sorted(there)[:N_SHOWN],
            fix=f"A problem has {', '.join(f'{one}.csv' for one in TABLES)} in {ARTIFACTS}, in a folder of its name.",
        )
    return tuple(found)


def _listed(text: str, path: Path) -> tuple[str, ...]:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise DataError(
            "The index holds no list of slices.",
            where=f"{path}, slice_names",
            given=text[:80],
            fix="It reads ['cart.n.01'].",
        ) from error
    return tuple(map(str, found)) if isinstance(found, list | tuple) else (str(found),)


def read_tables(problem: SliceProblem, folder: Path) -> SliceTables:
    """Return what a problem holds, with the places of its images.

    Raises:
        DataError: if tables do not belong together, or images are missing.
    """
    validation, test = (_rows(problem, table, "probs") for table in TABLES[:2])
    slices = {str(row[0]): row[2] for row in _rows(problem, TABLES[2], "slices")}
    missing = [name for name, _, _ in test if name not in slices]
    if missing or len(next(iter(slices.values()))) != len(problem.slice_names):
        raise DataError(
            "The slices do not fit the predictions or the index.",
            where=str(problem.folder / "test_slices.csv"),
            given=missing[:N_SHOWN] or list(problem.slice_names),
            fix="Write all tables of the problem again, with one column a slice.",
        )
    rows = [*validation, *test]
    inside = np.zeros((len(rows), len(problem.slice_names)), dtype=np.bool_)
    inside[len(validation) :] = np.array([slices[name] for name, _, _ in test]) > 0
    return SliceTables(
        paths=_image_places(problem, [name for name, _, _ in rows], folder),
        targets=np.array([target for _, target, _ in rows], dtype=np.int64),
        probabilities=np.array([numbers for _, _, numbers in rows], dtype=np.float32),
        inside=inside,
        n_validation=len(validation),
    )


def _rows(problem: SliceProblem, table: str, prefix: str) -> list[tuple[str, int, list[float]]]:
    """Return id, target (-1 in a table without) and numbered columns of every row."""
    path = problem.folder / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = [one for one in rows[0] if re.fullmatch(rf"{prefix}_\d+", one)] if rows else []
    columns.sort(key=lambda one: int(one.rsplit("_", 1)[1]))
    needed = ["id"] if prefix == "slices" else ["id", "target"]
    lacking = [one for one in needed if not rows or one not in rows[0]]
    if lacking or len(columns) < (1 if prefix == "slices" else 2):
        raise DataError(
            "A table of a problem lacks columns.",
            where=str(path),
            given=lacking or columns,
            fix=f"It has {', '.join(needed)} and {prefix}_0, {prefix}_1 and so on.",
        )
    try:
        return [
            (
                row["id"],
                int(float(row.get("target", -1))),
                [float(row[one]) for one in columns],
            )
            for row in rows
        ]
    except (TypeError, ValueError) as error:
        raise DataError(
            f"A table of a problem holds what is no number: {error}.",
            where=str(path),
            fix="Write it again.",
        ) from error


def _image_places(problem: SliceProblem, names: list[str], folder: Path) -> tuple[Path, ...]:
    if problem.base not in IMAGES:
        raise DataError(
            "The problem is about images of another data set.",
            where=str(folder / INDEX),
            given=problem.base,
            fix=f"The protocol knows {', '.join(IMAGES)}.",
        )
    places = _celeba(names, folder) if problem.base == "celeba" else _imagenet(names, folder)
    absent = [
        name
        for name, place in zip(names, places, strict=True)
        if place is None or not place.is_file()
    ]
    if absent:
        raise DataError(
            f"Images of problem {problem.key} are missing: {len(absent)} of {len(names)}.",
            where=str(folder),
            given=absent[:N_SHOWN],
            fix=f"Put the images of {problem.base} beside slice_discovery: {IMAGES[problem.base]}.",
        )
    return tuple(one for one in places if one is not None)


def _celeba(names: list[str], folder: Path) -> list[Path | None]:
    return [folder / "img_align_celeba" / name for name in names]


def _imagenet(names: list[str], folder: Path) -> list[Path | None]:
    """Return the places of images: those for training tell their class in their name, those for validation do not."""
    known = {path.stem: path for path in folder.glob("val/n*/*.JPEG")}
    return [
        folder / "train" / name.partition("_")[0] / f"{name}.JPEG"
        if re.match(r"n\d+_", name)
        else known.get(name)
        for name in names
    ]
