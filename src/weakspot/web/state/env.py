"""How migrations reach the database: through the connection that the state store hands over."""

from alembic import context

from weakspot.web.state.store import METADATA


def run_migrations() -> None:
    """Bring the database to the newest tables inside one transaction."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


# A program that only reads this file, for example to look for examples in it, has no database to migrate.
if hasattr(context, "config"):
    run_migrations()
