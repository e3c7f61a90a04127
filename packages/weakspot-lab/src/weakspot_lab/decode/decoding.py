"""A failure direction as images: the caption of a class, rotated towards and away from what its failures share, and decoded."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, child_seed
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.failures import Side, describe_criterion
from weakspot.core.generated import GenerationRequest, GenerationResult, rejections
from weakspot.core.record import Record
from weakspot.core.roles import GeneratedImage, ImageGenerator
from weakspot.core.run import RunRecord
from weakspot.data.embed import embed_phrases
from weakspot.generate.project_generator import GeneratedPredictions, GenerationTools
from weakspot.generate.service import GeneratorService, service_for
from weakspot.project.project import Project
from weakspot.words.captions import plain_caption
from weakspot_lab.decode.space import (
    Decoder,
    chosen_slice,
    decoder_of,
    embedder_of,
    harder_and_easier,
    normal_in_space,
    refuse_other_space,
)

SeriesName = Literal["harder", "easier"]
SERIES: tuple[SeriesName, SeriesName] = ("harder", "easier")


@dataclass(frozen=True, kw_only=True)
class DecodeRequest:
    """What is to be generated.

    Args:
        slice_id: id of a slice of the run, or its beginning; empty for the first one with a direction, confirmed ones first.
        alphas: shares of the rotation from the caption to the direction; beyond 0.3 images hardly show the class.
        n_each: images for every share, in each of the two series.
    """

    slice_id: str = ""
    alphas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3)
    n_each: int = 8


class DecodedPoint(Record):
    """The images of one share of the rotation.

    Args:
        series: harder is towards the failures.
        alpha: the share.
        n_generated: images that were asked for.
        rejected: images that a quality check rejected, by quality check.
        failures: of those that passed; None if no classifier could be asked.
    """

    series: SeriesName
    alpha: float
    n_generated: int
    rejected: dict[str, int]
    failures: Share | None = None


class DecodedDirection(Record):
    """What came of it.

    Args:
        run_id: the run that found the slice.
        slice_id: the slice.
        title: the slice as people read it.
        class_name: what images are to show.
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
class DecodedImage:
    """One place of a series: the request and what came of it, the image if it passed, and what the classifier says of it."""

    generated: GenerationResult
    image: Image.Image | None
    answer: str = ""
    fails: bool | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodeResult:
    """The facts, and the images of every point in their order."""

    facts: DecodedDirection
    draws: tuple[tuple[DecodedImage, ...], ...]


