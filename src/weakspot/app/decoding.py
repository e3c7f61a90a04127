"""A failure direction as pictures: the caption of a class, rotated towards and away from what its failures share, and decoded."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from PIL import Image

from weakspot.app.decoding_space import Decoder, chosen_slice, decoder_of, embedder_of, normal_in_space, refuse_other_space
from weakspot.app.drawing_tools import DrawingTools
from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.app.project import Project
from weakspot.app.studio import Studio, studio_for
from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Task
from weakspot.core.drawn import DrawnPicture, PictureOrder, rejections
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.failures import Side, describe_criterion
from weakspot.core.record import Record
from weakspot.core.roles import GeneratedPicture, ImageGenerator
from weakspot.core.run import RunRecord
from weakspot.core.seeding import child_seed
from weakspot.embed.phrases import embed_phrases
from weakspot.generate.interpolation import harder_and_easier
from weakspot.lexicon.captions import plain_caption

SeriesName = Literal["harder", "easier"]
SERIES: tuple[SeriesName, SeriesName] = ("harder", "easier")


@dataclass(frozen=True, kw_only=True)
class DecodeRequest:
    """What is to be drawn.

    Args:
        slice_id: id of a slice of the run, or its beginning; empty for the first one with a direction, confirmed ones first.
        alphas: shares of the rotation from the caption to the direction; beyond 0.3 pictures hardly show the class.
        n_each: pictures for every share, in each of the two series.
    """

    slice_id: str = ""
    alphas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3)
    n_each: int = 8


class DecodedPoint(Record):
    """The pictures of one share of the rotation.

    Args:
        series: harder is towards the failures.
        alpha: the share.
        n_drawn: pictures that were asked for.
        rejected: pictures that a gate rejected, by gate.
        failures: of those that passed; None if no classifier could be asked.
    """

    series: SeriesName
    alpha: float
    n_drawn: int
    rejected: dict[str, int]
    failures: Share | None = None


class DecodedDirection(Record):
    """What came of it.

    Args:
        run_id: the run that found the slice.
        slice_id: the slice.
        title: the slice as people read it.
        class_name: what pictures are to show.
        caption: the words at share 0.
        criterion: what counts as a failure, in words.
        generator_id: who decoded.
        encoder_id: whose space the direction is in.
        points: the harder series by share, then the easier one.
    """

    run_id: str
    slice_id: str
    title: str
    class_name: str
    caption: str
    criterion: str
    generator_id: str
    encoder_id: str
    points: tuple[DecodedPoint, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodedDraw:
    """One place of a series: the order and what came of it, the picture if it passed, and what the classifier says of it."""

    drawn: DrawnPicture
    picture: Image.Image | None
    answer: str = ""
    fails: bool | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodeResult:
    """The facts, and the pictures of every point in their order."""

    facts: DecodedDirection
    draws: tuple[tuple[DecodedDraw, ...], ...]


def decode_direction(
    project: Project, request: DecodeRequest, *, run_id: str | None = None, generator: ImageGenerator | None = None
) -> DecodeResult:
    """Decode the direction of a slice of a run, the newest by default; see `DecodeStage`."""
    record = project.run_record(run_id)
    tools = project.drawing_tools("draw", generator=generator, record=record)
    return DecodeStage(record=record, tools=tools).run(request)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneVector:
    """A generator that decodes always the same vector, so that only the seed differs.

    Args:
        decoder: draws.
        vector: [d].
    """

    decoder: Decoder
    vector: FloatArray

    @property
    def generator_id(self) -> str:
        """Name of the decoder and hash of the vector."""
        digest = hashlib.sha256(np.asarray(self.vector, dtype="<f4").tobytes()).hexdigest()[:16]
        return f"{self.decoder.generator_id}#{digest}"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedPicture]:
        """Return one picture a prompt, all of the same vector."""
        vectors = np.repeat(self.vector[None], len(prompts), axis=0)
        return [replace(one, generator_id=self.generator_id) for one in self.decoder.decode(vectors, prompts=prompts, seeds=seeds)]


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodeStage:
    """Decodes a direction.

    Args:
        record: the run whose slices are looked at.
        tools: the project, and who draws.
    """

    record: RunRecord
    tools: DrawingTools

    def run(self, request: DecodeRequest) -> DecodeResult:
        """Rotate, decode and ask the classifier; what was drawn before is not drawn again.

        Raises:
            ConfigError: if the request means nothing, or generator and embedder do not share a space.
            NotEnoughDataError: if the run has no slice with a direction.
        """
        _refuse_meaningless(request)
        found = chosen_slice(self.record, request.slice_id)
        tools = self.tools
        drawer = tools.drawer()
        decoder, embedder = decoder_of(drawer), embedder_of(tools.prepared)
        refuse_other_space(decoder, embedder)
        tools.confirm_cost(drawer, 2 * len(request.alphas) * request.n_each)
        caption = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT).phrase
        reference = embed_phrases([caption], embedder)[0]
        both = harder_and_easier(reference, normal_in_space(found.rule), request.alphas)
        seeds = [child_seed(tools.settings.seed, "decode", found.slice_id, str(place)) for place in range(request.n_each)]
        orders = [PictureOrder(class_name=found.class_name, prompt=caption, seed=seed) for seed in seeds]
        points, draws = [], []
        with tools.store.writing():
            for number, (name, alpha, vector) in enumerate(_steps(request.alphas, both)):
                row = self._row(OneVector(decoder=decoder, vector=vector), orders, number * len(orders), request)
                points.append(_point(name, alpha, row, is_judged=self._has_outcomes))
                draws.append(row)
        facts = DecodedDirection(
            run_id=self.record.run_id,
            slice_id=found.slice_id,
            title=found.title,
            class_name=found.class_name,
            caption=caption,
            criterion=describe_criterion(tools.criterion),
            generator_id=drawer.generator_id,
            encoder_id=embedder.encoder_id,
            points=tuple(points),
        )
        return DecodeResult(facts=facts, draws=tuple(draws))

    @property
    def _has_outcomes(self) -> bool:
        """Whether failures of new pictures can be told."""
        prepared = self.tools.prepared
        return prepared.classifier is not None and prepared.samples.dataset.task is Task.SINGLE_LABEL

    def _row(
        self, generator: OneVector, orders: Sequence[PictureOrder], n_before: int, request: DecodeRequest
    ) -> tuple[DecodedDraw, ...]:
        total = 2 * len(request.alphas) * len(orders)
        tools = self.tools

        def told(done: int, _total: int | None) -> None:
            tools.progress(n_before + done, total)

        if not self._has_outcomes:
            prepared = tools.prepared
            names = prepared.samples.dataset.class_names
            studio = studio_for(
                tools.settings, generator, tools.store.drawn, embedder=prepared.embedder, class_names=names, progress=told
            )
            return tuple(_shown(one, studio) for one in studio.draw(orders))
        outcomes = tools.outcomes(generator, progress=told)
        try:
            drawn = outcomes.draw(orders)
            return self._judged(drawn, outcomes)
        finally:
            outcomes.flush()

    def _judged(self, drawn: Sequence[DrawnPicture], outcomes: DrawnOutcomes) -> tuple[DecodedDraw, ...]:
        kept = [one.content_hash for one in drawn if one.is_kept]
        names = outcomes.class_names
        probabilities = outcomes.probabilities(kept)
        labels = np.full(len(kept), names.index(drawn[0].order.class_name))
        fails = self.tools.criterion.failed_outcomes(probabilities, labels, names).tolist()
        said = iter(zip(kept, probabilities, fails, strict=True))
        rows = []
        for one in drawn:
            if not one.is_kept:
                rows.append(DecodedDraw(drawn=one, picture=None, answer=one.rejected_by))
                continue
            key, row, has_failed = next(said)
            answer = names[int(row.argmax())]
            rows.append(DecodedDraw(drawn=one, picture=outcomes.picture(key), answer=answer, fails=bool(has_failed)))
        return tuple(rows)


def _steps(alphas: Sequence[float], both: tuple[FloatArray, FloatArray]) -> Iterator[tuple[SeriesName, float, FloatArray]]:
    for name, vectors in zip(SERIES, both, strict=True):
        for alpha, vector in zip(alphas, vectors, strict=True):
            yield name, alpha, vector


def _shown(drawn: DrawnPicture, studio: Studio) -> DecodedDraw:
    return DecodedDraw(drawn=drawn, picture=studio.picture(drawn) if drawn.is_kept else None, answer=drawn.rejected_by)


def _point(name: SeriesName, alpha: float, row: Sequence[DecodedDraw], *, is_judged: bool) -> DecodedPoint:
    judged = [one.fails for one in row if one.fails is not None]
    return DecodedPoint(
        series=name,
        alpha=alpha,
        n_drawn=len(row),
        rejected=rejections(one.drawn for one in row),
        failures=Share.of(sum(judged), len(judged)) if is_judged else None,
    )


def _refuse_meaningless(request: DecodeRequest) -> None:
    if request.n_each < 1 or not request.alphas or not all(0.0 <= alpha <= 1.0 for alpha in request.alphas):
        raise ConfigError(
            "There is nothing to decode: shares of the rotation lie between 0 and 1, and every one needs a picture.",
            given={"alphas": list(request.alphas), "n_each": request.n_each},
        )
