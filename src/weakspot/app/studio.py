"""The loop around an image generator: orders in, pictures with verdicts out; nothing is drawn twice, and no fault ends a run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.app.asking_generator import PatientAsking
from weakspot.app.config import GeneratorSettings, Settings
from weakspot.app.developing import Developing, Sheet, remembered
from weakspot.app.drawing_work import draw_elsewhere, is_drawn_elsewhere
from weakspot.app.embedding import KnowsVectors
from weakspot.app.wiring import engine_elsewhere
from weakspot.core.arrays import FloatArray
from weakspot.core.drawn import DrawnPicture, PictureOrder
from weakspot.core.errors import ConfigError, RefusedPromptError, raise_all
from weakspot.core.roles import CostsMoney, Embedder, Engine, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.embed.phrases import embed_phrases
from weakspot.generate.gate import FAILED, Gate, GateMemory, OffClass
from weakspot.lexicon.captions import plain_caption
from weakspot.store.drawings import Drawings

KEPT = "kept"
_RESUMES = "run the command again: what was drawn is kept and not drawn twice."


class Studio:
    """Draws pictures to order, each once, and puts every one through the gate.

    Orders that failed are tried again by the next studio, not by this one; every other verdict is final for its gate. With another
    gate, pictures that are there are judged anew, not drawn anew.

    Args:
        generator: words to pictures.
        drawings: where they are kept.
        gate: what is asked of them.
        batch_size: pictures per call of the generator.
        max_new: most pictures that the generator is asked for; None for no limit.
        progress: told how many orders of a call are done.
        engine: where many pictures at once are drawn, if the generator can be sent there; None: here.
    """

    def __init__(  # noqa: PLR0913 - who draws, where to, and within which limits
        self,
        generator: ImageGenerator,
        drawings: Drawings,
        *,
        gate: Gate,
        batch_size: int = 8,
        max_new: int | None = None,
        progress: Progress = no_progress,
        engine: Engine | None = None,
    ) -> None:
        self._drawings = drawings
        self._gate = gate
        self._batch_size = max(1, batch_size)
        self._max_new = max_new
        self._progress = progress
        self._generator = generator
        self._engine = engine
        self._results: dict[PictureOrder, DrawnPicture] = {}
        self._memory: GateMemory | None = None
        self._asking = PatientAsking(generator=generator)
        self.n_new = 0

    @cached_property
    def generator_id(self) -> str:
        """Return who draws."""
        return self._generator.generator_id

    def draw(self, orders: Sequence[PictureOrder]) -> list[DrawnPicture]:
        """Return what came of every order, in their order.

        Raises:
            RefusedPromptError: if the generator cannot draw a prompt; everything else is drawn first.
            ModelError: if it failed too often in a row.
            UnavailableError: if it cannot be reached.
            MissingExtraError: if it lacks a library.
            ConfigError: if it would be asked for too many pictures.
        """
        wanted = list(dict.fromkeys(orders))
        if any(not self._is_done(order) for order in wanted if order.prompt not in self._asking.refused):
            with self._drawings.writing() as has_more:
                self._draw_missing(wanted, is_memory_old=has_more)
        self._raise_refused(wanted)
        return [self._results[order] for order in orders]

    def picture(self, drawn: DrawnPicture) -> Image.Image:
        """Return the RGB picture of an order that was drawn.

        Raises:
            StoreError: if there is none.
        """
        return self._drawings.picture(drawn)

    def place(self, drawn: DrawnPicture) -> Path:
        """Return the file of an order that was drawn."""
        return self._drawings.folder / drawn.file

    def tally(self) -> dict[str, int]:
        """Return how many of the orders so far were kept, and how many each gate rejected, most first."""
        drawn = self._results.values()
        rejected = Counter(one.rejected_by for one in drawn if not one.is_kept)
        return {KEPT: sum(one.is_kept for one in drawn), **dict(rejected.most_common())}

    def _is_done(self, order: PictureOrder) -> bool:
        """Return whether there is a verdict of this gate, or a failure of this studio, on an order."""
        if order in self._results:
            return True
        found = self._drawings.drawing(self.generator_id, order)
        if found is None or FAILED in found.drawn.verdicts or found.look.gate != self._gate.identity:
            return False
        self._results[order] = found.drawn
        return True

    def _draw_missing(self, wanted: Sequence[PictureOrder], *, is_memory_old: bool) -> None:
        if self._memory is None or is_memory_old:
            self._memory = remembered(self._drawings, self.generator_id, self._gate)
            self._asking.has_drawn |= self._memory.has_seen
        missing = [order for order in wanted if not self._is_done(order)]
        self._progress(len(wanted) - len(missing), len(wanted))
        memory, self._memory = self._memory, None
        with Developing(self._drawings, generator_id=self.generator_id, memory=memory, done=self._note) as developing:
            new = self._judge_again(missing, developing)
            if self._engine is not None and is_drawn_elsewhere(self._generator, len(new)):
                self._draw_elsewhere(new, developing, engine=self._engine, total=len(wanted))
            else:
                self._draw_new(new, developing, total=len(wanted))
        self._memory = memory
        self._progress(len(wanted), len(wanted))

    def _judge_again(self, orders: Sequence[PictureOrder], developing: Developing) -> list[PictureOrder]:
        """Judge stored pictures that another gate judged, and return the orders that must be drawn."""
        found = [self._drawings.find(self.generator_id, order) for order in orders]
        old = [drawn for drawn in found if drawn is not None and drawn.content_hash and FAILED not in drawn.verdicts]
        for start in range(0, len(old), self._batch_size):
            developing.take([Sheet.again(drawn, self._drawings) for drawn in old[start : start + self._batch_size]])
        judged = {drawn.order for drawn in old}
        return [order for order in orders if order not in judged]

    def _draw_new(self, orders: Sequence[PictureOrder], developing: Developing, *, total: int) -> None:
        for start in range(0, len(orders), self._batch_size):
            batch = [order for order in orders[start : start + self._batch_size] if order.prompt not in self._asking.refused]
            left = len(batch) if self._max_new is None else max(0, self._max_new - self.n_new)
            for answers in self._asking.answers(batch[:left]):
                self.n_new += len(answers)
                developing.take([Sheet.of(answer) for answer in answers])
            if left < len(batch):
                raise self._too_many(len(orders) - start - left)
            self._progress(total - len(orders) + min(start + self._batch_size, len(orders)), total)

    def _draw_elsewhere(self, orders: Sequence[PictureOrder], developing: Developing, *, engine: Engine, total: int) -> None:
        wanted = [order for order in orders if order.prompt not in self._asking.refused]
        left = len(wanted) if self._max_new is None else max(0, self._max_new - self.n_new)
        n_done, has_drawn = total - len(orders), self._asking.has_drawn
        for batch in draw_elsewhere(
            self._generator, wanted[:left], engine=engine, batch_size=self._batch_size, has_drawn=has_drawn
        ):
            self._asking.refused |= batch.refused
            self._asking.has_drawn |= any(answer.made is not None for answer in batch.answers)
            self.n_new += len(batch.answers)
            if batch.answers:
                developing.take([Sheet.of(answer) for answer in batch.answers])
            if batch.error is not None:
                raise batch.error
            n_done += len(batch.answers)
            self._progress(n_done, total)
        if left < len(wanted):
            raise self._too_many(len(wanted) - left)

    def _note(self, drawn: DrawnPicture) -> None:
        self._results[drawn.order] = drawn

    def _too_many(self, n_left: int) -> ConfigError:
        return ConfigError(
            f"The generator has drawn the {self._max_new} new pictures that it may be asked for; {n_left} are still wanted.",
            where="[generator] max_pictures",
            fix=f"Raise it, or ask for fewer, and {_RESUMES} They are in {self._drawings.folder}.",
        )

    def _raise_refused(self, wanted: Sequence[PictureOrder]) -> None:
        prompts = list(dict.fromkeys(order.prompt for order in wanted if order.prompt in self._asking.refused))
        if len(prompts) == 1:
            raise self._asking.refused[prompts[0]]
        said = [self._asking.refused[prompt].what for prompt in prompts]
        fix = self._asking.refused[prompts[0]].fix if prompts else None
        raise_all(said, error=RefusedPromptError, what="The image generator cannot draw some prompts:", fix=fix)


@dataclass(frozen=True, kw_only=True, eq=False)
class _PictureSide:
    """The picture side of an embedder, as a function of pictures."""

    embedder: Embedder

    def __call__(self, pictures: Sequence[Image.Image]) -> FloatArray:
        """Return vectors [n, d]."""
        return np.asarray(self.embedder.embed_prepared([self.embedder.prepare(picture) for picture in pictures]), dtype=np.float32)


def gate_for(settings: GeneratorSettings, *, embedder: Embedder | None = None, class_names: Sequence[str] = ()) -> Gate:
    """Return the gate that settings mean.

    Args:
        settings: section `generator`.
        embedder: compares pictures with classes, if it has a text side and can take new pictures; None: they are not compared.
        class_names: the classes; with fewer than two there is nothing to compare.
    """
    return Gate(
        near_duplicate_bits=settings.near_duplicate_bits,
        off_class=_off_class(embedder, tuple(class_names), settings.off_class_margin),
    )


def studio_for(
    settings: Settings,
    generator: ImageGenerator,
    folder: Path,
    *,
    embedder: Embedder | None = None,
    class_names: Sequence[str] = (),
    progress: Progress = no_progress,
) -> Studio:
    """Return a studio as section `generator` of the settings wants it.

    Args:
        settings: of the project.
        generator: words to pictures.
        folder: where drawings are kept.
        embedder: for the gate `off-class`; see `gate_for`.
        class_names: the classes of the project.
        progress: told how many orders of a call are done.
    """
    chosen = settings.generator
    return Studio(
        generator,
        Drawings(folder),
        gate=gate_for(chosen, embedder=embedder, class_names=class_names),
        batch_size=chosen.batch_size,
        max_new=chosen.max_pictures,
        progress=progress,
        engine=engine_elsewhere(settings),
    )


def confirm_cost(generator: ImageGenerator, n_pictures: int, settings: GeneratorSettings) -> None:
    """Do nothing if a generator charges nothing or no more than the settings allow.

    Raises:
        ConfigError: with the cost, if that is more; or if the price is not known and no cost was allowed.
    """
    if not isinstance(generator, CostsMoney):
        return
    cost = generator.cost_of(n_pictures)
    if cost is None and not settings.max_cost:
        raise ConfigError(
            f"{n_pictures} pictures of {generator.generator_id} cost money, and the price is not known.",
            where="[generator] max_cost",
            fix="Give the price in the generator's options, or set max_cost to what you are ready to pay.",
        )
    if cost is not None and cost.amount > settings.max_cost:
        raise ConfigError(
            f"{n_pictures} pictures cost up to {cost.amount:.2f} {cost.currency} ({cost.basis}).",
            where="[generator] max_cost",
            given=settings.max_cost,
            fix=f"Set it to {cost.amount:.2f} or more to agree, or ask for fewer pictures.",
        )


def _off_class(embedder: Embedder | None, class_names: tuple[str, ...], margin: float) -> OffClass | None:
    if embedder is None or not margin or len(class_names) < 2:  # noqa: PLR2004 - one class has no other
        return None
    if isinstance(embedder, KnowsVectors) or not embedder.has_text:
        return None
    return OffClass(
        embed_pictures=_PictureSide(embedder=embedder),
        class_vectors=embed_phrases([plain_caption(name).phrase for name in class_names], embedder),
        class_names=class_names,
        margin=margin,
        embedder_id=embedder.encoder_id,
    )
