"""Changes that people make, marks on samples, and samples that were picked out."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; the one that others point to comes first."""
    op.create_table(
        "changes",
        sa.Column("change_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("undone_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["undone_by"], ["changes.change_id"]),
        sa.PrimaryKeyConstraint("change_id"),
    )
    op.create_index("changes_by_subject", "changes", ["subject"])
    op.create_table(
        "marks",
        sa.Column("mark_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("sample_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("change_id", sa.Integer(), nullable=False),
        sa.Column("removed_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["change_id"], ["changes.change_id"]),
        sa.ForeignKeyConstraint(["removed_by"], ["changes.change_id"]),
        sa.PrimaryKeyConstraint("mark_id"),
    )
    for name, column in (
        ("sample", "sample_id"),
        ("change", "change_id"),
        ("removal", "removed_by"),
    ):
        op.create_index(f"marks_by_{name}", "marks", [column])
    op.create_table(
        "selections",
        sa.Column("selection_id", sa.String(), nullable=False),
        sa.Column("samples", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("selection_id"),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("selections")
    op.drop_table("marks")
    op.drop_table("changes")
