"""The loop around an image generator: requests in, judged and stored images out; nothing is generated twice, and no fault ends a run."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import (
    ConfigError,
    MissingExtraError,
    ModelError,
    RefusedPromptError,
    UnavailableError,
    WeakspotError,
    raise_all,
)
from weakspot.core.generated import PASS, GenerationRequest, GenerationResult
from weakspot.core.roles import (
    ComposesImages,
    CostsMoney,
    Embedder,
    Engine,
    GeneratedImage,
    ImageGenerator,
)
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import embed_phrases
from weakspot.data.images import UNREADABLE_REASONS, WORKER_LOST, to_rgb
from weakspot.generate.quality import (
    FAILED,
    NEAR_DUPLICATE,
    NOT_FINITE,
    OFF_CLASS,
    OWN_CHECKS,
    WRONG_SIZE,
    Fingerprint,
    OffClass,
    QualityCheck,
    QualityMemory,
    fingerprint_of,
    is_rejected,
)
from weakspot.run.embedding import KnowsEmbeddings
from weakspot.run.model_map import failing_as_model_error, storable
from weakspot.run.settings import GeneratorSettings, Settings
from weakspot.run.wiring import engine_elsewhere
from weakspot.store.generated_images import GeneratedImageStore, ImageFacts, StoredImage
from weakspot.words.captions import plain_caption

MAX_FAILURES_IN_A_ROW = 16
MAX_FAILURES_AT_FIRST = 2
NO_IMAGE = "no image came"
_WHO = "image generator"
_SAID_SHOWN = 300


Answer = tuple[GenerationRequest, GeneratedImage | str]
"""A request and its image, or why there is none."""

PNG_EFFORT = 1
_SHOWN = 200


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
        said = storable(str(error))[:_SAID_SHOWN]
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


def _lost_request(request: GenerationRequest) -> AnsweredBatch:
    return AnsweredBatch(answers=((request, UNREADABLE_REASONS[WORKER_LOST]),), refused={})


@dataclass(kw_only=True, eq=False)
class PendingImage:
    """One request on its way into the store.

    Args:
        request: what was asked for.
        image: RGB; None if none came.
        data: the image as it is stored already; None if it is new.
        parents: ids of the samples that it was made from.
        verdicts: what is said of it so far, the generator's own words first.
    """

    request: GenerationRequest
    image: Image.Image | None = None
    data: bytes | None = None
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    fingerprint: Fingerprint | None = None

    @classmethod
    def of(cls, answer: Answer) -> "PendingImage":
        """Return what a generator gave; whatever is wrong with it is a verdict."""
        request, made = answer
        if isinstance(made, str):
            return cls(request=request, verdicts={FAILED: made})
        pending = cls(request=request)
        try:
            pending.parents = tuple(storable(str(parent)) for parent in made.parents)
            pending.verdicts = {
                storable(str(name)): storable(str(said))[:_SHOWN]
                for name, said in made.verdicts.items()
            }
            pending._take(made.image)
        except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
            pending.image = None
            pending.verdicts[FAILED] = (
                f"not an image: {type(error).__name__}: {storable(str(error))[:_SHOWN]}"
            )
        return pending

    @classmethod
    def again(
        cls, generated: GenerationResult, stored_images: GeneratedImageStore
    ) -> "PendingImage":
        """Return a stored image that is to be judged again; what the generator said of it stays."""
        data, image = stored_images.data(generated), stored_images.image(generated)
        own = {name: said for name, said in generated.verdicts.items() if name not in OWN_CHECKS}
        return cls(
            request=generated.request,
            image=image,
            data=data,
            parents=generated.parents,
            verdicts=own,
            size=image.size,
        )

    def say(self, quality: str, said: str) -> None:
        """Add a verdict; a rejection that is there already stays."""
        if self.verdicts.get(quality, PASS) == PASS:
            self.verdicts[quality] = said

    def _take(self, image: Image.Image) -> None:
        image.load()
        self.size = image.size
        if min(image.size) < 1:
            return
        if image.mode == "F" and not np.isfinite(np.asarray(image)).all():
            self.say(NOT_FINITE, "some pixels are not finite numbers")
        self.image = to_rgb(image)[0]


class JudgingQueue:
    """Judges, encodes and stores images in a thread of its own, batch after batch in the order in which they come.

    Leaving it waits for the batch that is under way, also after an error or an interruption.

    Args:
        stored_images: the store; its lock must be held.
        generator_id: who generates.
        memory: of the quality check.
        done: told every record that was stored.
    """

    def __init__(
        self,
        stored_images: GeneratedImageStore,
        *,
        generator_id: str,
        memory: QualityMemory,
        done: Callable[[GenerationResult], None],
    ) -> None:
        self._stored_images = stored_images
        self._generator_id = generator_id
        self._memory = memory
        self._done = done
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weakspot-developing")
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True)
        if kind is None:
            self._wait()

    def take(self, batch: Sequence[PendingImage]) -> None:
        """Begin with some images as soon as those before are stored."""
        self._wait()
        self._under_way = self._thread.submit(self._develop, list(batch))

    def _wait(self) -> None:
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def _develop(self, batch: list[PendingImage]) -> None:
        self._judge(batch)
        for generated in self._stored_images.add_all([self._store(pending) for pending in batch]):
            self._done(generated)

    def _judge(self, batch: Sequence[PendingImage]) -> None:
        memory = self._memory
        for pending in batch:
            if FAILED not in pending.verdicts:
                pending.say(WRONG_SIZE, memory.size_verdict(pending.size))
            if pending.image is not None:
                pending.fingerprint = fingerprint_of(pending.image)
                for quality, said in memory.quality.look(pending.image).items():
                    pending.say(quality, said)
        self._compare_with_classes([one for one in batch if not is_rejected(one.verdicts)])
        for pending in batch:
            if pending.fingerprint is not None and not is_rejected(pending.verdicts):
                said = memory.copy_verdict(pending.request, pending.fingerprint)
                pending.say(NEAR_DUPLICATE, said)
                if said == PASS:
                    memory.keep(pending.request, pending.fingerprint)

    def _compare_with_classes(self, batch: Sequence[PendingImage]) -> None:
        off_class = self._memory.quality.off_class
        if off_class is None:
            return
        images = [pending.image for pending in batch if pending.image is not None]
        names = [pending.request.class_name for pending in batch]
        for pending, said in zip(batch, off_class.verdicts(images, names), strict=True):
            pending.say(OFF_CLASS, said)

    def _store(self, pending: PendingImage) -> StoredImage:
        data, image, fingerprint = pending.data, pending.image, pending.fingerprint
        data = data if data is not None or image is None else encoded(image)
        generated = GenerationResult(
            request=pending.request,
            generator_id=self._generator_id,
            content_hash=hashlib.sha256(data).hexdigest() if data is not None else "",
            parents=pending.parents,
            verdicts=pending.verdicts,
        )
        look = ImageFacts(
            quality=self._memory.quality.identity,
            fingerprint=fingerprint.text if fingerprint is not None else "",
            size=pending.size,
        )
        return StoredImage(generated=generated, data=data, look=look)


def encoded(image: Image.Image) -> bytes:
    """Return an image as PNG, the same bytes for the same pixels."""
    stream = BytesIO()
    Image.frombytes("RGB", image.size, image.tobytes()).save(
        stream, "PNG", compress_level=PNG_EFFORT, compress_type=zlib.Z_RLE
    )
    return stream.getvalue()


def remembered(
    stored_images: GeneratedImageStore, generator_id: str, quality: QualityCheck
) -> QualityMemory:
    memory, identity = QualityMemory(quality=quality), quality.identity
    for stored in stored_images.all():
        generated, look = stored.generated, stored.look
        if (
            generated.generator_id != generator_id
            or look.quality != identity
            or FAILED in generated.verdicts
        ):
            continue
        memory.size_verdict(look.size)
        fingerprint = Fingerprint.from_text(look.fingerprint)
        if fingerprint is not None and generated.is_kept:
            memory.keep(generated.request, fingerprint)
    return memory


KEPT = "kept"
_RESUMES = "run the command again: what was generated is kept and not generated twice."


class GeneratorService:
    """Generates images to order, each once, and puts every one through the quality check.

    Requests that failed are tried again by the next service, not by this one; every other verdict is final for its quality check.
    With another quality check, images that are there are judged anew, not generated again.

    Args:
        generator: words to images.
        stored_images: where they are kept.
        quality: what is asked of them.
        batch_size: images per call of the generator.
        max_new: most images that the generator is asked for; None for no limit.
        progress: told how many requests of a call are done.
        engine: where many images at once are generated, if the generator can be sent there; None: here.
    """

    def __init__(
        self,
        generator: ImageGenerator,
        stored_images: GeneratedImageStore,
        *,
        quality: QualityCheck,
        batch_size: int = 8,
        max_new: int | None = None,
        progress: Progress = no_progress,
        engine: Engine | None = None,
    ) -> None:
        self._stored_images = stored_images
        self._quality = quality
        self._batch_size = max(1, batch_size)
        self._max_new = max_new
        self._progress = progress
        self._generator = generator
        self._engine = engine
        self._results: dict[GenerationRequest, GenerationResult] = {}
        self._memory: QualityMemory | None = None
        self._asking = RetryingGenerator(generator=generator)
        self.n_new = 0

    @cached_property
    def generator_id(self) -> str:
        return self._generator.generator_id

    def generate(self, requests: Sequence[GenerationRequest]) -> list[GenerationResult]:
        """Return what came of every request, in their order.

        Raises:
            RefusedPromptError: if the generator cannot generate a prompt; everything else is generated first.
            ModelError: if it failed too often in a row.
            UnavailableError: if it cannot be reached.
            MissingExtraError: if it lacks a library.
            ConfigError: if it would be asked for too many images.
        """
        wanted = list(dict.fromkeys(requests))
        if any(
            not self._is_done(request)
            for request in wanted
            if request.prompt not in self._asking.refused
        ):
            with self._stored_images.writing() as has_more:
                self._generate_missing(wanted, is_memory_old=has_more)
        self._raise_refused(wanted)
        return [self._results[request] for request in requests]

    def image(self, generated: GenerationResult) -> Image.Image:
        """Return the RGB image of a request that was generated.

        Raises:
            StoreError: if there is none.
        """
        return self._stored_images.image(generated)

    def place(self, generated: GenerationResult) -> Path:
        """Return the file of a request that was generated."""
        return self._stored_images.folder / generated.file

    def tally(self) -> dict[str, int]:
        """Return how many of the requests so far were kept, and how many each quality check rejected, most first."""
        generated = self._results.values()
        rejected = Counter(one.rejected_by for one in generated if not one.is_kept)
        return {KEPT: sum(one.is_kept for one in generated), **dict(rejected.most_common())}

    def _is_done(self, request: GenerationRequest) -> bool:
        """Return whether there is a verdict of this quality check, or a failure of this service, on a request."""
        if request in self._results:
            return True
        stored = self._stored_images.stored(self.generator_id, request)
        if (
            stored is None
            or FAILED in stored.generated.verdicts
            or stored.look.quality != self._quality.identity
        ):
            return False
        self._results[request] = stored.generated
        return True

    def _generate_missing(
        self, wanted: Sequence[GenerationRequest], *, is_memory_old: bool
    ) -> None:
        if self._memory is None or is_memory_old:
            self._memory = remembered(self._stored_images, self.generator_id, self._quality)
            self._asking.has_generated |= self._memory.has_seen
        missing = [request for request in wanted if not self._is_done(request)]
        self._progress(len(wanted) - len(missing), len(wanted))
        memory, self._memory = self._memory, None
        with JudgingQueue(
            self._stored_images, generator_id=self.generator_id, memory=memory, done=self._note
        ) as developing:
            new = self._judge_again(missing, developing)
            if self._engine is not None and is_generated_elsewhere(self._generator, len(new)):
                self._generate_elsewhere(new, developing, engine=self._engine, total=len(wanted))
            else:
                self._generate_new(new, developing, total=len(wanted))
        self._memory = memory
        self._progress(len(wanted), len(wanted))

    def _judge_again(
        self, requests: Sequence[GenerationRequest], developing: JudgingQueue
    ) -> list[GenerationRequest]:
        """Judge stored images that another quality check judged, and return the requests that must be generated."""
        stored = [self._stored_images.find(self.generator_id, request) for request in requests]
        old = [
            generated
            for generated in stored
            if generated is not None and generated.content_hash and FAILED not in generated.verdicts
        ]
        for start in range(0, len(old), self._batch_size):
            developing.take(
                [
                    PendingImage.again(generated, self._stored_images)
                    for generated in old[start : start + self._batch_size]
                ]
            )
        judged = {generated.request for generated in old}
        return [request for request in requests if request not in judged]

    def _generate_new(
        self, requests: Sequence[GenerationRequest], developing: JudgingQueue, *, total: int
    ) -> None:
        for start in range(0, len(requests), self._batch_size):
            batch = [
                request
                for request in requests[start : start + self._batch_size]
                if request.prompt not in self._asking.refused
            ]
            left = len(batch) if self._max_new is None else max(0, self._max_new - self.n_new)
            for answers in self._asking.answers(batch[:left]):
                self.n_new += len(answers)
                developing.take([PendingImage.of(answer) for answer in answers])
            if left < len(batch):
                raise self._too_many(len(requests) - start - left)
            self._progress(
                total - len(requests) + min(start + self._batch_size, len(requests)), total
            )

    def _generate_elsewhere(
        self,
        requests: Sequence[GenerationRequest],
        developing: JudgingQueue,
        *,
        engine: Engine,
        total: int,
    ) -> None:
        wanted = [request for request in requests if request.prompt not in self._asking.refused]
        left = len(wanted) if self._max_new is None else max(0, self._max_new - self.n_new)
        n_done, has_generated = total - len(requests), self._asking.has_generated
        build = partial(RetryingGenerator, generator=self._generator, has_generated=has_generated)
        for batch in engine.map_batches(
            build, wanted[:left], batch_size=self._batch_size, lost=_lost_request
        ):
            self._asking.refused |= batch.refused
            self._asking.has_generated |= any(
                not isinstance(made, str) for _, made in batch.answers
            )
            self.n_new += len(batch.answers)
            if batch.answers:
                developing.take([PendingImage.of(answer) for answer in batch.answers])
            if batch.error is not None:
                raise batch.error
            n_done += len(batch.answers)
            self._progress(n_done, total)
        if left < len(wanted):
            raise self._too_many(len(wanted) - left)

    def _note(self, generated: GenerationResult) -> None:
        self._results[generated.request] = generated

    def _too_many(self, n_left: int) -> ConfigError:
        return ConfigError(
            f"The generator has generated the {self._max_new} new images that it may be asked for; {n_left} are still wanted.",
            where="[generator] max_images",
            fix=f"Raise it, or ask for fewer, and {_RESUMES} They are in {self._stored_images.folder}.",
        )

    def _raise_refused(self, wanted: Sequence[GenerationRequest]) -> None:
        prompts = list(
            dict.fromkeys(
                request.prompt for request in wanted if request.prompt in self._asking.refused
            )
        )
        if len(prompts) == 1:
            raise self._asking.refused[prompts[0]]
        said = [self._asking.refused[prompt].what for prompt in prompts]
        fix = self._asking.refused[prompts[0]].fix if prompts else None
        raise_all(
            said,
            error=RefusedPromptError,
            what="The image generator cannot generate some prompts:",
            fix=fix,
        )


def quality_check_for(
    settings: GeneratorSettings,
    *,
    embedder: Embedder | None = None,
    class_names: Sequence[str] = (),
) -> QualityCheck:
    """Return the quality check that settings mean.

    Args:
        settings: section `generator`.
        embedder: compares images with classes, if it has a text side and can take new images; None: they are not compared.
        class_names: the classes; with fewer than two there is nothing to compare.
    """
    return QualityCheck(
        near_duplicate_bits=settings.near_duplicate_bits,
        off_class=_off_class(embedder, tuple(class_names), settings.off_class_margin),
    )


def service_for(
    settings: Settings,
    generator: ImageGenerator,
    folder: Path,
    *,
    embedder: Embedder | None = None,
    class_names: Sequence[str] = (),
    progress: Progress = no_progress,
) -> GeneratorService:
    """Return a service as section `generator` of the settings wants it.

    Args:
        settings: of the project.
        generator: words to images.
        folder: where generated images are kept.
        embedder: for the quality check `off-class`; see `quality_check_for`.
        class_names: the classes of the project.
        progress: told how many requests of a call are done.
    """
    chosen = settings.generator
    return GeneratorService(
        generator,
        GeneratedImageStore(folder),
        quality=quality_check_for(chosen, embedder=embedder, class_names=class_names),
        batch_size=chosen.batch_size,
        max_new=chosen.max_images,
        progress=progress,
        engine=engine_elsewhere(settings),
    )


def confirm_cost(generator: ImageGenerator, n_images: int, settings: GeneratorSettings) -> None:
    """Do nothing if a generator charges nothing or no more than the settings allow.

    Raises:
        ConfigError: with the cost, if that is more; or if the price is not known and no cost was allowed.
    """
    if not isinstance(generator, CostsMoney):
        return
    cost = generator.cost_of(n_images)
    if cost is None and not settings.max_cost:
        raise ConfigError(
            f"{n_images} images of {generator.generator_id} cost money, and the price is not known.",
            where="[generator] max_cost",
            fix="Give the price in the generator's options, or set max_cost to what you are ready to pay.",
        )
    if cost is not None and cost.amount > settings.max_cost:
        raise ConfigError(
            f"{n_images} images cost up to {cost.amount:.2f} {cost.currency} ({cost.basis}).",
            where="[generator] max_cost",
            given=settings.max_cost,
            fix=f"Set it to {cost.amount:.2f} or more to agree, or ask for fewer images.",
        )


def _off_class(
    embedder: Embedder | None, class_names: tuple[str, ...], margin: float
) -> OffClass | None:
    if embedder is None or not margin or len(class_names) < 2:  # noqa: PLR2004 - one class has no other
        return None
    if isinstance(embedder, KnowsEmbeddings) or not embedder.has_text:
        return None

    def embed_images(images: Sequence[Image.Image]) -> FloatArray:
        prepared = [embedder.prepare(image) for image in images]
        return np.asarray(embedder.embed_prepared(prepared), dtype=np.float32)

    return OffClass(
        embed_images=embed_images,
        class_embeddings=embed_phrases(
            [plain_caption(name).phrase for name in class_names], embedder
        ),
        class_names=class_names,
        margin=margin,
        embedder_id=embedder.encoder_id,
    )
