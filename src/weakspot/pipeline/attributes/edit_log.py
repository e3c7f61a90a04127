"""The file of people's edits of attributes: beside weakspot.toml, because nothing can make it anew."""

from datetime import UTC, datetime

from pydantic import ValidationError

from weakspot.assign.edits import AttributeEdit, EditLog, LoggedEdit
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.project import ProjectStore

EDITS_FILE = "attribute_edits.json"


class AttributeEditFile:
    """All edits of a project, oldest first; whoever writes holds the project's lock.

    Args:
        store: the project.
    """

    def __init__(self, store: ProjectStore) -> None:
        self._path = store.root / EDITS_FILE

    def version_mark(self) -> str:
        """Return something that differs whenever the file was written anew; cheap."""
        try:
            found = self._path.stat()
        except OSError:
            return ""
        return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"

    def read(self) -> EditLog:
        """Return all edits; none if there is no file.

        Raises:
            StoreError: if the file cannot be read.
        """
        try:
            return EditLog.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return EditLog()
        except (OSError, ValidationError) as error:
            raise StoreError(
                f"The edits of attributes in {EDITS_FILE} cannot be read.",
                fix="Mend the file, or put an earlier version in its place; slices on edited attributes need it.",
            ) from error

    def add(self, log: EditLog, edit: AttributeEdit, *, by: str, sentence: str) -> EditLog:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        entry = LoggedEdit(number=log.version + 1, edit=edit, by=by, time=time, sentence=sentence)
        added = EditLog(entries=(*log.entries, entry))
        atomic.write_bytes(
            self._path, (added.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode()
        )
        return added
