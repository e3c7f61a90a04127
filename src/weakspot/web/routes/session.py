"""Session: coming in and going out."""

from fastapi import APIRouter, Request, Response

from weakspot.app.browsing.view import View
from weakspot.web.gate.sessions import COOKIE, open_session, token_hash
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Role
from weakspot.web.server_parts import Anyone, Parts
from weakspot.web.state.tables import SessionRow

router = APIRouter(prefix="/api", tags=["session"])


class Entry(View):
    """How somebody comes in: with the token of an address that `weakspot serve` printed."""

    token: str


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


@router.post("/session")
def enter(entry: Entry, parts: Parts, response: Response) -> SessionView:
    """Come in."""
    opened = open_session(parts, entry.token)
    response.set_cookie(COOKIE, opened.token, httponly=True, samesite="strict", path="/")
    return _view(parts, opened.person, opened.request_token)


@router.get("/session")
def session(person: Anyone, parts: Parts, request: Request) -> SessionView:
    """Say who is here."""
    return _view(parts, person, request.state.request_token)


@router.delete("/session")
def leave(_person: Anyone, parts: Parts, request: Request, response: Response) -> dict[str, bool]:
    """Go out; the session is forgotten."""
    with parts.state.writing() as rows:
        row = rows.get(SessionRow, token_hash(request.cookies.get(COOKIE, "")))
        if row is None:
            raise RefusedError(401, "Nobody has come in with this browser.")
        rows.delete(row)
    response.delete_cookie(COOKIE)
    return {"left": True}


def _view(parts: Parts, person: Anyone, request_token: str) -> SessionView:
    shown = PersonView(name=person.name, role=person.role, study_id=person.study_id)
    project = parts.workspace.project.folder.resolve().name
    return SessionView(person=shown, request_token=request_token, project=project, is_read_only=parts.is_read_only)
