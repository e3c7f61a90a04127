"""Heavy maps on a Ray cluster: workers are actors, placed by what the cluster has."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from weakspot.core.bounds import NonNegative, NonNegativeInt, check_bounds
from weakspot.core.roles import BatchWork, Item, Result
from weakspot.engine.chunks import BatchPace, Intake, MapPace, refuse_empty_batches
from weakspot.engine.pool import WorkerPool
from weakspot.engine.ray_workers import ActorSize, RayWorkers
from weakspot.engine.worker import BatchOrder, MapOrder


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
        workers = RayWorkers(
            address=self.address, n_workers=self.n_workers, size=ActorSize(cpus=1.0, gpus=0.0)
        )
        pool = WorkerPool(
            workers, MapOrder(function=function), MapPace(queue_depth=self.queue_depth), lost
        )
        yield from pool.results(Intake(items))

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
        workers = RayWorkers(address=self.address, n_workers=self.n_workers, size=size)
        order = BatchOrder(build=build, n_threads=workers.n_threads)
        pool = WorkerPool(
            workers, order, BatchPace(batch_size=batch_size, queue_depth=self.queue_depth), lost
        )
        yield from pool.results(Intake(items))
