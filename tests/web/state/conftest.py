"""Empty databases: a SQLite file, and a real PostgreSQL server with its own folder and a socket instead of a port."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from weakspot.web.auth.login import add_person
from weakspot.web.state.store import Person, Role, StateStore
from weakspot.web.state.studies import StudyView, create_study

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.fixture(scope="session")
def postgres_server():
    """A running server: its address, with `{name}` for the name of a database. Root may not run one, so it becomes `postgres`."""
    assert PROGRAMS, "PostgreSQL is not installed: apt-get install postgresql"
    programs, user = PROGRAMS[-1], "postgres" if os.geteuid() == 0 else None
    # The path of a socket may have 107 characters, which the folders of pytest easily exceed.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if user:
        shutil.chown(folder, user, user)
    options = ["-U", "weakspot", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale"]
    make = [programs / "initdb", "-D", folder / "data", *options]
    subprocess.run(make, check=True, capture_output=True, user=user, cwd=folder)
    settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
    with (folder / "log").open("wb") as log:
        start = [programs / "postgres", "-D", folder / "data", *settings]
        server = subprocess.Popen(start, user=user, stdout=log, stderr=log, cwd=folder)
    try:
        while subprocess.run([programs / "pg_isready", "-q", "-h", folder], check=False).returncode:
            assert server.poll() is None, (folder / "log").read_text()
        yield f"postgresql://weakspot@/{{name}}?host={quote(str(folder), safe='')}"
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nothing in it is needed any more
        server.wait()
        shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_server) -> str:
    """The address of an empty PostgreSQL database."""
    name = f"state_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server.format(name="postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return postgres_server.format(name=name)


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    """The address of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'state.sqlite'}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request) -> str:
    """The address of an empty database, of either kind."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def state(url):
    """An empty shared state, in either kind of database."""
    store = StateStore(url)
    yield store
    store.close()


@pytest.fixture
def study(state) -> StudyView:
    """An open study of two classes."""
    return create_study(state, title="Discs", classes=["disc", "square"], instructions="")


@pytest.fixture
def somebody(state, study):
    """Return a function that makes somebody who takes part in the study, or is an owner."""

    def _somebody(name: str = "Ada", role: Role = Role.ANNOTATOR) -> Person:
        place = None if role is Role.OWNER else study.study_id
        with state.writing() as rows:
            return add_person(rows, name=name, role=role, study_id=place)

    return _somebody


def at_once(n_threads: int, do: Callable[[int], object]) -> None:
    """Do something in several threads that begin together, each with its number; what one raises is raised."""
    start = threading.Barrier(n_threads)

    def begin(number: int) -> None:
        start.wait()
        do(number)

    with ThreadPoolExecutor(n_threads) as threads:
        list(threads.map(begin, range(n_threads)))
