"""Whom methods may ask for words, made from the models of a project; what language models answer is checked JSON, never executed."""

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import child_seed
from weakspot.core.assistants import AnswerRows, Assistants, CaptionRows, EmbedTexts
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, ModelError, WeakspotError
from weakspot.core.roles import Captioner, Embedder, Engine, QuestionAnswerer, TextGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import SampleSet
from weakspot.data.embed import embed_phrases
from weakspot.run.embedding import EMBEDDED, KnowsEmbeddings, embed
from weakspot.run.model_map import (
    ImageBench,
    ImageTexts,
    build_segmenter,
    failing_as_model_error,
    storable,
)
from weakspot.run.settings import PartSettings, Settings
from weakspot.run.wiring import AUTO, build_part, resolved_options, with_provider
from weakspot.run.witnesses import Seeing, build_witnesses, tag_captions
from weakspot.store.project import ProjectStore
from weakspot.store.texts import text_cache, text_keys

WHO = "language model"
MAX_ANSWER_LENGTH = 200_000
MAX_STARTS = 1000
AGAIN = "{prompt}\n\nAn earlier answer could not be used: {problem} Answer with JSON only."
_SHOWN = 160
_THOUGHT = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
_ANY_START = re.compile(r'[\[{"]|-?\d|true|false|null')
_STARTS = {"object": re.compile(r"\{"), "array": re.compile(r"\["), "string": re.compile(r'"')}
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment"}
)
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
Schema = Mapping[str, JsonValue]


def checked_json(text: str, schema: Schema) -> JsonValue:
    """Return the first JSON value in an answer that fits a schema; words and code fences around it are ignored.

    >>> checked_json('Sure! Here it is: {"colours": ["red"]}', {"type": "object", "required": ["colours"]})
    {'colours': ['red']}

    Raises:
        ModelError: with what is wrong with the answer.
        ConfigError: if the schema uses what is not known here.
    """
    problems: list[str] = []
    for value in _values(text, _STARTS.get(str(schema.get("type")), _ANY_START)):
        found = list(schema_problems(value, schema))
        if not found:
            return value
        problems.append(found[0])
    if not problems:
        what = "The language model's answer holds no JSON, or only the beginning of some."
        raise ModelError(what, given=text.strip()[:_SHOWN])
    raise ModelError(
        f"The language model's answer does not fit: {problems[0]}.", given=text.strip()[:_SHOWN]
    )


def schema_problems(value: JsonValue, schema: Schema, where: str = "the answer") -> Iterator[str]:
    """Yield everything in which a value does not fit a schema.

    Args:
        value: a parsed value.
        schema: the part of JSON Schema that weakspot uses.
        where: how the value is called in sentences.
    """
    unknown = sorted(set(schema) - _ANNOTATIONS - set(_CHECKS) - {"type"})
    if unknown:
        raise ConfigError(
            "This schema uses keywords that weakspot does not check.",
            given=unknown,
            fix=f"Use {sorted(_CHECKS)}.",
        )
    wanted = schema.get("type")
    kinds = wanted if isinstance(wanted, list) else [wanted] if wanted is not None else []
    if kinds and not any(_TYPES[str(kind)](value) for kind in kinds if str(kind) in _TYPES):
        yield f"{where} is no {' or '.join(map(str, kinds))}"
        return
    for keyword, check in _CHECKS.items():
        if keyword in schema:
            yield from check(value, schema[keyword], schema, where)


