"""Session: coming in and going out."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from weakspot.app.browsing.view import View
from weakspot.web.gate.entering import Door
from weakspot.web.gate.middleware import client_of
from weakspot.web.gate.sessions import LIFETIME, OpenedSession
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.server_parts import Anyone, Entrance, Parts, ServerParts

router = APIRouter(prefix="/api", tags=["session"])
LONGEST_TOKEN = 200
LONGEST_NAME = 100
LONGEST_PASSWORD = 1000


class Entry(View):
    """How somebody comes in; one of three ways.

    Args:
        token: of an address that `weakspot serve` printed.
        login: of somebody who has a password.
        password: with a login; with an invitation, to come back from anywhere.
        invite: token of an invitation.
        name: with an invitation, how somebody wants to be called.
    """

    token: str | None = Field(default=None, max_length=LONGEST_TOKEN)
    login: str | None = Field(default=None, max_length=LONGEST_NAME)
    password: str | None = Field(default=None, max_length=LONGEST_PASSWORD)
    invite: str | None = Field(default=None, max_length=LONGEST_TOKEN)
    name: str | None = Field(default=None, max_length=LONGEST_NAME)


class AskedInvitation(View):
    """An invitation that somebody wants to know more of."""

    invite: str = Field(max_length=LONGEST_TOKEN)


class InvitationView(View):
    """What an invitation is to.

    Args:
        study_id: the study.
        title: its title.
        role: what those who accept may do.
    """

    study_id: str
    title: str
    role: Role


class PersonView(View):
    """Who somebody is."""

    name: str
    role: Role
    study_id: str | None


class SessionView(View):
    """The session of this browser.

    Args:
        person: who came in.
        request_token: to be sent back in the header `X-Weakspot-Token` with everything that changes something.
        project: name of the project's folder.
        is_read_only: whether nothing can be changed here.
    """

    person: PersonView
    request_token: str
    project: str
    is_read_only: bool


class PresenceView(View):
    """Whether somebody has come in with this browser."""

    is_present: bool


class LeftView(View):
    """That a session is forgotten."""

    left: bool


@router.post("/session")
def enter(entry: Entry, parts: Parts, door: Entrance, request: Request, response: Response) -> SessionView:
    """Come in."""
    opened = _opened(door, entry, client_of(request.scope))
    response.set_cookie(
        door.address.cookie_name,
        opened.token,
        max_age=int(LIFETIME.total_seconds()),
        path=door.address.cookie_path,
        secure=door.address.is_secure,
        httponly=True,
        samesite="strict",
    )
    return _view(parts, opened.person, opened.request_token)


@router.post("/session/invitation")
def invitation(asked: AskedInvitation, door: Entrance, request: Request) -> InvitationView:
    """Say what an invitation is to, without using it up."""
    found = door.invitation(asked.invite, client=client_of(request.scope))
    return InvitationView(study_id=found.study_id, title=found.title, role=found.role)


@router.get("/session/present")
def present(request: Request) -> PresenceView:
    """Say whether somebody has come in with this browser; open to anyone, and no refusal if not."""
    return PresenceView(is_present=request.state.person is not None)


@router.get("/session")
def session(person: Anyone, parts: Parts, request: Request) -> SessionView:
    """Say who is here."""
    return _view(parts, person, request.state.request_token)


@router.delete("/session")
def leave(_person: Anyone, door: Entrance, request: Request, response: Response) -> LeftView:
    """Go out; the session is forgotten."""
    door.sessions.close(request.state.session_token)
    response.delete_cookie(door.address.cookie_name, path=door.address.cookie_path)
    return LeftView(left=True)


def _opened(door: Door, entry: Entry, client: str) -> OpenedSession:
    if entry.invite is not None and entry.token is None:
        return door.enter_with_invitation(
            entry.invite, client=client, name=entry.name or "", login=entry.login, password=entry.password
        )
    if entry.token is not None and entry.login is None and entry.invite is None:
        return door.enter_with_token(entry.token, client=client)
    if entry.login is not None and entry.password is not None and entry.token is None:
        return door.enter_with_password(entry.login, entry.password, client=client)
    raise RefusedError(422, "Come in with a token, with login and password, or with an invitation.")


def _view(parts: ServerParts, person: Person, request_token: str) -> SessionView:
    role = Role.VIEWER if parts.is_read_only and person.role is Role.OWNER else person.role
    shown = PersonView(name=person.name, role=role, study_id=person.study_id)
    project = parts.workspace.project.folder.resolve().name
    return SessionView(person=shown, request_token=request_token, project=project, is_read_only=parts.is_read_only)
