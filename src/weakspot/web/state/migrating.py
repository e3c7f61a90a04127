"""Bringing a database to today's tables, whoever else is doing the same at the moment."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from weakspot.core.errors import ConfigError

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
