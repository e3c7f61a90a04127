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
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    URL,
    Boolean,
    Column,
    Connection,
    DateTime,
    Double,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    TypeDecorator,
    create_engine,
    event,
    select,
    text,
)
from sqlalchemy.engine import Dialect, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import DataError as UnfitValueError

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


METADATA = MetaData()
Entry = Row[*tuple[Any, ...]]
Filled = partial(Column[Any], nullable=False)
"""A column that is never null."""


def _points_to(place: str, **options: Any) -> Column[Any]:
    """Return a column that names something of another table; it goes when that does, unless the options say otherwise."""
    return Column(place.partition(".")[2], ForeignKey(place, ondelete="CASCADE"), **options)


PEOPLE = Table(
    "people",
    METADATA,
    Column("person_id", String, primary_key=True),
    Filled("name", String),
    Column("login", String, unique=True),
    Filled("role", String),
    _points_to("studies.study_id"),
    Column("password_hash", String),
    Filled("created", UtcTime),
    Filled("did_tutorial", Boolean, default=False),
)
"""Who may sign in again. Without a password hash they can sign in only with an invitation or the owner's token."""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("token_hash", String, primary_key=True),
    _points_to("people.person_id", nullable=False),
    Filled("created", UtcTime),
    Filled("last_seen", UtcTime),
    Filled("expires", UtcTime),
)
"""Browsers that somebody signed in with."""

STUDIES = Table(
    "studies",
    METADATA,
    Column("study_id", String, primary_key=True),
    Filled("title", String),
    Filled("classes", JSON, doc="{'titles': [...]}"),
    Filled("instructions", String, default=""),
    Filled("is_open", Boolean, default=True),
    Column(
        "options",
        JSON(none_as_null=True),
        doc="how it is done; null in studies of earlier versions",
    ),
    Filled("created", UtcTime),
)
"""Annotation studies: some classes that several people describe, each on their own."""

CONSENTS = Table(
    "consents",
    METADATA,
    _points_to("people.person_id", primary_key=True),
    _points_to("studies.study_id", primary_key=True),
    Filled("agreed", UtcTime),
    Column("attention", Boolean, doc="null until it was answered"),
)
"""Who agreed to take part in a study, and perhaps answered its attention check."""

INVITES = Table(
    "invites",
    METADATA,
    Column("invite_id", String, primary_key=True),
    Filled("token_hash", String, unique=True),
    _points_to("studies.study_id", nullable=False),
    Filled("role", String),
    Filled("uses", Integer, default=1, doc="how many people it was made for"),
    Filled("uses_left", Integer, doc="0 also when it was taken back"),
    Filled("created", UtcTime),
    Filled("expires", UtcTime),
)
"""Links by which people join a study, in a role."""

PHRASES = Table(
    "phrases",
    METADATA,
    Column("phrase_id", String, primary_key=True),
    Filled("person_id", ForeignKey("people.person_id")),
    Column("study_id", ForeignKey("studies.study_id")),
    Filled("class_title", String),
    Filled("phrase", String),
    Column("threshold", Double),
    Column("score", Double),
    Column("held_out_score", Double),
    Column("confirmed_score", Double, doc="null until the confirmation half was asked"),
    Column("p_value", Double),
    Filled("fit", String, default=""),
    Filled("source", String, default="not known", server_default="not known"),
    Filled("seconds", Double, default=0.0, doc="at work in this study when it was submitted"),
    Filled("created", UtcTime),
    Column("slice_id", String, doc="set when it was accepted"),
    Index("phrases_by_place", "study_id", "person_id", "class_title"),
)
"""Phrases that people submitted, with their figures; nothing is deleted or changed but what was accepted.

While one is there, neither its person nor its study can be deleted.
"""

ACTIVITY = Table(
    "activity",
    METADATA,
    Column("activity_id", Integer, primary_key=True, autoincrement=True),
    _points_to("people.person_id", nullable=False),
    _points_to("studies.study_id"),
    Column("class_title", String),
    Filled("seconds", Double),
    Filled("created", UtcTime),
    Index("activity_by_person", "person_id", "study_id"),
)
"""How long people were at work in a study, in short stretches that the page reports while it is looked at."""

FINISHED = Table(
    "finished_classes",
    METADATA,
    _points_to("people.person_id", primary_key=True),
    _points_to("studies.study_id", primary_key=True),
    Column("class_title", String, primary_key=True),
    Filled("created", UtcTime),
)
"""Classes of a study that somebody is done with."""

JOBS = Table(
    "jobs",
    METADATA,
    Column("job_id", String, primary_key=True),
    Filled("kind", String),
    Filled("arguments", JSON),
    Filled("state", String, doc="queued, running, done, failed, cancelled, interrupted"),
    Filled("stage", String, default=""),
    Filled("done", Integer, default=0),
    Column("total", Integer),
    Filled("message", String, default=""),
    Filled("result", JSON, default=dict),
    Filled("started_by", String, default=""),
    Filled("created", UtcTime),
    Column("finished", UtcTime),
)
"""Long work that somebody started."""

CHANGES = Table(
    "changes",
    METADATA,
    Column("change_id", Integer, primary_key=True, autoincrement=True),
    Filled("kind", String),
    Filled("subject", String, doc="what two people must not change at once"),
    Filled("sentence", String),
    Filled("by", String),
    Filled("created", UtcTime),
    Filled("data", JSON, default=dict, doc="what is needed to undo it"),
    Column("undone_by", ForeignKey("changes.change_id")),
    Index("changes_by_subject", "subject"),
)
"""What people changed; the last number is the version of everything that they share. Nothing is deleted."""

MARKS = Table(
    "marks",
    METADATA,
    Column("mark_id", Integer, primary_key=True, autoincrement=True),
    Filled("sample_id", String),
    Filled("kind", String, doc="label, unusable, note, tag"),
    Filled("labels", JSON, doc="{'names': [...]}, the right ones"),
    Filled("text", String, default=""),
    Filled("change_id", ForeignKey("changes.change_id")),
    Column("removed_by", ForeignKey("changes.change_id")),
    Index("marks_by_sample", "sample_id"),
    Index("marks_by_change", "change_id"),
    Index("marks_by_removal", "removed_by"),
)
"""What people said of samples; a mark that was taken back stays, with the change that did so."""

SELECTIONS = Table(
    "selections",
    METADATA,
    Column("selection_id", String, primary_key=True),
    Filled("samples", JSON, doc="{'ids': [...]}"),
    Filled("created", UtcTime),
)
"""Samples that somebody picked out, under a name that an address can hold."""


def entry_of(rows: Connection, table: Table, **key: str | int) -> Entry | None:
    """Return the entry of a table that has this key, None if there is none."""
    return rows.execute(select(table).filter_by(**key)).one_or_none()


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
        self._writer = self.engine.execution_options(**{WRITES: True})
        try:
            with self._reword_errors():
                migrate(self._writer, where=self._shown)
        except BaseException:
            self.close()
            raise

    @classmethod
    def beside(cls, data: Path) -> "StateStore":
        """Open the SQLite file in a folder."""
        return cls(f"sqlite:///{data / 'browser.sqlite'}")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection for reading; nothing is kept of what it changes, and it never waits for writers."""
        with self._reword_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection whose changes are on disk when the block ends, all of them or none.

        SQLite takes its lock at once, so that writers queue up instead of failing half-way.
        """
        with self._reword_errors(), self._writer.begin() as connection:
            yield connection

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
