"""The tables of the shared state. Times are UTC, identifiers unguessable; no table holds a secret, only hashes of them."""

import hashlib
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, DateTime, ForeignKey, Index, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


def token_hash(token: str) -> str:
    """Return what is stored of a token: nobody can sign in with it.

    >>> token_hash("apple")[:8]
    '3a7bd3e2'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class UtcTime(TypeDecorator[datetime]):
    """A time that comes back as it went in, also from SQLite, which knows no zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a time without a zone: it would mean something else on another machine."""
        del dialect
        if value is not None and value.tzinfo is None:
            raise ValueError("A time needs a zone.")
        return value if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Table(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map: ClassVar = {datetime: UtcTime, dict[str, Any]: JSON}


class PersonRow(Table):
    """Somebody who may sign in again. Without a password hash they can sign in only with an invitation or the owner's token."""

    __tablename__ = "people"

    person_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    login: Mapped[str | None] = mapped_column(unique=True)
    role: Mapped[str]
    study_id: Mapped[str | None] = mapped_column(ForeignKey("studies.study_id", ondelete="CASCADE"))
    password_hash: Mapped[str | None]
    created: Mapped[datetime]
    did_tutorial: Mapped[bool] = mapped_column(default=False)


class SessionRow(Table):
    """A browser that somebody signed in with."""

    __tablename__ = "sessions"

    token_hash: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("people.person_id", ondelete="CASCADE"))
    created: Mapped[datetime]
    last_seen: Mapped[datetime]
    expires: Mapped[datetime]


class StudyRow(Table):
    """An annotation study: some classes that several people describe, each on their own."""

    __tablename__ = "studies"

    study_id: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    classes: Mapped[dict[str, Any]] = mapped_column(doc="{'titles': [...]}")
    instructions: Mapped[str] = mapped_column(default="")
    is_open: Mapped[bool] = mapped_column(default=True)
    options: Mapped[dict[str, Any] | None] = mapped_column(
        doc="how it is done: suggestions, consent, attention check, given groups; null in studies of earlier versions"
    )
    created: Mapped[datetime]


class ConsentRow(Table):
    """Somebody agreed to take part in a study, and perhaps answered its attention check."""

    __tablename__ = "consents"

    person_id: Mapped[str] = mapped_column(
        ForeignKey("people.person_id", ondelete="CASCADE"), primary_key=True
    )
    study_id: Mapped[str] = mapped_column(
        ForeignKey("studies.study_id", ondelete="CASCADE"), primary_key=True
    )
    agreed: Mapped[datetime]
    attention: Mapped[bool | None] = mapped_column(doc="null until it was answered")


class InviteRow(Table):
    """A link by which people join a study, in a role."""

    __tablename__ = "invites"

    invite_id: Mapped[str] = mapped_column(primary_key=True)
    token_hash: Mapped[str] = mapped_column(unique=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("studies.study_id", ondelete="CASCADE"))
    role: Mapped[str]
    uses: Mapped[int] = mapped_column(default=1, doc="how many people it was made for")
    uses_left: Mapped[int] = mapped_column(doc="0 also when it was taken back")
    created: Mapped[datetime]
    expires: Mapped[datetime]

    @property
    def is_good(self) -> bool:
        return self.uses_left > 0 and self.expires > datetime.now(UTC)