class Proposer:
    """Asks a language model for JSON; the same question gets the same answer, from the project folder if it was asked before.

    Args:
        generator: the language model.
        store: the project's data.
        seed: seed of the run.
    """

    def __init__(self, generator: TextGenerator, store: ProjectStore, *, seed: int) -> None:
        self._generator = generator
        self._store = store
        self._seed = seed
        self._failure: ModelError | None = None

    def __call__(self, prompt: str, schema: Schema) -> JsonValue:
        """Return a checked answer; one that does not fit is asked for once more, with another seed and the reason.

        A model that cannot be reached is not asked again: others that want something of it need not wait for it, too.

        Raises:
            ModelError: if the second answer does not fit either, or none comes.
        """
        try:
            return self._remembered(prompt, schema)
        except ModelError as error:
            if isinstance(error.__cause__, WeakspotError):
                self._failure = error
            raise

    def _remembered(self, prompt: str, schema: Schema) -> JsonValue:
        with failing_as_model_error(WHO):
            cache = text_cache(self._store.data, f"proposals {self._generator.generator_id}")
        key = text_keys([json.dumps(["proposal", prompt, schema, self._seed], ensure_ascii=False)])
        kept = cache.texts(key)[0]
        if kept is not None:
            return checked_json(kept, schema)
        if self._failure is not None:
            raise self._failure
        text, value = self._check(prompt, schema)
        with self._store.writing():
            cache.append(key, [text])
        return value

    def _check(self, prompt: str, schema: Schema) -> tuple[str, JsonValue]:
        try:
            first = self._said(prompt, schema, self._seed)
            return first, checked_json(first, schema)
        except ModelError as error:
            if isinstance(error.__cause__, WeakspotError):
                raise
            again = AGAIN.replace("{problem}", error.what).replace("{prompt}", prompt)
        second = self._said(again, schema, child_seed(self._seed, "proposal", "again"))
        return second, checked_json(second, schema)

    def _said(self, prompt: str, schema: Schema, seed: int) -> str:
        with failing_as_model_error(WHO):
            return storable(self._generator.generate(prompt, schema=schema, seed=seed))


def _values(text: str, starts: re.Pattern[str]) -> Iterator[JsonValue]:
    """Yield the JSON values in a text, in order, none of them inside another; what a model thought aloud is skipped.

    Args:
        text: the answer.
        starts: what such values start with.
    """
    if len(text) > MAX_ANSWER_LENGTH:
        raise ModelError(
            f"The language model's answer is longer than {MAX_ANSWER_LENGTH:,} letters.",
            given=text[:_SHOWN],
        )
    answer = _THOUGHT.sub("", text)
    decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    place = 0
    for _ in range(MAX_STARTS):
        start = starts.search(answer, place)
        if start is None:
            return
        try:
            value, place = decoder.raw_decode(answer, start.start())
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            place = start.end()
            continue
        yield value


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


Check = Callable[[Any, Any, Schema, str], Iterator[str]]


def _check_enum(value: Any, allowed: Any, _schema: Schema, where: str) -> Iterator[str]:
    if not any(type(value) is type(one) and value == one for one in allowed):
        yield f"{where} is none of {json.dumps(allowed, ensure_ascii=False)[:_SHOWN]}"


