"""An image generator's batches in other processes, for many images at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weakspot.core.errors import RefusedPromptError, WeakspotError
from weakspot.core.generation_requests import GenerationRequest
from weakspot.core.roles import ComposesImages, CostsMoney, Engine, ImageGenerator
from weakspot.generation.service.requests import Answer, PatientAsking
from weakspot.media.images import UNREADABLE_REASONS, WORKER_LOST

FEWEST_REQUESTS = 64
"""Fewer images are generated here: a generator would have to be loaded in every worker for them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredBatch:
    """What a generator gave for some requests.

    Args:
        answers: in the order of requests, without those of refused prompts.
        refused: prompts that it refused, with what it said.
        error: why it is not asked any more; None if it can be.
    """

    answers: tuple[Answer, ...]
    refused: dict[str, RefusedPromptError]
    error: WeakspotError | None = None


class GenerateBatches:
    """Orders to answers; after an error that ends the work nothing more is asked.

    Args:
        generator: built again in every worker that is another process.
        has_generated: whether it has ever given an image; one that has not is given up sooner.
    """

    def __init__(self, *, generator: ImageGenerator, has_generated: bool) -> None:
        self._asking = PatientAsking(generator=generator, has_generated=has_generated)
        self._error: WeakspotError | None = None

    def prepare(self, item: GenerationRequest) -> GenerationRequest:
        """Return the request: there is nothing to prepare."""
        return item

    def run(self, ready: Sequence[GenerationRequest]) -> AnsweredBatch:
        answers: list[Answer] = []
        if self._error is None:
            try:
                for some in self._asking.answers(ready):
                    answers += some
            except WeakspotError as error:
                self._error = error
        prompts = {request.prompt for request in ready}
        refused = {
            prompt: said for prompt, said in self._asking.refused.items() if prompt in prompts
        }
        return AnsweredBatch(answers=tuple(answers), refused=refused, error=self._error)


def is_generated_elsewhere(generator: ImageGenerator, n_requests: int) -> bool:
    """Say whether so many requests are worth generating in other processes.

    A service that charges is asked from here: it answers several requests at a time anyway, and its own limit is counted once. A
    generator that composes works here too: a project's own images and embeddings would have to be sent along.
    """
    return n_requests >= FEWEST_REQUESTS and not isinstance(generator, CostsMoney | ComposesImages)


def generate_elsewhere(
    generator: ImageGenerator,
    requests: Sequence[GenerationRequest],
    *,
    engine: Engine,
    batch_size: int,
    has_generated: bool,
) -> Iterator[AnsweredBatch]:
    """Yield what comes of requests, batch by batch, in their order."""
    build = partial(GenerateBatches, generator=generator, has_generated=has_generated)
    yield from engine.map_batches(build, requests, batch_size=batch_size, lost=_lost_request)


def _lost_request(request: GenerationRequest) -> AnsweredBatch:
    return AnsweredBatch(
        answers=(Answer(request=request, failure=UNREADABLE_REASONS[WORKER_LOST]),), refused={}
    )
