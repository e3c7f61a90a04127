"""The database behind the shared state: one URL, migrated to today's tables when it is opened."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import DataError as UnfitValueError
from sqlalchemy.orm import Session, sessionmaker

from weakspot.core.errors import ConfigError, DataError, MissingExtraError, UnavailableError

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
