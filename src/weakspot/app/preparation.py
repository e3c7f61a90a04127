"""Everything that methods read: samples with outcomes and vectors, computed where it is missing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weakspot.app.assisting import assistant_parts, assistants_for
from weakspot.app.attributing import with_attributes
from weakspot.app.classifying import Classified, ClassifySettings, classify
from weakspot.app.config import Settings
from weakspot.app.embedder_choice import choose_embedder
from weakspot.app.embedding import EmbedSettings, embed
from weakspot.app.records import StageClock
from weakspot.app.vector_classifying import classify_vectors, reads_vectors
from weakspot.app.wiring import build_classifier, build_engine
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.run import Progress
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.ingest.outcomes import with_thresholds
from weakspot.store.project import ProjectStore

JOINT, OWN = "joint", "own"


@dataclass(frozen=True, kw_only=True)
class EmbedSummary:
    """What came out of embedding and classifying.

    Args:
        encoder_id: the encoder of the joint space; empty without pictures.
        reason: why this encoder was taken.
        n_vectors: samples that have a vector.
        n_new_vectors: pictures that went through the encoder now.
        classifier_id: the classifier; empty when predictions were given.
        n_outcomes: samples with an outcome.
        n_new_outcomes: pictures that went through the classifier now.
        n_unreadable: pictures that could not be read now.
    """

    encoder_id: str = ""
    reason: str = ""
    n_vectors: int = 0
    n_new_vectors: int = 0
    classifier_id: str = ""
    n_outcomes: int = 0
    n_new_outcomes: int = 0
    n_unreadable: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Samples that methods can be run on, and the models that made them so."""

    samples: SampleSet
    assistants: Assistants
    embedder: Embedder | None
    classifier: Classifier | None
    summary: EmbedSummary
    inputs: dict[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Preparation:
    """What is needed to prepare the samples of a project.

    Args:
        store: the project's data.
        folder: where relative paths start.
        settings: the project's settings.
        classifier: a ready classifier, or None for the configured one.
        embedder: a ready embedder, or None for the configured one.
        clock: told how long the stages took.
        told: gives the progress callback of a stage.
    """

    store: ProjectStore
    folder: Path
    settings: Settings
    classifier: Classifier | None
    embedder: Embedder | None
    clock: StageClock
    told: Callable[[str], Progress]

    def run(self) -> Prepared:
        """Embed, classify, and put it all together."""
        dataset = self.store.dataset()
        parts = assistant_parts(self.settings, self.folder, progress=self.told("download weights"))
        classifier = self.classifier or build_classifier(self.settings.classifier, self.folder)
        # A classifier that cannot work is noticed before hours are spent on vectors.
        early = classifier is not None and not reads_vectors(classifier)
        classified = self._outcomes(dataset, classifier, None) if early or classifier is None else None
        joint, embedder, embed_facts = self._embedded(dataset)
        classified = classified or self._outcomes(dataset, classifier, joint)
        dataset = classified.dataset
        found = {JOINT: joint, OWN: classified.own}
        spaces = {name: space for name, space in found.items() if space is not None}
        samples = SampleSet(
            dataset=dataset,
            rows=np.arange(len(dataset)),
            spaces=spaces,
            name="all samples",
            reference_rows=_reference_rows(dataset),
        )
        samples, assistants = assistants_for(
            settings=self.settings,
            folder=self.folder,
            samples=samples,
            store=self.store,
            embedder=embedder,
            engine=build_engine(self.settings),
            told=self.told,
            parts=parts,
        )
        outcome_facts = {"n_outcomes": classified.n_outcomes, "n_new_outcomes": classified.n_new}
        classifier_id = "" if classifier is None else classifier.classifier_id
        summary = EmbedSummary(**embed_facts, **outcome_facts, classifier_id=classifier_id)  # type: ignore[arg-type]
        return Prepared(
            samples=samples,
            assistants=assistants,
            embedder=embedder,
            classifier=classifier,
            summary=summary,
            inputs=self._inputs(summary) | parts.ids(),
        )

    def with_attributes(self, prepared: Prepared) -> Prepared:
        """Return the same with attributes as metadata columns of all samples."""
        with self.clock.stage("attributes") as facts:
            samples, notes = with_attributes(
                prepared.samples,
                assistants=prepared.assistants,
                settings=self.settings,
                store=self.store,
                engine=build_engine(self.settings),
                progress=self.told("attributes"),
            )
            n_new = len(samples.dataset.metadata_names) - len(prepared.samples.dataset.metadata_names)
            facts["summary"] = " ".join([f"{n_new} attributes assigned.", *notes])
        return replace(prepared, samples=samples)

    def _embedded(self, dataset: Dataset) -> tuple[VectorSpace | None, Embedder | None, dict[str, object]]:
        if not dataset.has_pictures and self.embedder is None and self.settings.embedder.name == "auto":
            return None, None, {"reason": "There are no pictures to embed."}
        with self.clock.stage("embed") as facts:
            if self.embedder is not None:
                embedder, reason = self.embedder, "Using the embedder that was handed over."
            else:
                choice = choose_embedder(self.settings.embedder, folder=self.folder, progress=self.told("download weights"))
                embedder, reason = choice.embedder, choice.reason
            settings = EmbedSettings(batch_size=self.settings.embedder.batch_size)
            engine = build_engine(self.settings)
            made = embed(self.store, dataset, embedder, engine=engine, progress=self.told("embed"), settings=settings)
            facts["summary"] = f"{made.n_vectors} vectors, {made.n_new} of them new. {reason}"
            facts["was_cached"] = made.n_new == 0
        return (
            made.space,
            embedder,
            {
                "encoder_id": made.space.encoder_id,
                "reason": reason,
                "n_vectors": made.n_vectors,
                "n_new_vectors": made.n_new,
                "n_unreadable": len(made.unreadable),
            },
        )

    def _outcomes(self, dataset: Dataset, classifier: Classifier | None, joint: VectorSpace | None) -> Classified:
        if classifier is not None:
            return self._classified(dataset, classifier, joint)
        if not dataset.has_outcomes:
            raise DataError(
                "Nothing is known of what the classifier says.",
                where="[classifier]",
                fix="Configure a classifier in weakspot.toml, or give prediction or probability columns in the manifest.",
            )
        known = with_thresholds(dataset, self.settings.failure.label_thresholds)
        return Classified(dataset=known, own=None, n_new=0, n_outcomes=len(dataset))

    def _classified(self, dataset: Dataset, classifier: Classifier, joint: VectorSpace | None) -> Classified:
        with self.clock.stage("classify") as facts:
            settings = ClassifySettings(label_thresholds=self.settings.failure.label_thresholds)
            if reads_vectors(classifier):
                classified = classify_vectors(dataset, classifier, joint, label_thresholds=settings.label_thresholds)
            else:
                engine = build_engine(self.settings)
                classified = classify(
                    self.store, dataset, classifier, engine=engine, progress=self.told("classify"), settings=settings
                )
            facts["summary"] = f"{classified.n_outcomes} outcomes, {classified.n_new} of them new"
            facts["was_cached"] = classified.n_new == 0
        return classified

    def _inputs(self, summary: EmbedSummary) -> dict[str, str]:
        tables = self.store.current_tables()
        found = {
            "samples": tables.folder.name if tables else "",
            "encoder": summary.encoder_id,
            "classifier": summary.classifier_id,
        }
        return {name: value for name, value in found.items() if value}


def _reference_rows(dataset: Dataset) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    training = dataset.rows_of(Split.TRAIN)
    return training if len(training) else None
