"""An image generator's batches in other processes, for many pictures at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weakspot.app.asking_generator import Answer, PatientAsking
from weakspot.core.drawn import PictureOrder
from weakspot.core.errors import RefusedPromptError, WeakspotError
from weakspot.core.roles import ComposesPictures, CostsMoney, Engine, ImageGenerator
from weakspot.media.pictures import UNREADABLE_REASONS, WORKER_LOST

FEWEST_ORDERS = 64
"""Fewer pictures are drawn here: a generator would have to be loaded in every worker for them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredBatch:
    """What a generator gave for some orders.

    Args:
        answers: in the order of orders, without those of refused prompts.
        refused: prompts that it refused, with what it said.
        error: why it is not asked any more; None if it can be.
    """

    answers: tuple[Answer, ...]
    refused: dict[str, RefusedPromptError]
    error: WeakspotError | None = None


class DrawWork:
    """Orders to answers; after an error that ends the work nothing more is asked.

    Args:
        generator: built again in every worker that is another process.
        has_drawn: whether it has ever given a picture; one that has not is given up sooner.
    """

    def __init__(self, *, generator: ImageGenerator, has_drawn: bool) -> None:
        self._asking = PatientAsking(generator=generator, has_drawn=has_drawn)
        self._error: WeakspotError | None = None

    def prepare(self, item: PictureOrder) -> PictureOrder:
        """Return the order: there is nothing to prepare."""
        return item

    def run(self, ready: Sequence[PictureOrder]) -> AnsweredBatch:
        """Return what comes of some orders."""
        answers: list[Answer] = []
        if self._error is None:
            try:
                for some in self._asking.answers(ready):
                    answers += some
            except WeakspotError as error:
                self._error = error
        prompts = {order.prompt for order in ready}
        refused = {prompt: said for prompt, said in self._asking.refused.items() if prompt in prompts}
        return AnsweredBatch(answers=tuple(answers), refused=refused, error=self._error)


def is_drawn_elsewhere(generator: ImageGenerator, n_orders: int) -> bool:
    """Say whether so many orders are worth drawing in other processes.

    A service that charges is asked from here: it answers several requests at a time anyway, and its own limit is counted once. A
    generator that composes works here too: a project's own pictures and vectors would have to be sent along.
    """
    return n_orders >= FEWEST_ORDERS and not isinstance(generator, CostsMoney | ComposesPictures)


def draw_elsewhere(
    generator: ImageGenerator, orders: Sequence[PictureOrder], *, engine: Engine, batch_size: int, has_drawn: bool
) -> Iterator[AnsweredBatch]:
    """Yield what comes of orders, batch by batch, in their order."""
    build = partial(DrawWork, generator=generator, has_drawn=has_drawn)
    yield from engine.map_batches(build, orders, batch_size=batch_size, lost=_lost_order)


def _lost_order(order: PictureOrder) -> AnsweredBatch:
    return AnsweredBatch(answers=(Answer(order=order, failure=UNREADABLE_REASONS[WORKER_LOST]),), refused={})
