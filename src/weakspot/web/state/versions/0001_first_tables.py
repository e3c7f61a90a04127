"""People, sessions, studies, phrases, jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; those that others point to come first."""
    _jobs()
    _studies()
    _invites()
    _people()
    _activity()
    _finished_classes()
    _phrases()
    _sessions()


def downgrade() -> None:
    """Bring the tables back."""
    op.drop_table("sessions")
    op.drop_table("finished_classes")
    with op.batch_alter_table("phrases", schema=None) as batch_op:
        batch_op.drop_index("phrases_by_place")

    op.drop_table("phrases")
    with op.batch_alter_table("activity", schema=None) as batch_op:
        batch_op.drop_index("activity_by_person")

    op.drop_table("activity")
    op.drop_table("people")
    op.drop_table("invites")
    op.drop_table("studies")
    op.drop_table("jobs")


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("started_by", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("job_id"),
    )


def _studies() -> None:
    op.create_table(
        "studies",
        sa.Column("study_id", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("classes", sa.JSON(), nullable=False),
        sa.Column("instructions", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("study_id"),
    )


def _invites() -> None:
    op.create_table(
        "invites",
        sa.Column("invite_id", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("invite_id"),
        sa.UniqueConstraint("token_hash"),
    )


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("login", sa.String(), nullable=True),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=True),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("did_tutorial", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("person_id"),
        sa.UniqueConstraint("login"),
    )


def _activity() -> None:
    op.create_table(
        "activity",
        sa.Column("activity_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=True),
        sa.Column("class_title", sa.String(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("activity_id"),
    )
    with op.batch_alter_table("activity", schema=None) as batch_op:
        batch_op.create_index("activity_by_person", ["person_id", "study_id"], unique=False)


def _finished_classes() -> None:
    op.create_table(
        "finished_classes",
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=False),
        sa.Column("class_title", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("person_id", "study_id", "class_title"),
    )


def _phrases() -> None:
    op.create_table(
        "phrases",
        sa.Column("phrase_id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("study_id", sa.String(), nullable=True),
        sa.Column("class_title", sa.String(), nullable=False),
        sa.Column("phrase", sa.String(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("held_out_score", sa.Double(), nullable=True),
        sa.Column("confirmed_score", sa.Double(), nullable=True),
        sa.Column("p_value", sa.Double(), nullable=True),
        sa.Column("fit", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("slice_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"]),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"]),
        sa.PrimaryKeyConstraint("phrase_id"),
    )
    with op.batch_alter_table("phrases", schema=None) as batch_op:
        batch_op.create_index(
            "phrases_by_place", ["study_id", "person_id", "class_title"], unique=False
        )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("csrf_hash", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_hash"),
    )
