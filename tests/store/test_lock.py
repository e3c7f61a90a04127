import os
import signal
import subprocess
import sys

import pytest

from weakspot.core.errors import StoreError
from weakspot.store import atomic

HOLD = """
import sys, time
from pathlib import Path
from weakspot.store import atomic as lock
with lock.exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield path, process
    process.kill()
    process.wait()
    process.stdout.close()


def test_exclusive__names_the_other_process(holder):
    path, process = holder
    with (
        pytest.raises(
            StoreError, match=rf"written by process {process.pid} on .+, since \d{{4}}-"
        ) as caught,
        atomic.exclusive(path),
    ):
        pass
    assert "nothing to delete" in caught.value.fix


def test_exclusive__killed_holder_lets_go(holder):
    path, process = holder
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with atomic.exclusive(path):
        assert str(os.getpid()) in path.read_text()
    assert path.read_text() == ""
