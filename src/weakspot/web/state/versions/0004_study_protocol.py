"""Studies with options, who agreed to take part, and where phrases come from."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier studies showed suggestions and asked for nothing; where their phrases came from is not known."""
    with op.batch_alter_table("studies", schema=None) as batch_op:
        batch_op.add_column(sa.Column("options", sa.JSON(), nullable=True))
    with op.batch_alter_table("phrases", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("source", sa.String(), nullable=False, server_default="not known")
        )
    op.create_table(
        "consents",
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=False),
        sa.Column("agreed", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attention", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("person_id", "study_id"),
    )


def downgrade() -> None:
    """Take them away again."""
    op.drop_table("consents")
    with op.batch_alter_table("phrases", schema=None) as batch_op:
        batch_op.drop_column("source")
    with op.batch_alter_table("studies", schema=None) as batch_op:
        batch_op.drop_column("options")
