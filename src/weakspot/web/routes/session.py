"""Session: sign in and sign out; and whether the server has opened its project."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from weakspot.web.auth.login import LIFETIME, InvitationView, Login, OpenedSession, csrf_token_of
from weakspot.web.auth.middleware import client_of
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Anyone, HealthView, Parts, ServerParts, SignIn
from weakspot.web.services.view import View
from weakspot.web.state.store import Person, Role

router = APIRouter(prefix="/api", tags=["session"])
MAX_TOKEN_LENGTH = 200
MAX_NAME_LENGTH = 100
MAX_PASSWORD_LENGTH = 1000


class SignInRequest(View):
    """How somebody signs in; one of three ways.

    Args:
        token: of an address that `weakspot serve` printed.
        login: of somebody who has a password.
        password: with a login; with an invitation, to sign in again from anywhere.
        invite: token of an invitation.
        name: with an invitation, how somebody wants to be called.
    """

    token: str | None = Field(default=None, max_length=MAX_TOKEN_LENGTH)
    login: str | None = Field(default=None, max_length=MAX_NAME_LENGTH)
    password: str | None = Field(default=None, max_length=MAX_PASSWORD_LENGTH)
    invite: str | None = Field(default=None, max_length=MAX_TOKEN_LENGTH)
    name: str | None = Field(default=None, max_length=MAX_NAME_LENGTH)


class InvitationRequest(View):
    """An invitation that somebody wants to know more of."""

    invite: str = Field(max_length=MAX_TOKEN_LENGTH)


class PersonView(View):
    """Who somebody is."""

    name: str
    role: Role
    study_id: str | None


class SessionView(View):
    """The session of this browser.

    Args:
        person: who is signed in.
        csrf_token: to be sent back in the header `X-CSRF-Token` with everything that changes something.
        project: name of the project's folder.
        is_read_only: whether nothing can be changed here.
        has_images: whether samples have images; if not, pages show rows of a table.
    """

    person: PersonView
    csrf_token: str
    project: str
    is_read_only: bool
    has_images: bool = True


@router.get("/health")
async def health(parts: Parts) -> HealthView:
    """Say how the server is, to anyone; answers also while everything else waits."""
    parts.open_what_was_set_up()
    return parts.readiness.health


@router.post("/session")
def sign_in(
    entry: SignInRequest, parts: Parts, login: SignIn, request: Request, response: Response
) -> SessionView:
    """Sign in."""
    token, person = _open(login, entry, client_of(request.scope))
    response.set_cookie(
        login.address.cookie_name,
        token,
        max_age=int(LIFETIME.total_seconds()),
        path=login.address.cookie_path,
        secure=login.address.is_secure,
        httponly=True,
        samesite="strict",
    )
    return session_view(parts, person, csrf_token_of(token))


@router.post("/session/invitation")
def invitation(asked: InvitationRequest, login: SignIn, request: Request) -> InvitationView:
    """Say what an invitation is to, without using it up."""
    return login.invitation(asked.invite, client=client_of(request.scope))


@router.get("/session/present")
def present(request: Request) -> dict[str, bool]:
    """Say whether somebody is signed in with this browser; open to anyone, and no refusal if not."""
    return {"is_present": request.state.person is not None}


@router.get("/session")
def session(person: Anyone, parts: Parts, request: Request) -> SessionView:
    """Say who is signed in."""
    return session_view(parts, person, request.state.csrf_token)


@router.delete("/session")
def sign_out(
    _person: Anyone, login: SignIn, request: Request, response: Response
) -> dict[str, bool]:
    """Sign out; the session is forgotten."""
    login.sessions.close(request.state.session_token)
    response.delete_cookie(login.address.cookie_name, path=login.address.cookie_path)
    return {"is_signed_out": True}


def _open(login: Login, entry: SignInRequest, client: str) -> OpenedSession:
    if entry.invite is not None and entry.token is None:
        return login.sign_in_with_invitation(
            entry.invite,
            client=client,
            name=entry.name or "",
            login=entry.login,
            password=entry.password,
        )
    if entry.token is not None and entry.login is None and entry.invite is None:
        return login.sign_in_with_token(entry.token, client=client)
    if entry.login is not None and entry.password is not None and entry.token is None:
        return login.sign_in_with_password(entry.login, entry.password, client=client)
    raise RefusedError(422, "Sign in with a token, with login and password, or with an invitation.")


def session_view(parts: ServerParts, person: Person, csrf_token: str) -> SessionView:
    """Return a session as its browser sees it."""
    role = Role.VIEWER if parts.is_read_only and person.role is Role.OWNER else person.role
    shown = PersonView(name=person.name, role=role, study_id=person.study_id)
    project = parts.workspace.project.folder.resolve().name
    return SessionView(
        person=shown,
        csrf_token=csrf_token,
        project=project,
        is_read_only=parts.is_read_only,
        has_images=parts.workspace.has_images,
    )