class PhraseRow(Table):
    """A phrase that somebody submitted for a class, with its figures; nothing is ever deleted or changed but what was accepted.

    While it is there, neither its person nor its study can be deleted.

    `score` and `held_out_score` are of the discovery half (threshold chosen on all of it, and on other parts of it);
    `confirmed_score` and `p_value` of the confirmation half, null until it was asked.
    """

    __tablename__ = "phrases"
    __table_args__ = (Index("phrases_by_place", "study_id", "person_id", "class_title"),)

    phrase_id: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("people.person_id"))
    study_id: Mapped[str | None] = mapped_column(ForeignKey("studies.study_id"))
    class_title: Mapped[str]
    phrase: Mapped[str]
    threshold: Mapped[float | None]
    score: Mapped[float | None]
    held_out_score: Mapped[float | None]
    confirmed_score: Mapped[float | None]
    p_value: Mapped[float | None]
    fit: Mapped[str] = mapped_column(default="")
    source: Mapped[str] = mapped_column(
        default="not known",
        server_default="not known",
        doc="own, suggestion, edited, or not known",
    )
    seconds: Mapped[float] = mapped_column(
        default=0.0, doc="active seconds of this person in this study when it was submitted"
    )
    created: Mapped[datetime]
    slice_id: Mapped[str | None] = mapped_column(doc="set when it was accepted")


class ActivityRow(Table):
    """How long somebody was at work in a study, in short stretches that the page reports while it is looked at."""

    __tablename__ = "activity"
    __table_args__ = (Index("activity_by_person", "person_id", "study_id"),)

    activity_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("people.person_id", ondelete="CASCADE"))
    study_id: Mapped[str | None] = mapped_column(ForeignKey("studies.study_id", ondelete="CASCADE"))
    class_title: Mapped[str | None]
    seconds: Mapped[float]
    created: Mapped[datetime]


class FinishedRow(Table):
    """Somebody marked as finished a class of a study."""

    __tablename__ = "finished_classes"

    person_id: Mapped[str] = mapped_column(
        ForeignKey("people.person_id", ondelete="CASCADE"), primary_key=True
    )
    study_id: Mapped[str] = mapped_column(
        ForeignKey("studies.study_id", ondelete="CASCADE"), primary_key=True
    )
    class_title: Mapped[str] = mapped_column(primary_key=True)
    created: Mapped[datetime]


class JobRow(Table):
    """Long work that somebody started."""

    __tablename__ = "jobs"

    job_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    arguments: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(doc="queued, running, done, failed, cancelled, interrupted")
    stage: Mapped[str] = mapped_column(default="")
    done: Mapped[int] = mapped_column(default=0)
    total: Mapped[int | None]
    message: Mapped[str] = mapped_column(default="")
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    started_by: Mapped[str] = mapped_column(default="")
    created: Mapped[datetime]
    finished: Mapped[datetime | None]


class ChangeRow(Table):
    """Something that somebody changed; its number is the version of everything that people share. Nothing is deleted."""

    __tablename__ = "changes"
    __table_args__ = (Index("changes_by_subject", "subject"),)

    change_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    kind: Mapped[str]
    subject: Mapped[str] = mapped_column(doc="what two people must not change at once")
    sentence: Mapped[str]
    by: Mapped[str]
    created: Mapped[datetime]
    data: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="what is needed to undo it")
    undone_by: Mapped[int | None] = mapped_column(ForeignKey("changes.change_id"))


class MarkRow(Table):
    """What somebody said of a sample; one that was taken back stays, with the change that did so."""

    __tablename__ = "marks"
    __table_args__ = (
        Index("marks_by_sample", "sample_id"),
        Index("marks_by_change", "change_id"),
        Index("marks_by_removal", "removed_by"),
    )

    mark_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    sample_id: Mapped[str]
    kind: Mapped[str] = mapped_column(doc="label, unusable, note, tag")
    labels: Mapped[dict[str, Any]] = mapped_column(doc="{'names': [...]}, the right ones")
    text: Mapped[str] = mapped_column(default="")
    change_id: Mapped[int] = mapped_column(ForeignKey("changes.change_id"))
    removed_by: Mapped[int | None] = mapped_column(ForeignKey("changes.change_id"))


class SelectionRow(Table):
    """Samples that somebody picked out, under a name that an address can hold."""

    __tablename__ = "selections"

    selection_id: Mapped[str] = mapped_column(primary_key=True)
    samples: Mapped[dict[str, Any]] = mapped_column(doc="{'ids': [...]}")
    created: Mapped[datetime]
