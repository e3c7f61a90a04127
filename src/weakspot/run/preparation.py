"""Everything that methods read: samples with predictions and embeddings, computed where it is missing."""

from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import GROUP, Dataset, Split
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.data.duplicates import group_near_identical
from weakspot.data.groups import suspect_names
from weakspot.data.prediction_columns import with_extra_classes, with_thresholds
from weakspot.run.assistants import assistant_parts, assistants_for, witness_ids
from weakspot.run.attributes import with_attributes
from weakspot.run.embedding import cached_embedder, embed, is_embedded
from weakspot.run.halves import Halves, split_in_halves
from weakspot.run.model_map import CachedModel, ModelCount, map_missing
from weakspot.run.models import (
    Classified,
    ClassifyStage,
    RunModels,
    classify,
    classify_embeddings,
    reads_embeddings,
)
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import StageClock
from weakspot.run.wiring import build_engine
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

CLIP, FEATURES = "clip", "features"
CLASSIFIER, EMBEDDER = "classifier", "embedder"
AUTO_GROUPS = "auto"


@dataclass(frozen=True, kw_only=True)
class EmbedResult:
    """What came out of embedding and classifying.

    Args:
        encoder_id: the encoder of the joint space; empty without images.
        reason: why this encoder was taken.
        n_embeddings: samples that have an embedding.
        n_new_embeddings: images that went through the encoder now.
        classifier_id: the classifier; empty when predictions were given.
        n_predictions: samples with a prediction.
        n_new_predictions: images that went through the classifier now.
        n_unreadable: images that could not be read now.
    """

    encoder_id: str = ""
    reason: str = ""
    n_embeddings: int = 0
    n_new_embeddings: int = 0
    classifier_id: str = ""
    n_predictions: int = 0
    n_new_predictions: int = 0
    n_unreadable: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Samples that methods can be run on, and the models that made them so."""

    samples: SampleSet
    assistants: Assistants
    embedder: Embedder | None
    classifier: Classifier | None
    summary: EmbedResult
    inputs: dict[str, str]
    computed_by: dict[str, str] = field(default_factory=dict)
    _halves: dict[str, Halves] = field(default_factory=dict, init=False, repr=False)

    def halves(self, settings: Settings, criterion: FailureCriterion) -> Halves:
        """Return (discovery half, confirmation half), once or with their parts swapped as well; computed once."""
        key = f"{settings.verify.splits} {settings.verify.scheme} {criterion!r}"
        if key not in self._halves:
            self._halves[key] = split_in_halves(self.samples, settings, criterion)
        return self._halves[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class Preparation:
    """What is needed to prepare the samples of a project.

    Args:
        store: the project's data.
        models: the classifier and the embedder, with the project's settings.
        clock: notes how long the stages took.
    """

    store: ProjectStore
    models: RunModels
    clock: StageClock

    @property
    def settings(self) -> Settings:
        return self.models.settings

    def run(self) -> Prepared:
        classifier, progress_of = self.models.classifier, self.models.progress_of
        names = None if classifier is None else classifier.class_names
        dataset = with_extra_classes(self.store.dataset(), names)
        parts = assistant_parts(
            self.settings, self.models.folder, progress=progress_of("download weights")
        )
        if classifier is None:
            self._refuse_unknown_predictions(dataset)
        done = self._map_missing(dataset)
        waits = classifier is not None and reads_embeddings(classifier)
        classified = None if waits else self._classify(dataset, None, done.get(CLASSIFIER))
        joint, embedder, embed_facts = self._embed(dataset, done.get(EMBEDDER))
        classified = classified or self._classify(dataset, joint, None)
        dataset = classified.dataset
        found = {CLIP: joint, FEATURES: classified.own}
        spaces = {name: space for name, space in found.items() if space is not None}
        training = dataset.rows_of(Split.TRAIN)
        samples = SampleSet(
            dataset=dataset,
            rows=np.arange(len(dataset)),
            spaces=spaces,
            name="all samples",
            reference_rows=training if len(training) else None,
        )
        samples = self._with_groups(samples)
        samples, assistants = assistants_for(
            settings=self.settings,
            folder=self.models.folder,
            samples=samples,
            store=self.store,
            embedder=embedder,
            engine=build_engine(self.settings),
            progress_of=progress_of,
            parts=parts,
        )
        prediction_facts = {
            "n_predictions": classified.n_predictions,
            "n_new_predictions": classified.n_new,
        }
        classifier_id = "" if classifier is None else classifier.classifier_id
        summary = EmbedResult(**embed_facts, **prediction_facts, classifier_id=classifier_id)  # type: ignore[arg-type]
        return Prepared(
            samples=samples,
            assistants=assistants,
            embedder=embedder,
            classifier=classifier,
            summary=summary,
            inputs=self._inputs(summary) | parts.ids() | witness_ids(assistants),
            computed_by=self.models.computed_by(),
        )

    def _with_groups(self, samples: SampleSet) -> SampleSet:
        """Group near-identical images and say what else may belong together, unless the settings or a column say it."""
        if self.settings.data.group != AUTO_GROUPS or GROUP in samples.dataset.table.column_names:
            return samples
        found = group_near_identical(samples, CLIP)
        samples = replace(samples, dataset=found.dataset)
        tables = self.store.current_tables()
        taken = "" if tables is None else str(tables.facts.get("burst_note", ""))
        said = " ".join(filter(None, (found.sentence, suspect_names(samples, CLIP), taken)))
        if said:
            with self.clock.stage("groups") as facts:
                facts["summary"] = said
        return samples

    def with_attributes(self, prepared: Prepared) -> Prepared:
        """Return the same with attributes as metadata columns of all samples."""
        with self.clock.stage("attributes") as facts:
            samples, notes = with_attributes(
                prepared.samples,
                assistants=prepared.assistants,
                settings=self.settings,
                store=self.store,
                engine=build_engine(self.settings),
                progress=self.models.progress_of("attributes"),
            )
            n_new = len(samples.dataset.metadata_names) - len(
                prepared.samples.dataset.metadata_names
            )
            facts["summary"] = " ".join([f"{n_new} attributes assigned.", *notes])
        return replace(prepared, samples=samples)

    def _map_missing(self, dataset: Dataset) -> dict[str, ModelCount]:
        """Put every image that a model has not seen through all models that lack it, reading it once.

        A classifier that cannot work with the data is refused before, and one that fails does so in the first batch.
        """
        models: dict[str, CachedModel] = {}
        classifier = self.models.image_classifier
        if classifier is not None:
            stage = ClassifyStage(project=self.store, dataset=dataset, classifier=classifier)
            stage.check()
            if not stage.is_complete():
                models[CLASSIFIER] = stage.cached(self.models.classify_settings)
        embedder = self.models.image_embedder if self._has_embeddings(dataset) else None
        if embedder is not None and not is_embedded(self.store, dataset, embedder):
            models[EMBEDDER] = cached_embedder(self.store, embedder, self.models.embed_settings)
        keys = packed_hashes(dataset.table.column("content_hash"))
        if len(models) < 2 or not all(model.cache.missing(keys).any() for model in models.values()):  # noqa: PLR2004
            return {}
        with self.clock.stage("images") as facts, self.store.writing():
            counts = map_missing(
                dataset,
                keys,
                tuple(models.values()),
                engine=build_engine(self.settings),
                progress=self.models.progress_of("images"),
            )
            facts["summary"] = ", ".join(
                f"{count.n_new} through the {name}"
                for name, count in zip(models, counts, strict=True)
            )
            facts["n_images"] = max(count.n_new for count in counts)
            facts["was_cached"] = not facts["n_images"]
        return dict(zip(models, counts, strict=True))

    def _has_embeddings(self, dataset: Dataset) -> bool:
        return dataset.has_images or self.models.has_own_embedder

    def _embed(
        self, dataset: Dataset, done: ModelCount | None
    ) -> tuple[EmbeddingSpace | None, Embedder | None, dict[str, object]]:
        if not self._has_embeddings(dataset):
            return None, None, {"reason": "There are no images to embed."}
        with self.clock.stage("embed") as facts:
            embedder, reason = self.models.embedder, self.models.embedder_sentence
            made = embed(
                self.store,
                dataset,
                embedder,
                engine=build_engine(self.settings),
                progress=self.models.progress_of("embed"),
                settings=self.models.embed_settings,
                done=done,
            )
            n_new = made.n_new + self.models.n_seen(embedder.encoder_id)
            shared = f", {made.n_shared} from other projects" if made.n_shared else ""
            facts["summary"] = (
                f"{made.n_embeddings} embeddings, {n_new} of them new{shared}. {reason}"
            )
            facts["was_cached"] = n_new == 0
            # What another stage put through the encoder is counted there.
            facts["n_images"] = 0 if done is not None else made.n_new
        return (
            made.space,
            embedder,
            {
                "encoder_id": made.space.encoder_id,
                "reason": reason,
                "n_embeddings": made.n_embeddings,
                "n_new_embeddings": n_new,
                "n_unreadable": len(made.unreadable),
            },
        )

    def _refuse_unknown_predictions(self, dataset: Dataset) -> None:
        if not dataset.has_predictions:
            raise DataError(
                "Nothing is known of what the classifier predicts.",
                where="[classifier]",
                fix="Configure a classifier in weakspot.toml, or give prediction or probability columns in the manifest.",
            )

    def _classify(
        self, dataset: Dataset, joint: EmbeddingSpace | None, done: ModelCount | None
    ) -> Classified:
        classifier = self.models.classifier
        thresholds = self.settings.failure.label_thresholds
        if classifier is None:
            known = with_thresholds(dataset, thresholds)
            return Classified(dataset=known, own=None, n_new=0, n_predictions=len(dataset))
        with self.clock.stage("classify") as facts:
            if reads_embeddings(classifier):
                classified = classify_embeddings(
                    dataset, classifier, joint, label_thresholds=thresholds
                )
            else:
                classified = classify(
                    self.store,
                    dataset,
                    classifier,
                    engine=build_engine(self.settings),
                    progress=self.models.progress_of("classify"),
                    settings=self.models.classify_settings,
                    done=done,
                )
                facts["n_images"] = 0 if done is not None else classified.n_new
                seen = self.models.n_seen(classifier.classifier_id)
                classified = replace(classified, n_new=classified.n_new + seen)
            facts["summary"] = (
                f"{classified.n_predictions} predictions, {classified.n_new} of them new"
            )
            facts["was_cached"] = classified.n_new == 0
        return classified

    def _inputs(self, summary: EmbedResult) -> dict[str, str]:
        ids = {"encoder": summary.encoder_id, "classifier": summary.classifier_id}
        return {"samples": self.store.tables_key()} | {
            name: one for name, one in ids.items() if one
        }
