"""The file `classes.txt`: class names in order, one a line."""

from weakspot.core.errors import DataError
from weakspot.media.listing import is_there
from weakspot.media.locations import is_local, join_location, local_path, parent_location, read_location

CLASS_LIST_NAME = "classes.txt"


def class_list_beside(location: str) -> tuple[str, ...] | None:
    """Return the class names written beside a local file, or None when there is no such list."""
    path = join_location(parent_location(location), CLASS_LIST_NAME)
    if not is_local(path) or not is_there(path):
        return None
    try:
        lines = read_location(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError("The list of classes is not UTF-8 text.", where=path, fix="Save it with the encoding UTF-8.") from error
    names = tuple(line.strip() for line in lines if line.strip())
    if len(set(names)) < len(names) or not names:
        raise DataError(
            "The list of classes is empty or names a class twice.", where=str(local_path(path)), fix="One class a line."
        )
    return names