def decode_direction(
    project: Project,
    request: DecodeRequest,
    *,
    run_id: str | None = None,
    generator: ImageGenerator | None = None,
) -> DecodeResult:
    """Decode the direction of a slice of a run, the newest by default; see `DecodeStage`."""
    record = project.run_record(run_id)
    tools = project.generation_tools("draw", generator=generator, record=record)
    return DecodeStage(record=record, tools=tools).run(request)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneEmbedding:
    """A generator that decodes always the same embedding, so that only the seed differs.

    Args:
        decoder: generates.
        embedding: [d].
    """

    decoder: Decoder
    embedding: FloatArray

    @property
    def generator_id(self) -> str:
        digest = hashlib.sha256(np.asarray(self.embedding, dtype="<f4").tobytes()).hexdigest()[:16]
        return f"{self.decoder.generator_id}#{digest}"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        embeddings = np.repeat(self.embedding[None], len(prompts), axis=0)
        return [
            replace(one, generator_id=self.generator_id)
            for one in self.decoder.decode(embeddings, prompts=prompts, seeds=seeds)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodeStage:
    """Decodes a direction.

    Args:
        record: the run whose slices are looked at.
        tools: the project, and who generates.
    """

    record: RunRecord
    tools: GenerationTools

    def run(self, request: DecodeRequest) -> DecodeResult:
        """Rotate, decode and ask the classifier; what was generated before is not generated again.

        Raises:
            ConfigError: if the request means nothing, or generator and embedder do not share a space.
            NotEnoughDataError: if the run has no slice with a direction.
        """
        _refuse_meaningless(request)
        found = chosen_slice(self.record, request.slice_id)
        tools = self.tools
        image_generator = tools.image_generator()
        decoder, embedder = decoder_of(image_generator), embedder_of(tools.prepared)
        refuse_other_space(decoder, embedder)
        tools.confirm_cost(image_generator, 2 * len(request.alphas) * request.n_each)
        caption = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT).phrase
        reference = embed_phrases([caption], embedder)[0]
        both = harder_and_easier(reference, normal_in_space(found.rule), request.alphas)
        seeds = [
            child_seed(tools.settings.seed, "decode", found.slice_id, str(place))
            for place in range(request.n_each)
        ]
        requests = [
            GenerationRequest(class_name=found.class_name, prompt=caption, seed=seed)
            for seed in seeds
        ]
        points, draws = [], []
        with tools.store.writing():
            for number, (name, alpha, embedding) in enumerate(_steps(request.alphas, both)):
                row = self._row(
                    OneEmbedding(decoder=decoder, embedding=embedding),
                    requests,
                    number * len(requests),
                    request,
                )
                points.append(_point(name, alpha, row, is_judged=self._has_predictions))
                draws.append(row)
        facts = DecodedDirection(
            run_id=self.record.run_id,
            slice_id=found.slice_id,
            title=found.title,
            class_name=found.class_name,
            caption=caption,
            criterion=describe_criterion(tools.criterion),
            generator_id=image_generator.generator_id,
            encoder_id=embedder.encoder_id,
            points=tuple(points),
        )
        return DecodeResult(facts=facts, draws=tuple(draws))

    @property
    def _has_predictions(self) -> bool:
        prepared = self.tools.prepared
        return (
            prepared.classifier is not None and prepared.samples.dataset.task is Task.SINGLE_LABEL
        )

    def _row(
        self,
        generator: OneEmbedding,
        requests: Sequence[GenerationRequest],
        n_before: int,
        request: DecodeRequest,
    ) -> tuple[DecodedImage, ...]:
        total = 2 * len(request.alphas) * len(requests)
        tools = self.tools

        def report_done(done: int, _total: int | None) -> None:
            tools.progress(n_before + done, total)

        if not self._has_predictions:
            prepared = tools.prepared
            names = prepared.samples.dataset.class_names
            service = service_for(
                tools.settings,
                generator,
                tools.store.generated,
                embedder=prepared.embedder,
                class_names=names,
                progress=report_done,
            )
            return tuple(_shown(one, service) for one in service.generate(requests))
        predictions = tools.predictions(generator, progress=report_done)
        try:
            generated = predictions.generate(requests)
            return self._judge(generated, predictions)
        finally:
            predictions.flush()

    def _judge(
        self, generated: Sequence[GenerationResult], predictions: GeneratedPredictions
    ) -> tuple[DecodedImage, ...]:
        kept = [one.content_hash for one in generated if one.is_kept]
        names = predictions.class_names
        probabilities = predictions.probabilities(kept)
        labels = np.full(len(kept), names.index(generated[0].request.class_name))
        fails = self.tools.criterion.failed_predictions(probabilities, labels, names).tolist()
        said = iter(zip(kept, probabilities, fails, strict=True))
        rows = []
        for one in generated:
            if not one.is_kept:
                rows.append(DecodedImage(generated=one, image=None, answer=one.rejected_by))
                continue
            key, row, has_failed = next(said)
            answer = names[int(row.argmax())]
            rows.append(
                DecodedImage(
                    generated=one,
                    image=predictions.image(key),
                    answer=answer,
                    fails=bool(has_failed),
                )
            )
        return tuple(rows)


def _steps(
    alphas: Sequence[float], both: tuple[FloatArray, FloatArray]
) -> Iterator[tuple[SeriesName, float, FloatArray]]:
    for name, embeddings in zip(SERIES, both, strict=True):
        for alpha, embedding in zip(alphas, embeddings, strict=True):
            yield name, alpha, embedding


def _shown(generated: GenerationResult, service: GeneratorService) -> DecodedImage:
    return DecodedImage(
        generated=generated,
        image=service.image(generated) if generated.is_kept else None,
        answer=generated.rejected_by,
    )


def _point(
    name: SeriesName, alpha: float, row: Sequence[DecodedImage], *, is_judged: bool
) -> DecodedPoint:
    judged = [one.fails for one in row if one.fails is not None]
    return DecodedPoint(
        series=name,
        alpha=alpha,
        n_generated=len(row),
        rejected=rejections(one.generated for one in row),
        failures=Share.of(sum(judged), len(judged)) if is_judged else None,
    )


def _refuse_meaningless(request: DecodeRequest) -> None:
    if (
        request.n_each < 1
        or not request.alphas
        or not all(0.0 <= alpha <= 1.0 for alpha in request.alphas)
    ):
        raise ConfigError(
            "There is nothing to decode: shares of the rotation lie between 0 and 1, and every one needs an image.",
            given={"alphas": list(request.alphas), "n_each": request.n_each},
        )
