"""The database behind the shared state: its tables, and one URL, migrated to today's tables when it is opened.

Times are UTC, identifiers unguessable; no table holds a secret, only hashes of them.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    URL,
    Connection,
    DateTime,
    Engine,
    ForeignKey,
    Index,
    TypeDecorator,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import Dialect, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import DataError as UnfitValueError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from weakspot.core.errors import ConfigError, DataError, MissingExtraError, UnavailableError


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


HERE = Path(__file__).parent
LOCK = 7_319_604_421


def configuration(connection: Connection) -> Config:
    """Return where the migrations are and what they work on."""
    config = Config()
    config.set_main_option("script_location", str(HERE).replace("%", "%%"))
    config.set_main_option("version_locations", str(HERE / "versions").replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    return config


def migrate(engine: Engine, *, where: str) -> None:
    """Bring a database to today's tables, in one transaction.

    Of several servers that do it at once one does the work and the others wait for it.

    Args:
        engine: the database, for writing.
        where: what to call it.

    Raises:
        ConfigError: if a newer weakspot wrote the database, or its tables are not ours.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        config = configuration(connection)
        scripts = ScriptDirectory.from_config(config)
        present = set(MigrationContext.configure(connection).get_current_heads())
        if present - {script.revision for script in scripts.walk_revisions()}:
            raise ConfigError(
                "The database of the browser was written by a newer weakspot.",
                where=where,
                fix="Upgrade weakspot, or give another database with --state.",
            )
        if present != set(scripts.get_heads()):
            _upgrade(config, where=where)


def _upgrade(config: Config, *, where: str) -> None:
    try:
        command.upgrade(config, "head")
    except SQLAlchemyError as error:
        raise ConfigError(
            "The database of the browser cannot be brought to today's tables.",
            where=where,
            fix="Give a database of its own with --state.",
        ) from error


WAIT_SECONDS = 30
KEPT_CONNECTIONS = 8
MORE_CONNECTIONS = 40
WRITES = "weakspot_writes"


def now() -> datetime:
    """Return the present, with its zone."""
    return datetime.now(UTC)


class StateStore:
    """The shared state. Several threads, processes and servers may use the same database at once.

    Args:
        url: `sqlite:///file` or `postgresql://user@host/name`.

    Raises:
        ConfigError: if the address is none, or a newer weakspot wrote the database.
        MissingExtraError: if the driver is not installed.
        UnavailableError: if the database cannot be reached.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._shown = _shown(url)
        self._readers = sessionmaker(self.engine, expire_on_commit=False)
        self._writers = sessionmaker(
            self.engine.execution_options(**{WRITES: True}), expire_on_commit=False
        )
        try:
            with self._reword_errors():
                migrate(self.engine.execution_options(**{WRITES: True}), where=self._shown)
        except BaseException:
            self.close()
            raise

    @classmethod
    def beside(cls, data: Path) -> "StateStore":
        """Open the SQLite file in a folder."""
        return cls(f"sqlite:///{data / 'browser.sqlite'}")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session for reading; nothing is kept of what it changes, and it never waits for writers."""
        with self._reword_errors(), self._readers() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session whose changes are on disk when the block ends, all of them or none.

        SQLite takes its lock at once, so that writers queue up instead of failing half-way.
        """
        with self._reword_errors(), self._writers() as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _reword_errors(self) -> Iterator[None]:
        """Say what a database refuses in plain words."""
        try:
            yield
        except OperationalError as error:
            raise UnavailableError(
                "The database of the browser does not answer.",
                where=self._shown,
                given=str(error.orig).strip(),
                fix="Check --state, and that the database is running.",
            ) from error
        except (UnfitValueError, UnicodeEncodeError) as error:
            raise DataError("A value cannot be kept in the database.") from error


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise ConfigError(
                "The state can be kept in SQLite or PostgreSQL.", where="--state", given=_shown(url)
            )
        if parsed.get_backend_name() == "sqlite":
            return _sqlite_engine(parsed)
        return create_engine(
            parsed, pool_pre_ping=True, pool_size=KEPT_CONNECTIONS, max_overflow=MORE_CONNECTIONS
        )
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(
            "This is no address of a database.", where="--state", given=_shown(url)
        ) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "psycopg", extra="postgres", purpose="PostgreSQL addresses"
        ) from error


def _sqlite_engine(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ConfigError(
            "The state needs a file.", where="--state", given=str(url), fix="Give sqlite:///file."
        )
    engine = create_engine(
        url,
        pool_size=KEPT_CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        _keep_log_ahead(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # IMMEDIATE: a transaction that reads first and writes later would otherwise fail when another wrote in between.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _keep_log_ahead(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on; SQLite does not wait by itself when two processes do this to a new file at once."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _shown(url: str) -> str:
    """Return an address without its password."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":…@") if parts.password else url
