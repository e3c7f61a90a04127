"""Asking an image generator, here or in other processes: a broken request costs that request, never the work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from weakspot.core.errors import (
    MissingExtraError,
    ModelError,
    RefusedPromptError,
    UnavailableError,
    WeakspotError,
)
from weakspot.core.generated import GenerationRequest
from weakspot.core.roles import ComposesImages, CostsMoney, Engine, GeneratedImage, ImageGenerator
from weakspot.data.images import UNREADABLE_REASONS, WORKER_LOST
from weakspot.run.model_map import failing_as_model_error, storable

MAX_FAILURES_IN_A_ROW = 16
MAX_FAILURES_AT_FIRST = 2
NO_IMAGE = "no image came"
_WHO = "image generator"
_SHOWN = 300


Answer = tuple[GenerationRequest, GeneratedImage | str]
"""A request and its image, or why there is none."""


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


@dataclass(kw_only=True, eq=False)
class RetryingGenerator:
    """Asks a generator batch by batch, and one by one where a batch fails; an engine builds one in every process.

    Args:
        generator: words to images.
        has_generated: whether it has ever given an image; one that has not is given up sooner.
        refused: prompts that it refused, with what it said.
    """

    generator: ImageGenerator
    has_generated: bool = False
    refused: dict[str, RefusedPromptError] = field(default_factory=dict)
    _n_bad_in_a_row: int = 0
    _error: WeakspotError | None = None

    def prepare(self, item: GenerationRequest) -> GenerationRequest:
        """Return the request: there is nothing to prepare."""
        return item

    def run(self, ready: Sequence[GenerationRequest]) -> AnsweredBatch:
        """Return what comes of some requests; after an error that ends the work nothing more is asked."""
        answers: list[Answer] = []
        if self._error is None:
            try:
                for some in self.answers(ready):
                    answers += some
            except WeakspotError as error:
                self._error = error
        prompts = {request.prompt for request in ready}
        refused = {prompt: said for prompt, said in self.refused.items() if prompt in prompts}
        return AnsweredBatch(answers=tuple(answers), refused=refused, error=self._error)

    def answers(self, requests: Sequence[GenerationRequest]) -> Iterator[list[Answer]]:
        """Yield answers in the order of requests, leaving out refused prompts; all at once unless the batch fails.

        Raises:
            MissingExtraError: if the generator lacks a library.
            UnavailableError: if it cannot be reached.
            ModelError: if it failed too often in a row.
        """
        wanted = [request for request in requests if request.prompt not in self.refused]
        if not wanted:
            return
        try:
            made = self._made(wanted)
        except ModelError as error:
            if isinstance(error.__cause__, UnavailableError | MissingExtraError):
                raise error.__cause__ from None
            if len(wanted) > 1:
                for request in wanted:
                    yield from self.answers([request])
            elif isinstance(error, RefusedPromptError):
                self.refused[wanted[0].prompt] = error
            else:
                yield from self._failed(wanted[0], error)
            return
        yield from self._taken(wanted, made)

    def _made(self, requests: Sequence[GenerationRequest]) -> list[GeneratedImage | None]:
        with failing_as_model_error(_WHO):
            made = self.generator.generate(
                [request.prompt for request in requests],
                seeds=[request.seed for request in requests],
            )
            images = list(made)
            if len(images) != len(requests):
                raise ModelError(
                    f"The {_WHO} gave {len(images)} images for {len(requests)} prompts."
                )
            return [image if isinstance(image, GeneratedImage) else None for image in images]

    def _taken(
        self, requests: Sequence[GenerationRequest], made: Sequence[GeneratedImage | None]
    ) -> Iterator[list[Answer]]:
        """Yield the answers of a batch; empty places in it are failures of single requests."""
        for image in made:
            self._n_bad_in_a_row = 0 if image is not None else self._n_bad_in_a_row + 1
            self.has_generated |= image is not None
        yield [
            (request, NO_IMAGE if image is None else image)
            for request, image in zip(requests, made, strict=True)
        ]
        self._end_if_too_many(NO_IMAGE)

    def _failed(self, request: GenerationRequest, error: ModelError) -> Iterator[list[Answer]]:
        said = storable(str(error))[:_SHOWN]
        self._n_bad_in_a_row += 1
        yield [(request, said)]
        self._end_if_too_many(said, error)

    def _end_if_too_many(self, said: str, error: ModelError | None = None) -> None:
        most = MAX_FAILURES_IN_A_ROW if self.has_generated else MAX_FAILURES_AT_FIRST
        if self._n_bad_in_a_row >= most:
            raise ModelError(
                f"The {_WHO} failed {self._n_bad_in_a_row} times in a row. The last time: {said}",
                where=self.generator.generator_id,
                fix="See that it works, and run the command again: what was generated is kept.",
            ) from error


MIN_REQUESTS = 64
"""Fewer images are generated here: a generator would have to be loaded in every worker for them."""


def is_generated_elsewhere(generator: ImageGenerator, n_requests: int) -> bool:
    """Say whether so many requests are worth generating in other processes.

    A service that charges is asked from here: it answers several requests at a time anyway, and its own limit is counted once. A
    generator that composes works here too: a project's own images and embeddings would have to be sent along.
    """
    return n_requests >= MIN_REQUESTS and not isinstance(generator, CostsMoney | ComposesImages)


def generate_elsewhere(
    generator: ImageGenerator,
    requests: Sequence[GenerationRequest],
    *,
    engine: Engine,
    batch_size: int,
    has_generated: bool,
) -> Iterator[AnsweredBatch]:
    """Yield what comes of requests, batch by batch, in their order."""
    build = partial(RetryingGenerator, generator=generator, has_generated=has_generated)
    yield from engine.map_batches(build, requests, batch_size=batch_size, lost=_lost_request)


def _lost_request(request: GenerationRequest) -> AnsweredBatch:
    return AnsweredBatch(answers=((request, UNREADABLE_REASONS[WORKER_LOST]),), refused={})
