"""Studies: what they are about, who takes part and agreed to, how long they work, and the phrases that they write.

Of invitations only the hash is kept. Time is never more than the clock allows. Phrases are kept for ever with their figures.
"""

import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints
from sqlalchemy import Connection, Select, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.services.studies import PhraseFigures, StoredPhrase
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import (
    ACTIVITY,
    CONSENTS,
    FINISHED,
    INVITES,
    PEOPLE,
    PHRASES,
    STUDIES,
    Entry,
    Person,
    Role,
    StateStore,
    entry_of,
    now,
    token_hash,
)

ATTENTION = "attention_answer"
NO_STUDY = "There is no such study."
NOT_AGREED = "Read what the study is about, and agree to take part, first."
ClassTitle = Annotated[str, Field(max_length=1000)]
CLOSED = "The study is closed: no phrase can be added."


class StudyOptions(View):
    """How a study is done.

    Args:
        shows_suggestions: whether words with their scores are offered; if not, nothing scored is shown before somebody types.
        consent: what those who take part agree to first; empty: nobody is asked.
        attention_question: asked once, to see who reads; empty: nothing is asked.
        groups: column whose values, with the class, are the groups that every phrase is measured on; empty: none.
    """

    shows_suggestions: bool = True
    consent: str = Field(default="", max_length=20_000)
    attention_question: str = Field(default="", max_length=2000)
    groups: str = Field(default="", max_length=500)


class StudyPlan(View):
    """What a study is about.

    Args:
        title: what people call it.
        classes: titles of its classes; for a new one the most promising if empty.
        instructions: what those who take part read first.
        options: how it is done.
    """

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    classes: list[ClassTitle] = Field(default=[], max_length=1000)
    instructions: str = Field(default="", max_length=10_000)
    options: StudyOptions = StudyOptions()


class StudyView(StudyPlan):
    """A study.

    Args:
        study_id: unguessable.
        is_open: whether phrases can be added.
        created: when it was begun.
    """

    study_id: str
    is_open: bool
    created: Moment

    @classmethod
    def of(cls, study: Entry) -> Self:
        """Return a study as pages see it: without the right answer to its attention check."""
        kept = study.options or {}
        return cls(
            study_id=study.study_id,
            title=study.title,
            classes=classes_of(study),
            instructions=study.instructions,
            options=StudyOptions(
                **{one: kept[one] for one in StudyOptions.model_fields if one in kept}
            ),
            is_open=study.is_open,
            created=study.created,
        )


class InviteView(View):
    """An invitation.

    Args:
        invite_id: unguessable, and no use to anybody.
        role: what those who accept may do.
        uses: how many people it was made for.
        uses_left: how many more may accept; 0 when it was taken back.
        created: when it was made.
        expires: until when it can be accepted.
        is_good: whether it can still be accepted.
    """

    invite_id: str
    role: Role
    uses: int
    uses_left: int
    created: Moment
    expires: Moment
    is_good: bool


class MadeInviteView(View):
    """A new invitation with its secret, which is shown this once.

    Args:
        invite: what is kept of it.
        token: the secret.
        fragment: what to put behind the address of the server.
    """

    invite: InviteView
    token: str
    fragment: str


