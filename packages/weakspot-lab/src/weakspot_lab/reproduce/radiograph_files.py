"""ChestX-ray14, read as the NIH distributes it (or as its copies do): the table of findings, two lists, and folders of images."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, IntArray, generator
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.labelled_files import SUFFIXES

TABLE = "Data_Entry_2017*.csv"
LISTS = ("train_val_list.txt", "test_list.txt")
CHESTX_RAY14 = DataSet(
    name="ChestX-ray14",
    files={
        TABLE: "findings, patient and view of every image",
        LISTS[0]: "names of the images for training and validation",
        LISTS[1]: "names of the images for test",
        "images*": "folders of images: images, or images_001 to images_012, each with a folder images or not",
    },
)
FINDINGS = (
    "Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax", "Consolidation", "Edema",
    "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia",
)  # fmt: skip
NOTHING, AP = "No Finding", "AP"
INDEX, LABELS, PATIENT, VIEW = COLUMNS = (
    "Image Index",
    "Finding Labels",
    "Patient ID",
    "View Position",
)
VALIDATION_SHARE = 1 / 8
N_SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Radiographs:
    """Radiographs with their findings.

    Args:
        paths: [n].
        findings: which of the 14 findings each has [n, 14].
        patients: whose they are [n].
        is_ap: which were taken anterior-posterior, as of patients who cannot stand [n].
        splits: [n] train, validation or test.
    """

    paths: tuple[Path, ...]
    findings: BoolArray
    patients: tuple[str, ...]
    is_ap: BoolArray
    splits: AnyArray

    def only(self, rows: IntArray) -> "Radiographs":
        return Radiographs(
            paths=tuple(self.paths[row] for row in rows.tolist()),
            findings=self.findings[rows],
            patients=tuple(self.patients[row] for row in rows.tolist()),
            is_ap=self.is_ap[rows],
            splits=self.splits[rows],
        )


def read_radiographs(folder: Path, *, seed: int) -> Radiographs:
    """Read ChestX-ray14; an eighth of the patients of the first list is for validation, which the data set does not set apart.

    Raises:
        DataError: if table, lists and images do not belong together.
    """
    table = _table(folder)
    tests = set(_names(folder / LISTS[1]))
    listed = [*_names(folder / LISTS[0]), *_names(folder / LISTS[1])]
    places = _places(folder)
    for missing, what, where in (
        ([one for one in listed if one not in table], "the table does not describe", TABLE),
        ([one for one in listed if one not in places], "no folder holds", "images*"),
    ):
        if missing:
            raise DataError(
                f"The lists name images that {what}: {len(missing)} of {len(listed)}.",
                where=str(folder / where),
                given=missing[:N_SHOWN],
                fix="Take table and lists from the same distribution, and unpack all twelve archives of images.",
            )
    rows = [table[name] for name in listed]
    held = _held_patients([table[name][PATIENT] for name in listed if name not in tests], seed)
    return Radiographs(
        paths=tuple(places[name] for name in listed),
        findings=np.array([_findings(row, folder) for row in rows], dtype=np.bool_),
        patients=tuple(row[PATIENT] for row in rows),
        is_ap=np.array([row[VIEW] == AP for row in rows], dtype=np.bool_),
        splits=np.array(
            [
                (
                    Split.TEST
                    if name in tests
                    else Split.VALIDATION
                    if row[PATIENT] in held
                    else Split.TRAIN
                ).value
                for name, row in zip(listed, rows, strict=True)
            ]
        ),
    )


def _table(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the table by the name of their image."""
    path = sorted(folder.glob(TABLE))[0]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    lacking = [name for name in COLUMNS if not rows or name not in rows[0]]
    if lacking:
        raise DataError(
            "The table lacks columns.",
            where=str(path),
            given=lacking,
            fix=f"It names {', '.join(COLUMNS)} in its first line.",
        )
    return {row[INDEX]: row for row in rows}


def _names(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split()


def _places(folder: Path) -> Mapping[str, Path]:
    folders = [*folder.glob("images*"), *folder.glob("images*/images")]
    return {
        path.name: path
        for one in sorted(folders)
        if one.is_dir()
        for path in one.iterdir()
        if path.suffix.lower() in SUFFIXES
    }


def _held_patients(patients: Sequence[str], seed: int) -> set[str]:
    """Return an eighth of the patients: images of one are never on both sides."""
    known = sorted(set(patients))
    order = generator(seed, "radiographs", "patients").permutation(len(known))
    return {known[place] for place in order[: round(VALIDATION_SHARE * len(known))].tolist()}


def _findings(row: Mapping[str, str], folder: Path) -> list[bool]:
    named = {one.strip() for one in row[LABELS].split("|")} - {NOTHING}
    unknown = sorted(named - set(FINDINGS))
    if unknown:
        raise DataError(
            "The table names findings that are none of the fourteen.",
            where=str(folder / TABLE),
            given=unknown,
            fix=f"They are {', '.join(FINDINGS)}, or {NOTHING}.",
        )
    return [one in named for one in FINDINGS]
