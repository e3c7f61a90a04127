"""Sessions without the hash of the CSRF token: the token follows from the session's own, so nothing read the hash."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column; people stay signed in."""
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.drop_column("csrf_hash")


def downgrade() -> None:
    """Bring the column back, empty."""
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("csrf_hash", sa.String(), nullable=False, server_default=""))
