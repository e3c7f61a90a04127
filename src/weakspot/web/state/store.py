"""The database behind the shared state: one URL, migrated to today's tables when it is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from weakspot.core.errors import ConfigError, MissingExtraError, UnavailableError

SQLITE_WAIT_SECONDS = 30
MIGRATIONS = Path(__file__).parent / "versions"


def now() -> datetime:
    """Return the present, with its zone."""
    return datetime.now(UTC)


class StateStore:
    """The shared state.

    Args:
        url: `sqlite:///file` or `postgresql://user@host/name`.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)
        self._migrate(url)

    @classmethod
    def beside(cls, data: Path) -> "StateStore":
        """Open the SQLite file in a folder."""
        return cls(f"sqlite:///{data / 'browser.sqlite'}")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session for reading; nothing is kept of what it changes."""
        with self._sessions() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a session whose changes are on disk when the block ends, all of them or none.

        SQLite takes its lock at once, so that writers queue up instead of failing half-way.
        """
        with self._sessions() as session, session.begin():
            yield session

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def _migrate(self, url: str) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS.parent))
        config.set_main_option("version_locations", str(MIGRATIONS))
        config.set_main_option("path_separator", "os")
        try:
            with self.engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except OperationalError as error:
            raise UnavailableError(
                "The database of the browser cannot be opened.",
                where=_shown(url),
                given=str(error.orig).strip(),
                fix="Check --state.",
            ) from error
        except SQLAlchemyError as error:
            raise ConfigError("The database of the browser cannot be brought to today's tables.", where=_shown(url)) from error


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise ConfigError("The state can be kept in SQLite or PostgreSQL.", where="--state", given=_shown(url))
        if parsed.get_backend_name() == "sqlite":
            return _sqlite_engine(parsed)
        return create_engine(parsed, pool_pre_ping=True, pool_size=8, max_overflow=16)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError("This is no address of a database.", where="--state", given=_shown(url)) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError("psycopg", extra="postgres", purpose="PostgreSQL addresses") from error


def _sqlite_engine(url: Any) -> Engine:
    engine = create_engine(url, connect_args={"timeout": SQLITE_WAIT_SECONDS, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        # IMMEDIATE: a transaction that reads first and writes later would otherwise fail when another wrote in between.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _shown(url: str) -> str:
    """Return an address without its password."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":…@") if parts.password else url
