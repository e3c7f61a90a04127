import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Insert, func, insert, inspect, select, text, update
from tests.web.state.conftest import at_once

from weakspot.core.errors import ConfigError, DataError, UnavailableError
from weakspot.web.state.store import METADATA, SESSIONS, STUDIES, StateStore, configuration, now

N_OPENERS = 4
OPEN = (
    "import sys; from weakspot.web.state.store import StateStore; StateStore(sys.argv[1]).close()"
)


def test_tables__after_migrating__are_those_of_the_models(state):
    with state.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, METADATA) == []


def test_migrations__down_and_up_again__leave_today_s_tables(state):
    with state.engine.begin() as connection:
        command.downgrade(configuration(connection), "base")
        left = set(MigrationContext.configure(connection).get_current_heads())
        assert left == set()
    with state.engine.begin() as connection:
        command.upgrade(configuration(connection), "head")
    with state.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_migrations__database_of_the_first_revision__keeps_its_sessions(state, url):
    day = "'2026-01-01 00:00:00'"
    with state.engine.begin() as connection:
        command.downgrade(configuration(connection), "0001")
        for inserted in (
            f"people (person_id, name, role, created, did_tutorial) VALUES ('p', 'A', 'owner', {day}, false)",
            "sessions (token_hash, person_id, csrf_hash, created, last_seen, expires) "
            f"VALUES ('hash', 'p', 'unread', {day}, {day}, {day})",
        ):
            connection.execute(text(f"INSERT INTO {inserted}"))
    StateStore(url).close()
    with state.engine.connect() as connection:
        assert connection.scalars(select(SESSIONS.c.token_hash)).all() == ["hash"]
        assert "csrf_hash" not in {
            column["name"] for column in inspect(connection).get_columns("sessions")
        }


def test_store__several_processes_open_an_empty_database__all_succeed(url):
    openers = [
        subprocess.Popen([sys.executable, "-c", OPEN, url], stderr=subprocess.PIPE)
        for _ in range(N_OPENERS)
    ]
    assert [opener.communicate()[1] for opener in openers] == [b""] * N_OPENERS
    assert [opener.returncode for opener in openers] == [0] * N_OPENERS


def test_store__database_of_a_newer_weakspot__is_refused_and_left_alone(state, url):
    with state.writing() as rows:
        rows.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="newer weakspot"):
        StateStore(url)
    with state.reading() as rows:
        assert rows.scalar(text("SELECT version_num FROM alembic_version")) == "9999"


def test_store__tables_of_somebody_else__are_refused(url):
    store = StateStore(url)
    with store.writing() as rows:
        rows.execute(text("DROP TABLE alembic_version"))
    with pytest.raises(ConfigError, match="today's tables"):
        StateStore(url)
    store.close()


def test_store__address_of_no_usable_database__is_refused():
    none = ("nonsense", "mysql://host/name", "postgresql+nothing://h/n")
    for address in (*none, "sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ConfigError, match="state|database"):
            StateStore(address)


def test_store__folder_of_the_file_does_not_exist__is_unavailable(tmp_path):
    with pytest.raises(UnavailableError, match="does not answer"):
        StateStore(f"sqlite:///{tmp_path / 'nowhere' / 'state.sqlite'}")


def test_store__unreachable_server__is_unavailable_and_hides_the_password(tmp_path):
    with pytest.raises(UnavailableError) as caught:
        StateStore(f"postgresql://me:secret@/name?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_writing__an_error_inside__keeps_nothing(state):
    with pytest.raises(RuntimeError):
        _add(state, "one", fails=True)
    assert _n_studies(state) == 0


def test_reading__changes_inside__are_not_kept(state):
    with state.reading() as rows:
        rows.execute(_study("one"))
    assert _n_studies(state) == 0


def test_reading__while_another_writes__sees_the_old_state_without_waiting(state):
    with state.writing() as rows:
        rows.execute(_study("one"))
        assert _n_studies(state) == 0
    assert _n_studies(state) == 1


def test_writing__many_threads_count_up_one_row__loses_no_update(state):
    with state.writing() as rows:
        rows.execute(_study("0"))
    at_once(8, lambda _: _count_up(state, 20))
    with state.reading() as rows:
        assert rows.scalar(select(STUDIES.c.title)) == "160"


def _count_up(state: StateStore, times: int) -> None:
    for _ in range(times):
        with state.writing() as rows:
            title = rows.scalar(select(STUDIES.c.title).with_for_update())
            rows.execute(update(STUDIES).values(title=str(int(title) + 1)))


def test_writing__half_a_character__is_said_in_plain_words(state):
    with pytest.raises(DataError, match="cannot be kept"):
        _add(state, "half \ud800")


def test_times__stored_and_read__are_the_same_instant_in_utc(state):
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=5)))
    with state.writing() as rows:
        rows.execute(_study("one").values(created=moment))
    with state.reading() as rows:
        found = rows.scalar(select(STUDIES.c.created))
    assert found == moment
    assert found.utcoffset().total_seconds() == 0


def _study(title: str) -> Insert:
    return insert(STUDIES).values(
        study_id=title[:1].encode(errors="ignore").hex() or "x",
        title=title,
        classes={"titles": []},
        created=now(),
    )


def _add(state: StateStore, title: str, *, fails: bool = False) -> None:
    with state.writing() as rows:
        rows.execute(_study(title))
        if fails:
            raise RuntimeError


def _n_studies(state: StateStore) -> int:
    with state.reading() as rows:
        return rows.scalar(select(func.count()).select_from(STUDIES))
