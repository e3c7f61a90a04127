"""What every request can ask for: the project, the shared state, running work, and who is asking."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from weakspot.app.browsing.workspace import Workspace
from weakspot.web.gate.address import ServerAddress
from weakspot.web.gate.entering import Door
from weakspot.web.problems import RefusedError
from weakspot.web.readiness import Readiness
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore

if TYPE_CHECKING:
    from weakspot.web.jobs.runner import JobRunner

ORDER = (Role.VIEWER, Role.ANNOTATOR, Role.OWNER)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerParts:
    """Everything that a server holds.

    Args:
        workspace: the opened project.
        state: what people share.
        jobs: work under way.
        owner_token: whoever has it is the owner.
        is_read_only: nobody may change anything, for static export: owners become viewers.
        address: how browsers reach the server.
        readiness: how far the project is opened.
    """

    workspace: Workspace
    state: StateStore
    jobs: "JobRunner"
    owner_token: str
    is_read_only: bool = False
    address: ServerAddress = field(default_factory=ServerAddress)
    readiness: Readiness = field(default_factory=Readiness)


def parts_of(request: Request) -> ServerParts:
    """Return what the server holds."""
    found: ServerParts = request.app.state.parts
    return found


def door_of(request: Request) -> Door:
    """Return where people come in."""
    found: Door = request.app.state.door
    return found


def person_of(request: Request) -> Person:
    """Return who is asking; the gate has put it there.

    Raises:
        RefusedError: 401 if nobody came in.
    """
    person: Person | None = getattr(request.state, "person", None)
    if person is None:
        raise RefusedError(401, "Nobody has come in with this browser.", fix="Open the address that `weakspot serve` printed.")
    return person


def _at_least(role: Role) -> Any:
    def check(person: Annotated[Person, Depends(person_of)]) -> Person:
        if ORDER.index(person.role) < ORDER.index(role):
            raise RefusedError(403, f"Only {'an' if role is not Role.VIEWER else 'a'} {role.value} may do this.")
        return person

    return Depends(check)


def _sees_project(person: Annotated[Person, Depends(person_of)]) -> Person:
    if person.role is Role.ANNOTATOR:
        raise RefusedError(403, "Annotators see their study only.")
    return person


Parts = Annotated[ServerParts, Depends(parts_of)]
Entrance = Annotated[Door, Depends(door_of)]
Anyone = Annotated[Person, _at_least(Role.VIEWER)]
Annotator = Annotated[Person, _at_least(Role.ANNOTATOR)]
Owner = Annotated[Person, _at_least(Role.OWNER)]
ProjectReader = Annotated[Person, Depends(_sees_project)]
"""Owners and viewers: annotators see their study only."""
