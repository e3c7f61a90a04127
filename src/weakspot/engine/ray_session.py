"""One connection to Ray a process. Ray is imported here, on first use, and nowhere else."""

import importlib
import logging
import os
import socket
import warnings
from typing import Any

from weakspot.core.errors import MissingExtraError, UnavailableError, WeakspotError
from weakspot.engine.ahead import available_cores

BEFORE_IMPORT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""No usage statistics, and nothing of Ray's own on our standard output: lost workers are our business."""
LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's switch for clusters of one machine: all its servers then listen on the loopback address only."""


PATIENCE_SECONDS = 10.0
OWN_VARIABLES = "WEAKSPOT_"
"""Settings that workers read from their environment, such as the size of the cache of remote pictures."""


def connected_ray(address: str) -> Any:
    """Return the library, connected to a cluster.

    Args:
        address: empty for a cluster of this machine, which is started now and stopped when this process ends. An address is not
            looked at if this process is connected already.

    Raises:
        MissingExtraError: if Ray is not installed.
        UnavailableError: if there is no cluster at the address.
    """
    ray = loaded_ray(loopback_only=not address)
    if not ray.is_initialized():
        # Ray's own start-up code is not free of warnings, and users can do nothing about them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _connect(ray, address)
    return ray


def loaded_ray(*, loopback_only: bool) -> Any:
    """Return the library, imported so that it sends no statistics and keeps quiet.

    Args:
        loopback_only: whether clusters that this process starts are for this machine alone.

    Raises:
        MissingExtraError: if Ray is not installed.
    """
    for name, value in {**BEFORE_IMPORT, **(LOOPBACK_ONLY if loopback_only else {})}.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name == "ray":
            raise MissingExtraError("ray", extra="ray", purpose="Maps on a cluster") from error
        raise WeakspotError(f"'ray' is installed, but {error.name!r}, which it needs, is not.", fix="Reinstall ray.") from error


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        if address:
            _knock(address)
            own = {name: value for name, value in os.environ.items() if name.startswith(OWN_VARIABLES)}
            ray.init(address=address, runtime_env={"env_vars": own}, **quiet)
        else:
            ray.init(address="local", num_cpus=available_cores(), include_dashboard=False, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        first_line = str(error).strip().split("\n", maxsplit=1)[0]
        raise UnavailableError(
            f"No Ray cluster could be reached or started: {first_line}",
            where="[engine] options, address",
            given=address,
            fix="Start one with `ray start --head`, correct the address, or leave it empty for this machine.",
        ) from error


def _knock(address: str) -> None:
    """Raise an OSError if nobody listens there; Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS).close()
