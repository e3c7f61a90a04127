"""Who people are to a server."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a person may do; each may do what the ones before may.

    A viewer reads. An annotator also says phrases, in the study that invited them and nowhere else. An owner does everything.
    """

    VIEWER = "viewer"
    ANNOTATOR = "annotator"
    OWNER = "owner"


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody with a session.

    Args:
        person_id: unguessable.
        name: as they called themselves; shown to others, never a key.
        role: what they may do.
        study_id: the only study that they may see; None for owners, who see all.
    """

    person_id: str
    name: str
    role: Role
    study_id: str | None = None