def storable(text: str, *, where: str) -> str:
    """Return a text that every database can hold.

    Raises:
        DataError: if it holds a NUL or half of a character.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("This is no text.", where=where) from None
    if "\x00" in text:
        raise DataError("A text cannot hold a NUL.", where=where)
    return text


def attention_answer(study: Entry) -> str:
    """Return the right answer to the attention check of a study; empty if it has none."""
    options = study.options or {}
    return str(options.get(ATTENTION, "")) if options.get("attention_question") else ""


def classes_of(study: Entry) -> list[str]:
    return [str(title) for title in study.classes.get("titles", [])]


def create_study(
    state: StateStore,
    *,
    title: str,
    classes: Sequence[str],
    instructions: str,
    options: StudyOptions | None = None,
    attention: str = "",
) -> StudyView:
    """Begin a study.

    Args:
        state: where it is kept.
        title: what people call it.
        classes: titles of its classes.
        instructions: what those who take part read first.
        options: how it is done.
        attention: the right answer to its attention check; nobody who takes part is told.
    """
    chosen = (options or StudyOptions()).model_dump()
    texts = {**chosen, ATTENTION: attention}
    for name, value in texts.items():
        if isinstance(value, str):
            storable(value, where=name)
    study = insert(STUDIES).values(
        options=texts,
        study_id=secrets.token_urlsafe(12),
        title=storable(title, where="title"),
        classes={"titles": [storable(one, where="classes") for one in dict.fromkeys(classes)]},
        instructions=storable(instructions, where="instructions"),
        created=now(),
    )
    with state.writing() as rows:
        return StudyView.of(rows.execute(study.returning(STUDIES)).one())


def studies_for(state: StateStore, person: Person) -> list[StudyView]:
    asked = select(STUDIES).order_by(STUDIES.c.created.desc(), STUDIES.c.study_id)
    with state.reading() as rows:
        return [
            StudyView.of(study) for study in rows.execute(asked) if may_see(person, study.study_id)
        ]


def study_of(state: StateStore, person: Person, study_id: str) -> StudyView:
    """Return a study.

    Raises:
        RefusedError: 404 if there is none, or none for this person: nobody learns which others there are.
    """
    with state.reading() as rows:
        return StudyView.of(seen_study(rows, person, study_id))


def seen_study(
    rows: Connection, person: Person, study_id: str, *, is_locked: bool = False
) -> Entry:
    """Return a study inside a transaction; locked, it cannot be closed before that ends.

    Raises:
        RefusedError: 404 as `study_of`.
    """
    if not may_see(person, study_id) or "\x00" in study_id:
        raise RefusedError(404, NO_STUDY)
    asked = select(STUDIES).where(STUDIES.c.study_id == study_id)
    study = rows.execute(asked.with_for_update(read=True) if is_locked else asked).one_or_none()
    if study is None:
        raise RefusedError(404, NO_STUDY)
    return study


def _check_open(rows: Connection, person: Person, study_id: str, title: str | None = None) -> None:
    """Refuse work in a study that is closed, or on a class that it does not have; it stays open until the transaction ends."""
    study = seen_study(rows, person, study_id, is_locked=True)
    if title is not None and title not in classes_of(study):
        raise RefusedError(404, "The study has no such class.")
    if not study.is_open:
        raise RefusedError(409, CLOSED)


def open_or_close(state: StateStore, person: Person, study_id: str, *, is_open: bool) -> StudyView:
    """Let a study go on, or end it for now; its phrases stay.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    with state.writing() as rows:
        seen_study(rows, person, study_id)
        change = update(STUDIES).filter_by(study_id=study_id).values(is_open=is_open)
        return StudyView.of(rows.execute(change.returning(STUDIES)).one())


def may_see(person: Person, study_id: str) -> bool:
    """Return whether somebody may know of a study: owners of all, others of the one that invited them."""
    if person.role is Role.OWNER:
        return True
    return person.study_id == study_id or (person.study_id is None and person.role is Role.VIEWER)


def require_class(state: StateStore, person: Person, study_id: str | None, title: str) -> None:
    """Refuse a person who has no business with a class.

    Owners work on every class, inside an existing study or outside of all. Viewers look at every class. Annotators work on the
    classes of the study that invited them, while it is open.

    Raises:
        RefusedError: 403 outside of all studies or before they agreed to take part, 404 if the study or the class is not theirs,
            409 if the study is closed.
    """
    if study_id is None:
        if person.role is Role.ANNOTATOR:
            raise RefusedError(403, "Annotators see their study only.")
        return
    study = study_of(state, person, study_id)
    if person.role is Role.ANNOTATOR:
        if title not in study.classes:
            raise RefusedError(404, "The study has no such class.")
        if not study.is_open:
            raise RefusedError(409, CLOSED)
        if study.options.consent:
            with state.reading() as rows:
                if _consent(rows, person, study_id) is None:
                    raise RefusedError(403, NOT_AGREED)


