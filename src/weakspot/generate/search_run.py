"""An open-ended search for failures of one class, with the generator, captioner and classifier of a project."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from PIL import Image
from pydantic import JsonValue

from weakspot.core.record import Record
from weakspot.core.roles import Captioner
from weakspot.generate.project_generator import GenerationTools
from weakspot.generate.sampling import StoredSampler
from weakspot.generate.search.finding import CaptionSearch, ClassSearch, search_failures
from weakspot.generate.search.refinement import shorter_wordings
from weakspot.run.assistants import assistant_parts
from weakspot.run.stage_clock import command_line, library_versions

N_IMAGES = 12
_CARRIED = re.compile(
    r"^(it is|there is|there are|the background is)\s+(?:a |an |the )?(.+)$", re.IGNORECASE
)


class SearchRecord(Record):
    """A search with everything that it depends on.

    Args:
        command: what was asked for, as typed.
        started: ISO 8601, UTC.
        finished: the same.
        seed: of the search.
        settings: of the project.
        versions: of libraries.
        inputs: which generator, classifier, embedder and captioner.
        tally: images kept, and rejected by each quality check, over the whole generating folder of this generator.
        result: what was found.
    """

    command: str
    started: str
    finished: str
    seed: int
    settings: dict[str, JsonValue]
    versions: dict[str, str]
    inputs: dict[str, str]
    tally: dict[str, int]
    result: ClassSearch


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """What a person asks for.

    Args:
        class_name: whose failures are searched for.
        target: count only failures towards this class.
        captions: a person's own captions, measured first.
        until_target_failures: go on with a promising caption until so many failures that count; 0 to stop when it is proven.
    """

    class_name: str
    target: str = ""
    captions: tuple[str, ...] = ()
    until_target_failures: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult:
    """A search and the images that show what it found, by content hash."""

    record: SearchRecord
    images: Mapping[str, Image.Image]


def search_class(
    tools: GenerationTools, request: SearchRequest, captioner: Captioner | None = None
) -> SearchResult:
    """Search; images that were generated before are not generated again, so that an interrupted search goes on where it was.

    Args:
        tools: the project, and who generates.
        request: what is searched for.
        captioner: a ready captioner, instead of the configured one.

    Raises:
        ConfigError: if there is no classifier or generator, or the cost is not agreed to.
        DataError: if the class or the target does not exist.
        RefusedPromptError: if the generator cannot generate the class at all.
    """
    started, settings = _now(), tools.settings
    tools.prepared.samples.dataset.class_code(request.class_name)
    image_generator = tools.image_generator(purpose="search")
    tools.confirm_cost(image_generator, settings.search.budget)
    with tools.store.writing():
        predictions = tools.predictions(image_generator)
        sampler = StoredSampler(
            predictions=predictions,
            seed=settings.seed,
            image_generator=image_generator,
            least_parents=settings.generator.least_parents,
            captioner=captioner or assistant_parts(settings, tools.store.root).captioner,
            embed_texts_by=tools.prepared.assistants.embed_texts,
            class_name=request.class_name,
            folder=tools.store.generated,
        )
        try:
            result = search_failures(sampler, _search_of(tools, request), tools.progress)
        finally:
            predictions.flush()
        images = {key: predictions.image(key) for key in _shown_keys(result)}
    made_by = {"generator": image_generator.generator_id, "captions": result.caption_source}
    record = SearchRecord(
        command=command_line(),
        started=started,
        finished=_now(),
        seed=settings.seed,
        settings=settings.model_dump(mode="json"),
        versions=library_versions(),
        inputs=tools.prepared.inputs | made_by,
        tally=predictions.tally,
        result=result,
    )
    return SearchResult(record=record, images=images)


def _search_of(tools: GenerationTools, request: SearchRequest) -> CaptionSearch:
    language = assistant_parts(tools.settings, tools.store.root).language
    return CaptionSearch(
        class_name=request.class_name,
        target=request.target or None,
        criterion=tools.criterion,
        parents=tools.settings.failure.parents,
        settings=tools.settings.search,
        until_target_failures=request.until_target_failures,
        own_captions=request.captions,
        reword=None
        if language is None
        else partial(
            shorter_wordings,
            language=language,
            class_name=request.class_name,
            seed=tools.settings.seed,
        ),
    )


def phrase_of(caption: str) -> str:
    """Return a caption of short sentences as a phrase that a person would put to real images.

    >>> phrase_of("it is green. the background is striped.")
    'green, striped background'
    """
    return ", ".join(_said(sentence) for sentence in caption.split(".") if sentence.strip())


def _said(sentence: str) -> str:
    carried = _CARRIED.match(sentence.strip())
    if carried is None:
        return sentence.strip()
    return f"{carried[2]} background" if "background" in carried[1].lower() else carried[2]


def _shown_keys(result: ClassSearch) -> list[str]:
    shown = [result.example_keys, *(finding.example_keys for finding in result.findings)]
    shown += [cluster.example_keys for cluster in result.clusters]
    return list(dict.fromkeys(key for keys in shown for key in keys[:N_IMAGES]))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
