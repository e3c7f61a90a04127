"""A small disk of its own for a test: a file system in memory, in a name space that ends with the script that runs in it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ENTER = (
    ("unshare", "--user", "--map-root-user", "--mount") if os.geteuid() else ("unshare", "--mount")
)


def on_own_disk(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run shell lines with an empty disk mounted at a folder.

    Args:
        folder: where the disk is; it is empty again when the lines have ended.
        script: shell lines; `resize N` gives the disk N kilobytes, `freeze` makes it read-only, `weakspot` is the command.
    """
    place = shlex.quote(str(folder))
    head = f"""
    set -u
    mount -t tmpfs -o size=64m tmpfs {place}
    cd {place}
    resize() {{ mount -o "remount,size=$1k" {place}; }}
    freeze() {{ mount -o remount,ro {place}; }}
    weakspot() {{ {shlex.quote(sys.executable)} -m weakspot "$@"; }}
    """
    command = [*ENTER, "sh", "-c", head + script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=environment
    )
