"""Invitations as their owner sees them: made, listed, taken back. Only the hash of a link's token is kept."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select, update

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import seen_study
from weakspot.web.state.tables import InviteRow
from weakspot.web.token_hash import token_hash


@dataclass(frozen=True, kw_only=True)
class MadeInvite:
    """A new invitation.

    Args:
        row: what is kept of it.
        token: for the link; it cannot be found out again.
    """

    row: InviteRow
    token: str


def make_invite(state: StateStore, person: Person, study_id: str, *, role: Role, uses: int, days: int) -> MadeInvite:
    """Invite people into a study.

    Raises:
        RefusedError: 404 if there is no such study, 409 if it is closed.
    """
    token, today = secrets.token_urlsafe(24), now()
    row = InviteRow(
        invite_id=secrets.token_urlsafe(12),
        token_hash=token_hash(token),
        study_id=study_id,
        role=role.value,
        uses=uses,
        uses_left=uses,
        created=today,
        expires=today + timedelta(days=days),
    )
    with state.writing() as rows:
        if not seen_study(rows, person, study_id, is_locked=True).is_open:
            raise RefusedError(409, "The study is closed: nobody can be invited into it.")
        rows.add(row)
    return MadeInvite(row=row, token=token)


def invites_of(state: StateStore, person: Person, study_id: str) -> list[InviteRow]:
    """Return the invitations into a study, newest first.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    asked = select(InviteRow).where(InviteRow.study_id == study_id).order_by(InviteRow.created.desc(), InviteRow.invite_id)
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return list(rows.scalars(asked))


def revoke_invite(state: StateStore, study_id: str, invite_id: str) -> InviteRow:
    """Take an invitation back; who came in through it stays.

    Raises:
        RefusedError: 404 if the study has no such invitation.
    """
    place = (InviteRow.invite_id == invite_id, InviteRow.study_id == study_id)
    with state.writing() as rows:
        rows.execute(update(InviteRow).where(*place).values(uses_left=0, expires=now()))
        found = rows.scalars(select(InviteRow).where(*place)).one_or_none()
    if found is None:
        raise RefusedError(404, "There is no such invitation.")
    return found
