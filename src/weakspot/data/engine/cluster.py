"""Heavy maps on a Ray cluster: workers are actors, placed by what the cluster has.

Ray is imported here, on first use, and nowhere else.
"""

import importlib
import logging
import math
import os
import socket
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from weakspot.core.bounds import NonNegative, NonNegativeInt, check_bounds
from weakspot.core.errors import MissingExtraError, UnavailableError, WeakspotError
from weakspot.core.machine import available_cores
from weakspot.core.roles import BatchWork, Item, Result
from weakspot.data.engine.chunks import (
    BatchPace,
    ChunkQueue,
    MapPace,
    OneByOne,
    refuse_empty_batches,
)
from weakspot.data.engine.pool import Death, WorkerPool
from weakspot.data.engine.worker import Dumps, WorkerSide, batch_order, own_version

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
"""Settings that workers read from their environment, such as the size of the cache of remote images."""


def connect_ray(address: str) -> Any:
    """Return the library, connected to a cluster.

    Args:
        address: empty for a cluster of this machine, which is started now and stopped when this process ends. An address is not
            looked at if this process is connected already.

    Raises:
        MissingExtraError: if Ray is not installed.
        UnavailableError: if there is no cluster at the address.
    """
    ray = load_ray(loopback_only=not address)
    if not ray.is_initialized():
        # Ray's own start-up code is not free of warnings, and users can do nothing about them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _connect(ray, address)
    return ray


def load_ray(*, loopback_only: bool) -> Any:
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
        raise WeakspotError(
            f"'ray' is installed, but {error.name!r}, which it needs, is not.", fix="Reinstall ray."
        ) from error


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        if address:
            _check_listener(address)
            own = {
                name: value for name, value in os.environ.items() if name.startswith(OWN_VARIABLES)
            }
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


def _check_listener(address: str) -> None:
    """Raise an OSError if nobody listens there; Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS).close()


LOOK_SECONDS = 2.0


class RayWorkers:
    """Starts actors, as many as asked for or as the cluster has room for.

    Args:
        address: of the cluster.
        n_workers: 0 means as many as there is room for.
        cpus: cores that an actor claims; 0 means all cores of the smallest machine (with graphics processors: its share of them).
        gpus: graphics processors that it claims; None means one if the cluster has any.
    """

    def __init__(self, *, address: str, n_workers: int, cpus: float, gpus: float | None) -> None:
        self._ray = connect_ray(address)
        self._n_workers = n_workers
        self._looked_at = -math.inf
        self._n_places = 1
        machines = self._machines()
        has_gpus = any(machine.get("GPU", 0.0) for machine in machines)
        self._gpus = float(has_gpus) if gpus is None else gpus
        self._cpus = cpus or _share_of_smallest(machines, self._gpus)
        self._actor = self._ray.remote(_Actor)
        self.dumps: Dumps = self._ray.cloudpickle.dumps

    @property
    def n_threads(self) -> int:
        return max(1, int(self._cpus))

    def n_wanted(self) -> int:
        """Return the number asked for, or how many workers fit into the cluster as it is now."""
        if self._n_workers:
            return self._n_workers
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._n_places = max(1, sum(self._places(machine) for machine in self._machines()))
            self._looked_at = time.monotonic()
        return self._n_places

    def start(self) -> "RayWorker":
        """Return a new actor; Ray places it when there is room, and asks its autoscaler for machines if there is none."""
        placed = self._actor.options(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        return RayWorker(self._ray, placed.remote(self.dumps))

    def _machines(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _places(self, machine: dict[str, float]) -> int:
        by_cpus = int(machine.get("CPU", 0.0) / self._cpus)
        return min(by_cpus, int(machine.get("GPU", 0.0) / self._gpus)) if self._gpus else by_cpus


class _Actor(WorkerSide):
    """A place of work that knows its machine."""

    def machine(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())


class RayWorker:
    """One actor. It is not restarted by Ray: whatever it had is given to others, who may be there already."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._machine: Future[str] = actor.machine.remote().future()

    def start(self, order: bytes) -> "Future[bytes]":
        """Send the order; done when the actor has a place and is ready."""
        return self._future(self._actor.start.remote(order, own_version()))

    def begin(self, number: int, items: bytes) -> None:
        self._actor.begin.remote(number, items)

    def finish(self, number: int) -> "Future[bytes]":
        return self._future(self._actor.finish.remote(number))

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        return self._future(self._actor.do.remote(number, items))

    def death(self, error: BaseException) -> Death | None:
        """Say whether the actor is gone, or its whole machine."""
        known = self._ray.exceptions
        if not isinstance(
            error,
            known.RayActorError
            | known.ObjectLostError
            | known.NodeDiedError
            | known.OutOfMemoryError,
        ):
            return None
        return (
            "machine" if getattr(error, "preempted", False) or self._is_machine_gone() else "worker"
        )

    def stop(self) -> None:
        """End the actor at once."""
        self._ray.kill(self._actor, no_restart=True)

    def _is_machine_gone(self) -> bool:
        if not self._machine.done() or self._machine.exception() is not None:
            return False
        return self._machine.result() not in {
            node["NodeID"] for node in self._ray.nodes() if node["Alive"]
        }

    def _future(self, call: Any) -> "Future[bytes]":
        found: Future[bytes] = call.future()
        return found


