"""An open-ended search for failures of one class, with the generator, captioner and classifier of a project."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from PIL import Image
from pydantic import JsonValue

from weakspot.core.record import Record
from weakspot.core.roles import Captioner, ImageGenerator
from weakspot.generate.predictions import GeneratedPredictions
from weakspot.generate.project_generator import GenerationTools
from weakspot.generate.sampling import (
    GeneratedSeries,
    SamplerParts,
    StoredSampler,
    configured_captioner,
)
from weakspot.generate.search.finding import CaptionSearch, ClassSearch, search_failures
from weakspot.generate.search.refinement import CaptionRewriter
from weakspot.generate.search.trials import SequentialDesign
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


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchStage:
    """Searches.

    Args:
        tools: the project, and who generates.
        captioner: a ready captioner, instead of the configured one.
    """

    tools: GenerationTools
    captioner: Captioner | None = None

    def run(self, call: SearchRequest) -> SearchResult:
        """Search; images that were generated before are not generated again, so that an interrupted search goes on where it was.

        Raises:
            ConfigError: if there is no classifier or generator, or the cost is not agreed to.
            DataError: if the class or the target does not exist.
            RefusedPromptError: if the generator cannot generate the class at all.
        """
        started = _now()
        tools = self.tools
        tools.prepared.samples.dataset.class_code(call.class_name)
        image_generator = tools.image_generator(purpose="search")
        tools.confirm_cost(image_generator, tools.settings.search.budget)
        with tools.store.writing():
            predictions = tools.predictions(image_generator)
            sampler = self._sampler(predictions, image_generator, call.class_name)
            try:
                result = search_failures(sampler, self._request(call), tools.progress)
            finally:
                predictions.flush()
            images = {key: predictions.image(key) for key in _shown_keys(result)}
        return SearchResult(
            record=self._record(started, image_generator, predictions, result), images=images
        )

    def _sampler(
        self, predictions: GeneratedPredictions, image_generator: ImageGenerator, class_name: str
    ) -> StoredSampler:
        settings, store = self.tools.settings, self.tools.store
        parts = SamplerParts(
            generator=image_generator,
            captioner=self.captioner or configured_captioner(settings, store.root),
            embed_texts=self.tools.prepared.assistants.embed_texts,
        )
        series = GeneratedSeries(
            predictions=predictions,
            seed=settings.seed,
            image_generator=image_generator,
            least_parents=settings.generator.least_parents,
        )
        return StoredSampler(series, parts, class_name=class_name, folder=store.generated)

    def _request(self, call: SearchRequest) -> CaptionSearch:
        settings = self.tools.settings
        chosen = settings.search
        return CaptionSearch(
            class_name=call.class_name,
            target=call.target or None,
            criterion=self.tools.criterion,
            template=chosen.prompt,
            parents=settings.failure.parents,
            design=SequentialDesign(
                alpha=chosen.alpha,
                smallest_gain=chosen.smallest_gain,
                most_baseline=chosen.most_baseline,
                most_per_caption=chosen.most_per_caption,
                most_captions=chosen.most_captions,
                budget=chosen.budget,
                until_target_failures=call.until_target_failures,
            ),
            most_sentences=chosen.most_sentences,
            most_clusters=chosen.most_clusters,
            own_captions=call.captions,
            reword=self._rewriter(call.class_name),
        )

    def _rewriter(self, class_name: str) -> CaptionRewriter | None:
        settings = self.tools.settings
        language = assistant_parts(settings, self.tools.store.root).language
        if language is None:
            return None
        return CaptionRewriter(language=language, class_name=class_name, seed=settings.seed)

    def _record(
        self,
        started: str,
        image_generator: ImageGenerator,
        predictions: GeneratedPredictions,
        result: ClassSearch,
    ) -> SearchRecord:
        settings = self.tools.settings
        inputs = self.tools.prepared.inputs | {
            "generator": image_generator.generator_id,
            "captions": result.caption_source,
        }
        return SearchRecord(
            command=command_line(),
            started=started,
            finished=_now(),
            seed=settings.seed,
            settings=settings.model_dump(mode="json"),
            versions=library_versions(),
            inputs=inputs,
            tally=predictions.tally,
            result=result,
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
    found = [result.example_keys, *(finding.example_keys for finding in result.findings)]
    found += [cluster.example_keys for cluster in result.clusters]
    return list(dict.fromkeys(key for keys in found for key in keys[:N_IMAGES]))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
