"""Facts about the machine: processor, memory, and which libraries import."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

_IMPORT_SCRIPT = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
try:
    from weakspot.models.torch.device import declare_torchvision_operators
    declare_torchvision_operators()
except BaseException:
    pass
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        problem = None
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print(json.dumps([name, problem]), flush=True)
"""


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def import_problems(modules: Sequence[str], *, timeout_seconds: float = 120.0) -> dict[str, str]:
    """Return what goes wrong on importing each module, by name, tried in another process so that a crash is survived."""
    present = [name for name in modules if importlib.util.find_spec(name) is not None]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT_SCRIPT, *present],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
        output, ending = done.stdout, f"the process ended with code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output, ending = error.stdout or b"", f"no end in {timeout_seconds:g} seconds"
    tried = dict(json.loads(line) for line in output.decode().splitlines() if line.startswith("["))
    unfinished = [name for name in present if name not in tried][:1]
    return {name: problem for name, problem in tried.items() if problem} | dict.fromkeys(
        unfinished, ending
    )


def free_memory_bytes(memory_info: Path = Path("/proc/meminfo")) -> int | None:
    """Return the memory that programs can still take, or None where the system does not tell."""
    try:
        for line in memory_info.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def processor_name() -> str:
    """Return the architecture and the number of processors."""
    return f"{platform.machine() or 'unknown'}, {os.cpu_count() or 1} processors"


def answers(address: str, *, timeout_seconds: float) -> bool:
    """Return whether somebody listens at `host:port`, with or without a scheme in front."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        with socket.create_connection(
            (parts.hostname or "", parts.port or 0), timeout=timeout_seconds
        ):
            return True
    except (OSError, ValueError):
        return False