def make_invite(
    state: StateStore, person: Person, study_id: str, *, role: Role, uses: int, days: int
) -> MadeInviteView:
    """Invite people into a study.

    Raises:
        RefusedError: 404 if there is no such study, 409 if it is closed.
    """
    token, today = secrets.token_urlsafe(24), now()
    invite = insert(INVITES).values(
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
        made = InviteView.model_validate(rows.execute(invite.returning(*_shown_invite())).one())
    return MadeInviteView(invite=made, token=token, fragment=f"#invite={token}")


def _shown_invite() -> tuple[Any, ...]:
    is_good = and_(INVITES.c.uses_left > 0, INVITES.c.expires > now())
    return INVITES, is_good.label("is_good")


def invites_of(state: StateStore, person: Person, study_id: str) -> list[InviteView]:
    """Return the invitations into a study, newest first.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    asked = (
        select(*_shown_invite())
        .where(INVITES.c.study_id == study_id)
        .order_by(INVITES.c.created.desc(), INVITES.c.invite_id)
    )
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [InviteView.model_validate(invite) for invite in rows.execute(asked)]


def revoke_invite(state: StateStore, study_id: str, invite_id: str) -> InviteView:
    """Take an invitation back; who accepted it stays.

    Raises:
        RefusedError: 404 if the study has no such invitation.
    """
    revoked = update(INVITES).filter_by(invite_id=invite_id, study_id=study_id)
    with state.writing() as rows:
        change = revoked.values(uses_left=0, expires=now()).returning(*_shown_invite())
        found = rows.execute(change).one_or_none()
    if found is None:
        raise RefusedError(404, "There is no such invitation.")
    return InviteView.model_validate(found)


class Participant(View):
    """Somebody in a study.

    Args:
        person_id: unguessable.
        name: as they called themselves.
        role: what they may do.
        joined: when they came, in UTC.
        did_tutorial: whether they went through the tutorial.
        seconds: how long they have been at work.
        n_phrases: how many they submitted.
        n_accepted: how much of it was accepted.
        best_score: their largest Error Score; null before they submitted one.
        best_held_out_score: the largest on samples that the threshold was not chosen on.
        finished: classes that they are done with.
    """

    person_id: str
    name: str
    role: Role
    joined: Moment
    did_tutorial: bool
    seconds: float
    n_phrases: int
    n_accepted: int
    best_score: float | None
    best_held_out_score: float | None
    finished: list[str]


def participants(state: StateStore, person: Person, study_id: str) -> list[Participant]:
    """Return who takes part in a study, in the order they came; owners with a phrase in it too.

    Raises:
        RefusedError: 404 if the study is not for this person.
    """
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        submitted = {one["person_id"]: one for one in rows.execute(_figures(study_id)).mappings()}
        seconds = {
            one: total for (one, _), total in _seconds(rows, study_id, by_class=False).items()
        }
        finished = _finished(rows, study_id)
        people = rows.execute(select(PEOPLE).order_by(PEOPLE.c.created, PEOPLE.c.person_id)).all()
    nothing = {"n_phrases": 0, "n_accepted": 0, "best_score": None, "best_held_out_score": None}
    return [
        Participant(
            name=one.name,
            role=Role(one.role),
            joined=one.created,
            did_tutorial=one.did_tutorial,
            seconds=seconds.get(one.person_id, 0.0),
            finished=finished.get(one.person_id, []),
            **{"person_id": one.person_id, **nothing, **submitted.get(one.person_id, {})},
        )
        for one in people
        if one.study_id == study_id or one.person_id in submitted
    ]


def seconds_by_class(state: StateStore, study_id: str) -> dict[tuple[str, str], float]:
    with state.reading() as rows:
        found = _seconds(rows, study_id, by_class=True)
    return {
        (person_id, title): total
        for (person_id, title), total in found.items()
        if title is not None
    }


def stretches(
    state: StateStore, person: Person, study_id: str
) -> list[tuple[str, str, float, str]]:
    """Return every stretch of time at work in a study, oldest first: name, class, seconds, when it ended.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = (
        select(PEOPLE.c.name, ACTIVITY)
        .join(PEOPLE, PEOPLE.c.person_id == ACTIVITY.c.person_id)
        .where(ACTIVITY.c.study_id == study_id)
        .order_by(ACTIVITY.c.activity_id)
    )
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [
            (
                one.name,
                one.class_title or "",
                one.seconds,
                one.created.isoformat(timespec="seconds"),
            )
            for one in rows.execute(asked)
        ]


def finished_by(state: StateStore, person: Person, study_id: str) -> list[str]:
    with state.reading() as rows:
        return _finished(rows, study_id).get(person.person_id, [])


def finish_class(
    state: StateStore, person: Person, study_id: str, title: str, *, is_finished: bool
) -> None:
    """Write down that somebody is done with a class, or is not after all.

    Raises:
        RefusedError: 404 if the study is not theirs or has no such class, 409 if it is closed.
    """
    place = {"person_id": person.person_id, "study_id": study_id, "class_title": title}
    try:
        with state.writing() as rows:
            _check_open(rows, person, study_id, title)
            if not is_finished:
                rows.execute(delete(FINISHED).filter_by(**place))
            elif entry_of(rows, FINISHED, **place) is None:
                rows.execute(insert(FINISHED).values(**place, created=now()))
    except IntegrityError:
        pass  # Another window of the same person did so at the same moment.


def did_tutorial(state: StateStore, person: Person) -> bool:
    with state.reading() as rows:
        found = entry_of(rows, PEOPLE, person_id=person.person_id)
        return found is not None and found.did_tutorial


def finish_tutorial(state: StateStore, person: Person) -> None:
    with state.writing() as rows:
        rows.execute(update(PEOPLE).filter_by(person_id=person.person_id).values(did_tutorial=True))


def _figures(study_id: str) -> Select[*tuple[Any, ...]]:
    return (
        select(
            PHRASES.c.person_id,
            func.count().label("n_phrases"),
            func.count(PHRASES.c.slice_id).label("n_accepted"),
            func.max(PHRASES.c.score).label("best_score"),
            func.max(PHRASES.c.held_out_score).label("best_held_out_score"),
        )
        .where(PHRASES.c.study_id == study_id)
        .group_by(PHRASES.c.person_id)
    )


def _seconds(
    rows: Connection, study_id: str, *, by_class: bool
) -> dict[tuple[str, str | None], float]:
    place = ACTIVITY.c.class_title if by_class else ACTIVITY.c.study_id
    asked = select(ACTIVITY.c.person_id, place, func.sum(ACTIVITY.c.seconds)).where(
        ACTIVITY.c.study_id == study_id
    )
    found = rows.execute(asked.group_by(ACTIVITY.c.person_id, place)).all()
    return {(person_id, where): float(total) for person_id, where, total in found}


def _finished(rows: Connection, study_id: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    asked = select(FINISHED).filter_by(study_id=study_id).order_by(FINISHED.c.created)
    for one in rows.execute(asked):
        found.setdefault(one.person_id, []).append(one.class_title)
    return found


MAX_STRETCH = 60.0


def active_seconds(rows: Connection, person_id: str, study_id: str | None) -> float:
    asked = select(func.coalesce(func.sum(ACTIVITY.c.seconds), 0.0)).where(
        ACTIVITY.c.person_id == person_id, ACTIVITY.c.study_id == study_id
    )
    return float(rows.scalar(asked) or 0.0)


def report_activity(
    state: StateStore,
    person: Person,
    study_id: str,
    *,
    seconds: float,
    class_title: str | None = None,
) -> float:
    """Write down that somebody was at work, and return how long they have been at work in this study in all.

    What is counted is at most what the clock says since their last report (or since they came), whatever the page claims and from
    however many windows.

    Raises:
        RefusedError: 404 if the study is not theirs or has no such class, 409 if it is closed.
    """
    with state.writing() as rows:
        _check_open(rows, person, study_id, class_title)
        # The lock on the person makes two windows of the same person report one after the other.
        came = rows.scalars(
            select(PEOPLE.c.created).where(PEOPLE.c.person_id == person.person_id).with_for_update()
        ).one()
        last = rows.scalar(
            select(func.max(ACTIVITY.c.created)).where(ACTIVITY.c.person_id == person.person_id)
        )
        present = now()
        counted = max(0.0, min(seconds, MAX_STRETCH, (present - (last or came)).total_seconds()))
        stretch = insert(ACTIVITY).values(
            person_id=person.person_id,
            study_id=study_id,
            class_title=class_title,
            seconds=counted,
            created=present,
        )
        rows.execute(stretch)
        return active_seconds(rows, person.person_id, study_id)


def own_figures(state: StateStore, person: Person, study_id: str) -> tuple[float, int]:
    asked = select(func.count()).where(
        PHRASES.c.person_id == person.person_id, PHRASES.c.study_id == study_id
    )
    with state.reading() as rows:
        return active_seconds(rows, person.person_id, study_id), int(rows.scalar(asked) or 0)


Consent = tuple[str, bool | None]
"""When somebody agreed, empty if they have not; and whether they passed the attention check, None until it was answered."""


def agree(state: StateStore, person: Person, study_id: str) -> Consent:
    """Write down that somebody takes part; saying it twice changes nothing.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    with state.writing() as rows:
        seen_study(rows, person, study_id)
        known = _consent(rows, person, study_id)
        if known is None:
            place = {"person_id": person.person_id, "study_id": study_id}
            agreed = insert(CONSENTS).values(**place, agreed=now())
            known = rows.execute(agreed.returning(CONSENTS)).one()
        return _told(known)


def answer_attention(state: StateStore, person: Person, study_id: str, answer: str) -> Consent:
    """Write down the first answer to the attention check; a second one changes nothing.

    Raises:
        RefusedError: 404 if the study is not theirs, 409 if it has no such check or they have not agreed.
    """
    with state.writing() as rows:
        study = seen_study(rows, person, study_id)
        expected, known = attention_answer(study), _consent(rows, person, study_id)
        if not expected:
            raise RefusedError(409, "This study has no attention check.")
        if known is None:
            raise RefusedError(409, NOT_AGREED)
        if known.attention is None:
            own = update(CONSENTS).filter_by(person_id=person.person_id, study_id=study_id)
            first = own.values(attention=_plain(answer) == _plain(expected))
            known = rows.execute(first.returning(CONSENTS)).one()
        return _told(known)


def consent_of(state: StateStore, person: Person, study_id: str) -> Consent:
    with state.reading() as rows:
        known = _consent(rows, person, study_id)
        return ("", None) if known is None else _told(known)


def consents_of(state: StateStore, study_id: str) -> Mapping[str, Consent]:
    """Return what everybody agreed to, by the ids of people."""
    with state.reading() as rows:
        found = rows.execute(select(CONSENTS).filter_by(study_id=study_id))
        return {one.person_id: _told(one) for one in found}


def _told(consent: Entry) -> Consent:
    return consent.agreed.isoformat(timespec="seconds"), consent.attention


def _consent(rows: Connection, person: Person, study_id: str) -> Entry | None:
    return entry_of(rows, CONSENTS, person_id=person.person_id, study_id=study_id)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?\"'")


class PhraseView(StoredPhrase):
    """A phrase of the history of a class.

    Args:
        phrase_id: unguessable.
        slice_id: the slice that it became when it was accepted.
        by: whose it is.
    """

    phrase_id: str
    slice_id: str | None
    by: str


def keep_phrase(
    state: StateStore, person: Person, phrase: PhraseFigures, *, study_id: str | None
) -> PhraseView:
    """Write down a phrase; when this returns it is on disk. A figure that is no finite number is kept as null.

    Raises:
        RefusedError: 404 if the study is not theirs, 409 if it is closed.
        DataError: if a text cannot be kept.
    """
    kept: dict[str, Any] = {"phrase_id": secrets.token_urlsafe(12)}
    for name, value in phrase:
        kept[name] = storable(value, where=name) if isinstance(value, str) else _finite(value)
    with state.writing() as rows:
        if study_id is not None:
            _check_open(rows, person, study_id)
        kept |= {"seconds": active_seconds(rows, person.person_id, study_id), "created": now()}
        rows.execute(insert(PHRASES).values(person_id=person.person_id, study_id=study_id, **kept))
    return PhraseView(**kept, slice_id=None, by=person.name)


def phrases_of(
    state: StateStore, person: Person, *, study_id: str | None, class_title: str | None
) -> list[PhraseView]:
    """Return phrases, newest first: annotators get their own phrases, others all of the study or all outside studies.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = _phrases_in(study_id)
    if class_title is not None:
        asked = asked.where(PHRASES.c.class_title == storable(class_title, where="class_title"))
    if person.role is Role.ANNOTATOR:
        asked = asked.where(PHRASES.c.person_id == person.person_id)
    with state.reading() as rows:
        if study_id is not None:
            seen_study(rows, person, study_id)
        found = rows.execute(asked.order_by(PHRASES.c.created.desc(), PHRASES.c.phrase_id))
        return [PhraseView.model_validate(one) for one in found]


def study_phrases(state: StateStore, person: Person, study_id: str) -> list[tuple[str, PhraseView]]:
    """Return all phrases of a study with the ids of who submitted them, oldest first.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = _phrases_in(study_id).order_by(PHRASES.c.created, PHRASES.c.phrase_id)
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [(one.person_id, PhraseView.model_validate(one)) for one in rows.execute(asked)]


def _phrases_in(study_id: str | None) -> Select[*tuple[Any, ...]]:
    """Return the phrases of a study with the names of their people, or those outside of all studies."""
    submitted = select(PHRASES, PEOPLE.c.name.label("by"))
    joined = submitted.join(PEOPLE, PEOPLE.c.person_id == PHRASES.c.person_id)
    return joined.where(PHRASES.c.study_id == study_id)


def mark_accepted(state: StateStore, phrase_id: str, slice_id: str) -> None:
    """Remember which slice a phrase became; saying it twice changes nothing."""
    with state.writing() as rows:
        became = storable(slice_id, where="slice_id")
        rows.execute(update(PHRASES).filter_by(phrase_id=phrase_id).values(slice_id=became))


def _finite(value: float | None) -> float | None:
    """Return a number that every database can hold, None for what is none."""
    return float(value) if value is not None and math.isfinite(value) else None