def _share_of_smallest(machines: list[dict[str, float]], gpus: float) -> float:
    shares = [
        machine["CPU"] / max(1, int(machine.get("GPU", 0.0) / gpus) if gpus else 1)
        for machine in machines
        if machine.get("CPU", 0.0) >= 1.0 and (not gpus or machine.get("GPU", 0.0) >= gpus)
    ]
    return max(1.0, float(math.floor(min(shares, default=1.0))))


@dataclass(frozen=True, kw_only=True)
class RayEngine:
    """Maps on a Ray cluster, in order, with a bounded number of items under way.

    A worker or a machine that is lost takes nothing with it but the items it had, which are tried elsewhere. If Ray is connected
    already, that connection is used.

    Args:
        address: of the cluster: `auto`, `host:port` or `ray://host:port`. Empty: a cluster of this machine alone is started, and
            stopped when this process ends.
        n_workers: workers; 0 means as many as the cluster has room for, more when machines join and fewer when they leave. With
            a number the cluster is asked for that many, so that an autoscaler adds machines.
        cpus_per_worker: cores that a worker claims for work in batches; 0 means all cores of the smallest machine, as models use
            all cores by themselves. Workers of plain maps claim one.
        gpus_per_worker: graphics processors that a worker claims for work in batches, or a part of one; None means one if the
            cluster has any.
        queue_depth: items that may wait for each worker.
    """

    address: str = ""
    n_workers: NonNegativeInt = 0
    cpus_per_worker: NonNegative = 0.0
    gpus_per_worker: NonNegative | None = None
    queue_depth: NonNegativeInt = 64

    def __post_init__(self) -> None:
        check_bounds(self, where="ray")

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items; when the caller stops early, the workers are ended."""
        workers = self._workers(cpus=1.0, gpus=0.0)
        pool = WorkerPool(
            workers, partial(OneByOne, function), MapPace(queue_depth=self.queue_depth), lost
        )
        yield from pool.results(ChunkQueue(items))

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield what the work, built once in every worker, makes of every batch, in order."""
        refuse_empty_batches(batch_size)
        workers = self._workers(cpus=self.cpus_per_worker, gpus=self.gpus_per_worker)
        order = batch_order(build, n_threads=workers.n_threads)
        pool = WorkerPool(
            workers, order, BatchPace(batch_size=batch_size, queue_depth=self.queue_depth), lost
        )
        yield from pool.results(ChunkQueue(items))

    def _workers(self, *, cpus: float, gpus: float | None) -> RayWorkers:
        return RayWorkers(address=self.address, n_workers=self.n_workers, cpus=cpus, gpus=gpus)
