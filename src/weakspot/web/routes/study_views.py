"""What pages see of studies."""

from weakspot.app.browsing.view import View
from weakspot.web.roles import Role
from weakspot.web.state.people import Participant
from weakspot.web.state.store import now
from weakspot.web.state.studies import classes_of
from weakspot.web.state.tables import InviteRow, StudyRow


class StudyView(View):
    """A study.

    Args:
        study_id: unguessable.
        title: what people call it.
        classes: titles of its classes.
        instructions: what those who take part read first.
        is_open: whether something can be said in it.
        created: when it was begun, in UTC.
    """

    study_id: str
    title: str
    classes: list[str]
    instructions: str
    is_open: bool
    created: str


class StudiesView(View):
    """Studies, newest first."""

    studies: list[StudyView]


class OwnProgress(View):
    """How far whoever asks is in a study.

    Args:
        seconds: time at work.
        n_phrases: what they said.
        finished: classes that they are done with.
        did_tutorial: whether they went through the tutorial.
    """

    seconds: float
    n_phrases: int
    finished: list[str]
    did_tutorial: bool


class InviteView(View):
    """An invitation.

    Args:
        invite_id: unguessable, and no use to anybody.
        role: what those who accept may do.
        uses: how many people it was made for.
        uses_left: how many more may accept; 0 when it was taken back.
        created: when it was made, in UTC.
        expires: until when it can be accepted, in UTC.
        is_good: whether it can still be accepted.
    """

    invite_id: str
    role: Role
    uses: int
    uses_left: int
    created: str
    expires: str
    is_good: bool


class InvitesView(View):
    """Invitations, newest first."""

    invites: list[InviteView]


class MadeInviteView(View):
    """A new invitation with its secret, which is told this once.

    Args:
        invite: what is kept of it.
        token: the secret.
        fragment: what to put behind the address of the server.
    """

    invite: InviteView
    token: str
    fragment: str


class ParticipantsView(View):
    """Who takes part, in the order they came."""

    people: list[Participant]


def study_view(row: StudyRow) -> StudyView:
    """Return a study as pages see it."""
    return StudyView(
        study_id=row.study_id,
        title=row.title,
        classes=classes_of(row),
        instructions=row.instructions,
        is_open=row.is_open,
        created=row.created.isoformat(timespec="seconds"),
    )


def invite_view(row: InviteRow) -> InviteView:
    """Return an invitation as its owner sees it."""
    return InviteView(
        invite_id=row.invite_id,
        role=Role(row.role),
        uses=row.uses,
        uses_left=row.uses_left,
        created=row.created.isoformat(timespec="seconds"),
        expires=row.expires.isoformat(timespec="seconds"),
        is_good=row.uses_left > 0 and row.expires > now(),
    )
