"""Heavy maps on a Ray cluster: workers are actors, placed by what the cluster has."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from weakspot.core.roles import BatchWork, Item, Result
from weakspot.engine.crew import Crew
from weakspot.engine.intake import Intake, refuse_empty_batches, refuse_negative
from weakspot.engine.parcels import BatchPace, MapPace
from weakspot.engine.ray_staff import ActorSize, RayStaff
from weakspot.engine.station import BatchOrder, MapOrder


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
    n_workers: int = 0
    cpus_per_worker: float = 0.0
    gpus_per_worker: float | None = None
    queue_depth: int = 64

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        settings = {"n_workers": self.n_workers, "cpus_per_worker": self.cpus_per_worker, "queue_depth": self.queue_depth}
        refuse_negative("ray", **settings, gpus_per_worker=self.gpus_per_worker or 0.0)

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, lost: Callable[[Item], Result] | None = None
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items; when the caller stops early, the workers are ended."""
        staff = RayStaff(address=self.address, n_workers=self.n_workers, size=ActorSize(cpus=1.0, gpus=0.0))
        crew = Crew(staff, MapOrder(function=function), MapPace(queue_depth=self.queue_depth), lost)
        yield from crew.results(Intake(items))

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
        size = ActorSize(cpus=self.cpus_per_worker, gpus=self.gpus_per_worker)
        staff = RayStaff(address=self.address, n_workers=self.n_workers, size=size)
        order = BatchOrder(build=build, n_threads=staff.n_threads)
        crew = Crew(staff, order, BatchPace(batch_size=batch_size, queue_depth=self.queue_depth), lost)
        yield from crew.results(Intake(items))
