"""Actors of Ray as workers."""

import math
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from weakspot.engine.crew import Death
from weakspot.engine.ray_session import connected_ray
from weakspot.engine.station import Station, own_version
from weakspot.engine.travel import Packer

LOOK_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class ActorSize:
    """What an actor claims of its machine.

    Args:
        cpus: cores; 0 means all cores of the smallest machine (with graphics processors: its share of them).
        gpus: graphics processors; None means one if the cluster has any.
    """

    cpus: float
    gpus: float | None


class RayStaff:
    """Hires actors, as many as asked for or as the cluster has room for.

    Args:
        address: of the cluster.
        n_workers: 0 means as many as there is room for.
        size: what an actor claims.
    """

    def __init__(self, *, address: str, n_workers: int, size: ActorSize) -> None:
        self._ray = connected_ray(address)
        self._n_workers = n_workers
        self._looked_at = -math.inf
        self._n_places = 1
        machines = self._machines()
        self._gpus = size.gpus if size.gpus is not None else float(any(machine.get("GPU", 0.0) for machine in machines))
        self._cpus = size.cpus or _share_of_smallest(machines, self._gpus)
        self._actor = self._ray.remote(_Actor)
        self.packer: Packer = self._ray.cloudpickle

    @property
    def n_threads(self) -> int:
        """Threads that prepare in each worker."""
        return max(1, int(self._cpus))

    def n_wanted(self) -> int:
        """Return the number asked for, or how many workers fit into the cluster as it is now."""
        if self._n_workers:
            return self._n_workers
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._n_places = max(1, sum(self._places(machine) for machine in self._machines()))
            self._looked_at = time.monotonic()
        return self._n_places

    def hire(self) -> "RayWorker":
        """Return a new actor; Ray places it when there is room, and asks its autoscaler for machines if there is none."""
        placed = self._actor.options(
            num_cpus=self._cpus, num_gpus=self._gpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        return RayWorker(self._ray, placed.remote(self.packer))

    def _machines(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _places(self, machine: dict[str, float]) -> int:
        by_cpus = int(machine.get("CPU", 0.0) / self._cpus)
        return min(by_cpus, int(machine.get("GPU", 0.0) / self._gpus)) if self._gpus else by_cpus


class _Actor(Station):
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
        """Let the actor start on a parcel ahead of time."""
        self._actor.begin.remote(number, items)

    def finish(self, number: int) -> "Future[bytes]":
        """Return the outcome of a parcel that was begun."""
        return self._future(self._actor.finish.remote(number))

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        """Return the outcome of a parcel."""
        return self._future(self._actor.do.remote(number, items))

    def death(self, error: BaseException) -> Death | None:
        """Say whether the actor is gone, or its whole machine."""
        known = self._ray.exceptions
        if not isinstance(error, known.RayActorError | known.ObjectLostError | known.NodeDiedError | known.OutOfMemoryError):
            return None
        return "machine" if getattr(error, "preempted", False) or self._is_machine_gone() else "worker"

    def stop(self) -> None:
        """End the actor at once."""
        self._ray.kill(self._actor, no_restart=True)

    def _is_machine_gone(self) -> bool:
        if not self._machine.done() or self._machine.exception() is not None:
            return False
        return self._machine.result() not in {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}

    def _future(self, call: Any) -> "Future[bytes]":
        found: Future[bytes] = call.future()
        return found


def _share_of_smallest(machines: list[dict[str, float]], gpus: float) -> float:
    """Return the cores of the smallest machine that can take a worker, shared among its graphics processors."""
    shares = [
        machine["CPU"] / max(1, int(machine.get("GPU", 0.0) / gpus) if gpus else 1)
        for machine in machines
        if machine.get("CPU", 0.0) >= 1.0 and (not gpus or machine.get("GPU", 0.0) >= gpus)
    ]
    return max(1.0, float(math.floor(min(shares, default=1.0))))
