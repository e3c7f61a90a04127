"""Where repairs that people start from a page leave their files: with the run, the newest of them only."""

import secrets
import shutil
from pathlib import Path, PurePath

from weakspot.core.run import RunRecord
from weakspot.store.project import ProjectStore

HANDED_BACK = "handed-back"
PATIENCE_SECONDS = 30.0


def new_folder(store: ProjectStore, run_id: str) -> Path:
    """Return a folder for the files of a repair, not there yet; that of an earlier repair stays until this one is done."""
    return store.runs.run_folder(run_id) / HANDED_BACK / secrets.token_hex(8)


def adopted(store: ProjectStore, record: RunRecord) -> RunRecord:
    """Write down the files of a repair relative to the run's folder, and delete those of earlier ones."""
    folder = store.runs.run_folder(record.run_id).absolute()
    with store.writing(patience=PATIENCE_SECONDS):
        current = store.runs.load(record.run_id)
        repairs = tuple(
            outcome.model_copy(update={"files": tuple(_relative(file, folder) for file in outcome.files)})
            for outcome in current.repairs
        )
        changed = current.model_copy(update={"repairs": repairs})
        store.runs.save(changed)
    kept = current_folder(store, changed)
    for other in (folder / HANDED_BACK).glob("*"):
        if other != kept:
            shutil.rmtree(other, ignore_errors=True)
    return changed


def current_folder(store: ProjectStore, record: RunRecord) -> Path | None:
    """Return where the files of a run's newest repair are, None if there are none."""
    for file in record.repairs[0].files if record.repairs else ():
        parts = PurePath(file).parts
        if HANDED_BACK in parts[:-2]:
            name = parts[parts.index(HANDED_BACK) + 1]
            folder = store.runs.run_folder(record.run_id).absolute() / HANDED_BACK / name
            return folder if folder.is_dir() and not folder.is_symlink() else None
    return None


def _relative(file: str, folder: Path) -> str:
    path = PurePath(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file