def _check_required(value: Any, names: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{where} lacks {name!r}" for name in names if name not in value)


def _check_properties(value: Any, properties: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in properties.items():
            if name in value:
                yield from schema_problems(value[name], inner, f"{name!r} of {where}")


def _check_further(value: Any, allowed: Any, schema: Schema, where: str) -> Iterator[str]:
    declared: Any = schema.get("properties", {})
    further = [name for name in value if name not in declared] if isinstance(value, dict) else []
    for name in further:
        if allowed is False:
            yield f"{where} has {name!r}, which was not asked for"
        elif isinstance(allowed, Mapping):
            yield from schema_problems(value[name], allowed, f"{name!r} of {where}")


def _check_items(value: Any, inner: Any, _schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield from schema_problems(item, inner, f"item {number} of {where}")


def _check_unique(value: Any, wanted: Any, _schema: Schema, where: str) -> Iterator[str]:
    if (
        wanted
        and isinstance(value, list)
        and len({json.dumps(item, sort_keys=True) for item in value}) < len(value)
    ):
        yield f"{where} says something twice"


def _bound(
    kind: type | tuple[type, ...], measure: Callable[[Any], float], sign: int, words: str
) -> Check:
    def check(value: Any, bound: Any, _schema: Schema, where: str) -> Iterator[str]:
        if (
            isinstance(value, kind)
            and not isinstance(value, bool)
            and sign * (measure(value) - bound) < 0
        ):
            yield f"{where} has {measure(value):g} {words}, {'fewer' if sign > 0 else 'more'} than {bound}"

    return check


_CHECKS: Mapping[str, Check] = {
    "enum": _check_enum,
    "const": lambda value, wanted, schema, where: _check_enum(value, [wanted], schema, where),
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_further,
    "minProperties": _bound(dict, len, 1, "entries"),
    "maxProperties": _bound(dict, len, -1, "entries"),
    "items": _check_items,
    "minItems": _bound(list, len, 1, "items"),
    "maxItems": _bound(list, len, -1, "items"),
    "uniqueItems": _check_unique,
    "minLength": _bound(str, len, 1, "letters"),
    "maxLength": _bound(str, len, -1, "letters"),
    "minimum": _bound((int, float), float, 1, "as its value"),
    "maximum": _bound((int, float), float, -1, "as its value"),
}


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
    """

    captioner: Captioner | None = None
    answerer: QuestionAnswerer | None = None
    language: TextGenerator | None = None
    second: Embedder | None = None

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
    )


def assistants_for(
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
    bench = ImageBench(dataset=dataset, store=store, engine=engine, progress_of=progress_of)
    seeing = _seeing(settings, folder, embedder, bench)
    return described, Assistants(
        embed_texts=None if embedder is None or not embedder.has_text else _text_side(embedder),
        captions=_column_captions(dataset)
        or _captions(asked.captioner, bench)
        or _tagged_captions(seeing, settings),
        answers=_answers(asked.answerer, bench),
        propose=None
        if asked.language is None
        else Proposer(asked.language, store, seed=settings.seed),
        second=None
        if asked.second is None or SECOND not in described.spaces
        else (SECOND, _text_side(asked.second)),
        seen=seeing,
        trust=getattr(embedder, "knows", None),
        measured=getattr(embedder, "measured", None),
    )


def _seeing(
    settings: Settings, folder: Path, embedder: Embedder | None, bench: ImageBench
) -> Seeing | None:
    progress = bench.progress_of("download weights")
    witnesses = build_witnesses(
        settings.witnesses,
        embedder=embedder,
        segmenter=build_segmenter(settings, folder, progress=progress),
        providers=None if settings.engine.provider == AUTO else (settings.engine.provider,),
        progress=progress,
    )
    if not witnesses or not bench.dataset.has_images:
        return None
    return Seeing(
        witnesses=witnesses,
        bench=bench,
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


def _text_side(embedder: Embedder) -> EmbedTexts:
    return lambda phrases: embed_phrases(phrases, embedder)


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


def _captions(captioner: Captioner | None, bench: ImageBench) -> CaptionRows | None:
    if captioner is None or not bench.dataset.has_images:
        return None
    texts = ImageTexts(
        bench,
        who="captioner",
        part=captioner,
        identity=lambda: captioner.captioner_id,
        step="caption",
    )
    return lambda rows: texts.said(rows, captioner.caption)


def _answers(answerer: QuestionAnswerer | None, bench: ImageBench) -> AnswerRows | None:
    if answerer is None or not bench.dataset.has_images:
        return None
    texts = ImageTexts(
        bench,
        who="question answerer",
        part=answerer,
        identity=lambda: answerer.answerer_id,
        step="ask",
    )
    return lambda rows, question: texts.said(
        rows, partial(_answer, answerer, question), question=question
    )


def _answer(answerer: QuestionAnswerer, question: str, images: Sequence[Image.Image]) -> list[str]:
    return answerer.answer(images, question)
