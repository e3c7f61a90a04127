"""The files of a repair: where they are kept, and which of them people may download, by a fixed list of names and never a path."""

import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import IO

from weakspot.core.errors import StoreError
from weakspot.core.repairs import RepairResult
from weakspot.core.run import RunRecord
from weakspot.repair.collecting.files import WEIGHTS_FOLDER
from weakspot.repair.export import MODEL_FOLDER
from weakspot.store.project import ProjectStore
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

EXPORTED = "handed-back"
PATIENCE_SECONDS = 30.0


def new_folder(store: ProjectStore, run_id: str) -> Path:
    """Return a folder for the files of a repair, not there yet; that of an earlier repair stays until this one is done."""
    return store.runs.run_folder(run_id) / EXPORTED / secrets.token_hex(8)


def adopt_files(store: ProjectStore, record: RunRecord) -> RunRecord:
    """Write down the files of a repair relative to the run's folder, and delete those that belong to no repair of the run."""
    folder = store.runs.run_folder(record.run_id).absolute()
    with store.writing(patience=PATIENCE_SECONDS):
        current = store.runs.load(record.run_id)
        repairs = tuple(
            result.model_copy(
                update={"files": tuple(_relative(file, folder) for file in result.files)}
            )
            for result in current.repairs
        )
        changed = current.model_copy(update={"repairs": repairs})
        store.runs.save(changed)
    kept = {_folder_name(result) for result in changed.repairs}
    kept |= {_folder_name(result) for one in changed.earlier_repairs for result in one.repairs}
    for other in (folder / EXPORTED).glob("*"):
        if other.name not in kept:
            shutil.rmtree(other, ignore_errors=True)
    return changed


def current_folder(store: ProjectStore, record: RunRecord) -> Path | None:
    """Return where the files of a run's newest repair are, None if there are none."""
    name = _folder_name(record.repairs[0]) if record.repairs else None
    if name is None:
        return None
    folder = store.runs.run_folder(record.run_id).absolute() / EXPORTED / name
    return folder if folder.is_dir() and not folder.is_symlink() else None


def _folder_name(result: RepairResult) -> str | None:
    """Return the name of the folder that the files of a repair are in, None if it wrote none."""
    for file in result.files:
        parts = PurePath(file).parts
        if EXPORTED in parts[:-2]:
            return parts[parts.index(EXPORTED) + 1]
    return None


def _relative(file: str, folder: Path) -> str:
    path = PurePath(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file


CHUNK_BYTES = 1 << 20


class DownloadName(StrEnum):
    """Everything that can be downloaded."""

    HEAD = "repaired_head.safetensors"
    MODEL = "repaired_model.zip"
    PLAN = "plan.json"
    WEIGHTS = "training_weights.csv"
    ROWS = "training_rows.txt"
    GROUP_OBJECTIVES = "group_objectives.json"
    README = "README.txt"
    LABELS = "to_label.csv"
    COLLECT = "to_collect.csv"
    NEEDS = "how_many.csv"
    MORE_WEIGHTS = "weights.zip"


SENTENCES = {
    DownloadName.HEAD: "The repaired last layer alone: weight [classes, features] and bias [classes].",
    DownloadName.MODEL: "Your classifier with the repaired last layer; all else in it is as it was.",
    DownloadName.PLAN: "Slices, strategy and seed; `weakspot repair --plan plan.json` does the same again.",
    DownloadName.WEIGHTS: "Which samples to train on and how much each counts, for your own training.",
    DownloadName.ROWS: "Positions of those samples among your training samples.",
    DownloadName.GROUP_OBJECTIVES: "Groups of samples of which only the one with the largest loss counts.",
    DownloadName.README: "What the files are and how to use them.",
    DownloadName.LABELS: "Pool samples that the repair needs labels of.",
    DownloadName.COLLECT: "Pool rows that fit each slice, in the order in which to take them.",
    DownloadName.NEEDS: "How many rows every slice has, lacks and could get; estimates say so.",
    DownloadName.MORE_WEIGHTS: "Training weights of other strategies.",
}

ARCHIVES = {DownloadName.MODEL: MODEL_FOLDER, DownloadName.MORE_WEIGHTS: WEIGHTS_FOLDER}


class DownloadView(View):
    """A file that can be downloaded.

    Args:
        name: its name.
        sentence: what it is.
        size: bytes; None if it is put together when it is asked for.
    """

    name: DownloadName
    sentence: str
    size: int | None


class DownloadsView(View):
    """The files of a run's newest repair."""

    run_id: str
    files: list[DownloadView]


@dataclass(frozen=True, kw_only=True, eq=False)
class Download:
    """An opened file.

    Args:
        name: its name, of the fixed list.
        size: bytes.
        stream: its content; closed by whoever reads `chunks` to the end or stops.
    """

    name: DownloadName
    size: int
    stream: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """Yield the content bit by bit, and close the file."""
        with self.stream:
            while part := self.stream.read(CHUNK_BYTES):
                yield part


def downloads(workspace: Workspace, run_id: str | None = None) -> DownloadsView:
    """Return what can be downloaded of a run, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    record = workspace.record(run_id)
    if record is None:
        return DownloadsView(run_id="", files=[])
    found = {name: _place(workspace, record, name) for name in DownloadName}
    files = [
        DownloadView(
            name=name,
            sentence=SENTENCES[name],
            size=place.stat().st_size if place.is_file() else None,
        )
        for name, place in found.items()
        if place is not None
    ]
    return DownloadsView(run_id=record.run_id, files=files)


def open_download(workspace: Workspace, name: DownloadName, run_id: str | None = None) -> Download:
    """Open a file of a run's newest repair.

    Raises:
        StoreError: if the run has none of that name.
    """
    record = workspace.record(run_id)
    place = None if record is None else _place(workspace, record, name)
    if place is None:
        raise StoreError(
            "There is no such file of a repair.", given=name.value, fix="Repair the run first."
        )
    stream = _zip(place) if place.is_dir() else place.open("rb")
    size = stream.seek(0, 2)
    stream.seek(0)
    return Download(name=name, size=size, stream=stream)


def _place(workspace: Workspace, record: RunRecord, name: DownloadName) -> Path | None:
    """Return where a file of the newest repair is, None if there is none; archives are folders."""
    if not record.repairs:
        return None
    result, store = record.repairs[0], workspace.project.store
    own = store.runs.run_folder(record.run_id)
    if name is DownloadName.LABELS:
        return _plain(own / name.value) if result.labelling is not None else None
    if name is DownloadName.HEAD:
        return _plain(own / name.value) if result.head_file else None
    folder = current_folder(store, record)
    if folder is None:
        return None
    if name in ARCHIVES:
        packed = folder / ARCHIVES[name]
        return packed if packed.is_dir() and not packed.is_symlink() else None
    return _plain(folder / name.value)


def _plain(path: Path) -> Path | None:
    return path if path.is_file() and not path.is_symlink() else None


def _zip(folder: Path) -> IO[bytes]:
    """Return the files of a folder as one archive that vanishes when it is closed; weights would not get smaller by packing."""
    stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                with (
                    path.open("rb") as source,
                    archive.open(
                        path.relative_to(folder).as_posix(), "w", force_zip64=True
                    ) as target,
                ):
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
    return stream
