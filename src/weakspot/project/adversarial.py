"""Makes an adversarial set for the classifier of a project; what others say of it, and how far it is from real images."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, generator
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.failures import describe_criterion
from weakspot.core.generated import GenerationResult
from weakspot.core.roles import Captioner, Embedder, ImageGenerator
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.generate.adversarial import (
    AdversarialEffort,
    AdversarialRequest,
    AdversarialSet,
    CaptionYield,
    SourceCaption,
    class_yield,
    collect,
    read_record,
    refuse_foreign,
    write_images,
)
from weakspot.generate.adversarial_sources import (
    Baselines,
    ImageCaptions,
    ImageList,
    ListReader,
    ModelUnderTest,
    WordsOfRows,
    captions_of_table,
    chosen_rows,
    failed_rows,
)
from weakspot.generate.distances import SetDistance, distances_to
from weakspot.generate.predictions import GeneratedPredictions
from weakspot.generate.project_generator import build_generator, with_generator
from weakspot.generate.sampling import GeneratedSeries, drawable_sentences
from weakspot.generate.search.sentences import WordSentences
from weakspot.generate.service import confirm_cost
from weakspot.generate.transfer import TransferMatrix, transfer_matrix
from weakspot.models.torch.inception_embedder import InceptionEmbedder
from weakspot.project.generated_findings import classifier_of
from weakspot.project.project import Project
from weakspot.run.assistants import assistant_parts
from weakspot.run.embedding import KnowsEmbeddings
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings, with_engine
from weakspot.run.settings_file import load_settings
from weakspot.run.stage_clock import library_versions
from weakspot.run.wiring import build_engine
from weakspot.store.project import ProjectStore

MAX_IMAGES = 10_000
TRAINING = "training samples"


@dataclass(frozen=True, kw_only=True, eq=False)
class RawFeatures:
    """The features of an embedder as its embeddings, for distances alone.

    Args:
        embedder: whose `raw_features` are meant.
    """

    embedder: Embedder

    @property
    def encoder_id(self) -> str:
        return f"{self.embedder.encoder_id}/raw"

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    @property
    def image_side(self) -> int | None:
        return self.embedder.image_side

    @property
    def has_text(self) -> bool:
        return False

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.embedder.prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        network: Any = self.embedder
        features: FloatArray = network.raw_features(prepared)
        return features

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        raise ModelError("Raw features have no text side.", given=list(texts)[:3])


def distance_encoder(embedder: Embedder) -> Embedder:
    """Return an embedder as distances want it: with raw features where it gives them."""
    return RawFeatures(embedder=embedder) if hasattr(embedder, "raw_features") else embedder


def inception(given: str) -> Embedder:
    """Return the Inception network of a file, a folder or a timm name."""
    return InceptionEmbedder(path=given) if Path(given).exists() else InceptionEmbedder(model=given)


def measure_transfer(
    reader: ListReader,
    sets: Mapping[str, ImageList],
    models: Sequence[ModelUnderTest],
    *,
    places: Mapping[str, Path],
) -> TransferMatrix | None:
    """Return every labelled set on every classifier; None for one set on one classifier.

    Args:
        reader: asks classifiers.
        sets: by name.
        models: with different names.
        places: the folders of sets that may say which classifier they were made for.
    """
    labelled = {name: one for name, one in sets.items() if one.has_labels}
    if len(labelled) * len(models) < 2:  # noqa: PLR2004 - one number is no comparison
        return None
    made_for = {
        name: found.made_for
        for name in labelled
        if (found := read_record(places[name])) is not None
    }
    answers = {
        name: {model.name: reader.answers(one, model) for model in models}
        for name, one in labelled.items()
    }
    return transfer_matrix(answers, reader.class_names, made_for=made_for)


@dataclass(frozen=True, kw_only=True, eq=False)
class SetMetrics:
    """Measures sets against the reference images of a project: those to test on, else those to validate on.

    Args:
        reader: embeds sets.
        prepared: the project's samples and models.
        store: of the project.
        seed: decides which images are taken where there are very many.
    """

    reader: ListReader
    prepared: Prepared
    store: ProjectStore
    seed: int

    @property
    def reference_split(self) -> Split | None:
        dataset = self.prepared.samples.dataset
        return next(
            (split for split in (Split.TEST, Split.VALIDATION) if len(dataset.rows_of(split))), None
        )

    def measure(
        self, sets: Mapping[str, ImageList], network: Embedder | None
    ) -> tuple[tuple[SetDistance, ...], list[str]]:
        split = self.reference_split
        embedder = self.prepared.embedder
        if split is None:
            return (), [
                "The project has no test or validation samples, so no distance to real images is known."
            ]
        notes = (
            []
            if split is Split.TEST
            else ["There are no test samples; distances are measured to the validation samples."]
        )
        usable = None if embedder is None or isinstance(embedder, KnowsEmbeddings) else embedder
        if usable is None:
            notes.append(
                "The project's embedder cannot take new images, so distances in its space are not known."
            )
        encoders = [distance_encoder(one) for one in (usable, network) if one is not None]
        found = [row for encoder in encoders for row in self._in_space(encoder, split, sets)]
        notes += list(dict.fromkeys(row.warning for row in found if row.warning))
        return tuple(found), notes

    def _in_space(
        self, encoder: Embedder, split: Split, sets: Mapping[str, ImageList]
    ) -> tuple[SetDistance, ...]:
        embeddings = {
            name: self.reader.embeddings(one.only(self._some(len(one.dataset))), encoder)
            for name, one in sets.items()
        }
        rows = self._rows(Split.TRAIN)
        if len(rows):
            embeddings[TRAINING] = self._own(encoder, rows)
        return distances_to(
            self._own(encoder, self._rows(split)),
            embeddings,
            space=encoder.encoder_id,
            seed=self.seed,
        )

    def _rows(self, split: Split) -> IntArray:
        rows = self.prepared.samples.dataset.rows_of(split)
        return rows[self._some(len(rows))]

    def _some(self, n_rows: int) -> IntArray:
        if n_rows <= MAX_IMAGES:
            return np.arange(n_rows)
        return np.sort(generator(self.seed, "pictures to measure").permutation(n_rows)[:MAX_IMAGES])

    def _own(self, encoder: Embedder, rows: IntArray) -> FloatArray:
        """Return embeddings of the project's samples; those of its own embedder are there already."""
        samples = self.prepared.samples
        if CLIP in samples.spaces and samples.space(CLIP).encoder_id == encoder.encoder_id:
            return np.asarray(samples.space(CLIP).embeddings[rows])
        own = ImageList(name="the project", store=self.store, dataset=samples.dataset)
        return self.reader.embeddings(own.only(rows), encoder)


@dataclass(frozen=True, kw_only=True, eq=False)
class MadeSet:
    """A set that was made.

    Args:
        record: everything that is known of it.
        generated: its images by content hash.
        stored_images: the folder that they were generated into.
    """

    record: AdversarialSet
    generated: dict[str, GenerationResult]
    stored_images: Path


@dataclass(frozen=True, kw_only=True, eq=False)
class AdversarialStage:
    """What is needed to make a set.

    Args:
        project: its samples must have been ingested; its criterion says what counts as misclassified.
        generator: a ready generator, instead of the configured one.
        captioner: a ready captioner, instead of the configured one.
        models: further classifiers that the set is put to.
    """

    project: Project
    generator: ImageGenerator | None = None
    captioner: Captioner | None = None
    models: tuple[ModelUnderTest, ...] = ()

    def run(self, request: AdversarialRequest) -> MadeSet:
        """Caption, generate, keep, write and measure; killed at any instant, the next call goes on where this one was.

        Raises:
            ConfigError: if the folder cannot be taken, or nobody can caption.
            DataError: if labels are no classes of the project.
            NotEnoughDataError: if there is nothing to caption.
            RefusedPromptError: if the generator can generate not one caption.
        """
        refuse_foreign(request.to)
        self._refuse_project()
        self._refuse_models()
        network = inception(request.inception) if request.inception else None
        # Its id needs its weights: a network that is unavailable is noticed before anything is generated.
        further = {} if network is None else {"inception": network.encoder_id}
        reader = ListReader(
            store=self.store,
            class_names=self._class_names,
            engine=build_engine(self.settings),
            told=self.project.progress_of,
        )
        beside = self._beside(request, reader)
        captions, source = self._captions(request, reader)
        stored_images = self.store.generated
        with self.store.writing():
            series, image_generator = self._series(
                stored_images, n_most=len(captions) * request.effort.most_per_caption
            )
            yields, baselines = self._generate(series, captions, request)
        record = self._record(
            request,
            yields,
            baselines,
            source,
            {**further, "generator": image_generator.generator_id},
        )
        write_images(request.to, record, series.generated, stored_images)
        record = self._measure(record, request, reader, beside, network)
        return MadeSet(record=record, generated=series.generated, stored_images=stored_images)

    @cached_property
    def prepared(self) -> Prepared:
        return self.project.prepared()

    @property
    def settings(self) -> Settings:
        return self.project.settings

    @property
    def store(self) -> ProjectStore:
        return self.project.store

    @property
    def _class_names(self) -> tuple[str, ...]:
        return self.prepared.samples.dataset.class_names

    @property
    def _name(self) -> str:
        return self.store.root.resolve().name

    def _refuse_project(self) -> None:
        """Refuse a project that no set can be made for, before anything is captioned."""
        if self.prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be said of new images.",
                where="[classifier]",
                fix="Configure one.",
            )
        if self.prepared.samples.dataset.task is Task.MULTI_LABEL:
            raise DataError(
                "Adversarial sets are made in single-label tasks only.", where="[data] task"
            )

    def _refuse_models(self) -> None:
        """Refuse classifiers that could not be told apart, or that know other classes, before anything is generated."""
        names = (self._name, *(model.name for model in self.models))
        if len(set(names)) < len(names):
            raise ConfigError(
                "Classifiers need different names to be told apart.",
                where="--models",
                given=list(names),
            )
        for model in self.models:
            known = model.classifier.class_names
            if known is not None and set(known) != set(self._class_names):
                raise ModelError(
                    f"The classifier of {model.name} knows other classes than {self._name}.",
                    where="--models",
                    given=sorted(set(known) ^ set(self._class_names))[:5],
                    fix="Put the set to classifiers of the same classes.",
                )

    def _beside(self, request: AdversarialRequest, reader: ListReader) -> dict[str, Path]:
        found = {path.resolve().name: path for path in request.beside}
        taken = {request.to.resolve().name}
        if len(found) < len(request.beside) or taken & set(found):
            raise ConfigError(
                "Sets need different names to be told apart.",
                where="--beside",
                given=[str(one) for one in (request.to, *request.beside)],
            )
        for path in found.values():
            reader.any_images(path)
        return found

    def _captions(
        self, request: AdversarialRequest, reader: ListReader
    ) -> tuple[tuple[SourceCaption, ...], str]:
        baselines = self._prompts
        if request.captions is not None:
            captions = captions_of_table(request.captions, baselines)
            return _some(
                captions, request.most_captions, seed=self.settings.seed
            ), f"the table {request.captions.name}"
        captioner = self.captioner or assistant_parts(self.settings, self.store.root).captioner
        speaks = ImageCaptions(
            captioner=captioner,
            baselines=baselines,
            engine=build_engine(self.settings),
            progress=self.project.progress_of("caption"),
            words=self._words if request.images is None else None,
            drawable=drawable_sentences(self._image_generator),
        )
        if request.images is not None:
            images, whose = reader.labelled(request.images), f"the images in {request.images.name}"
            rows = np.flatnonzero(images.dataset.is_labelled)
        else:
            images = ImageList(
                name="the project", store=self.store, dataset=self.prepared.samples.dataset
            )
            rows, whose = (
                failed_rows(images.dataset, self.project.criterion),
                "the project's failures on validation and test samples",
            )
        rows = chosen_rows(rows, request.most_captions, seed=self.settings.seed)
        captions = speaks.of(images.dataset, rows, images.store)
        return captions, f"{len(rows)} of {whose}, by {speaks.source(images.dataset)}"

    @property
    def _prompts(self) -> Baselines:
        return Baselines(
            class_names=self._class_names,
            template=self.settings.search.prompt,
            parents=dict(self.settings.failure.parents),
        )

    @property
    def _words(self) -> WordsOfRows | None:
        """Return rows of the project and their class to words that the embedder ranks; None if it has no text side."""
        embed_texts, samples = self.prepared.assistants.embed_texts, self.prepared.samples
        if embed_texts is None or CLIP not in samples.spaces:
            return None
        return lambda rows, name: WordSentences(
            embed_texts=embed_texts, class_name=name
        ).completion(samples.embeddings(CLIP, rows))

    @cached_property
    def _image_generator(self) -> ImageGenerator:
        return self.generator or build_generator(
            self.settings, self.store.root, self.prepared, purpose="measure", store=self.store
        )

    def _series(self, folder: Path, *, n_most: int) -> tuple[GeneratedSeries, ImageGenerator]:
        image_generator = self._image_generator
        confirm_cost(
            image_generator,
            min(n_most, self.settings.generator.max_images),
            self.settings.generator,
        )
        predictions = GeneratedPredictions.of(
            image_generator, self.prepared, folder, settings=self.settings
        )
        series = GeneratedSeries(
            predictions=predictions, seed=self.settings.seed, image_generator=image_generator
        )
        return series, image_generator

    def _generate(
        self,
        series: GeneratedSeries,
        captions: Sequence[SourceCaption],
        request: AdversarialRequest,
    ) -> tuple[tuple[CaptionYield, ...], tuple[CaptionYield, ...]]:
        plain = [
            SourceCaption(class_name=name, prompt=self._prompts.of(name))
            for name in sorted({one.class_name for one in captions})
        ]
        try:
            yields = collect(
                series,
                captions,
                self.project.criterion,
                effort=request.effort,
                progress=self.project.progress_of("generate captions"),
            )
            if not request.n_baseline:
                return yields, ()
            whole = AdversarialEffort(
                most_per_caption=request.n_baseline,
                keep=request.n_baseline,
                step=request.n_baseline,
            )
            return yields, collect(
                series,
                plain,
                self.project.criterion,
                effort=whole,
                progress=self.project.progress_of("generate baselines"),
            )
        finally:
            series.predictions.flush()

    def _record(
        self,
        request: AdversarialRequest,
        yields: Sequence[CaptionYield],
        baselines: Sequence[CaptionYield],
        source: str,
        further: dict[str, str],
    ) -> AdversarialSet:
        by_class = {one.caption.class_name: one for one in baselines}
        names = sorted({one.caption.class_name for one in yields})
        rejected: Counter[str] = Counter()
        for one in (*yields, *baselines):
            rejected.update(one.rejected)
        return AdversarialSet(
            versions=library_versions(),
            name=request.to.resolve().name,
            made_for=self._name,
            inputs={**self.prepared.inputs, **further},
            criterion=describe_criterion(self.project.criterion),
            caption_source=source,
            settings={
                "seed": self.settings.seed,
                "most_per_caption": request.effort.most_per_caption,
                "keep": request.effort.keep,
                "step": request.effort.step,
                "most_captions": request.most_captions,
                "n_baseline": request.n_baseline,
                "prompt": self.settings.search.prompt,
                "generator": self.settings.generator.model_dump(mode="json", exclude={"options"}),
            },
            n_asked=sum(one.n_asked for one in (*yields, *baselines)),
            n_kept=sum(len(one.kept) for one in yields),
            rejected=dict(rejected.most_common()),
            classes=tuple(class_yield(name, yields, by_class.get(name)) for name in names),
            yields=tuple(yields),
            notes=tuple(_notes(yields)),
        )

    def _measure(
        self,
        record: AdversarialSet,
        request: AdversarialRequest,
        reader: ListReader,
        beside: dict[str, Path],
        network: Embedder | None,
    ) -> AdversarialSet:
        places = {**({record.name: request.to} if record.n_kept else {}), **beside}
        sets = {name: reader.any_images(path) for name, path in places.items()}
        classifier, embedder = self.prepared.classifier, self.prepared.embedder
        own = (
            []
            if classifier is None
            else [ModelUnderTest(name=self._name, classifier=classifier, embedder=embedder)]
        )
        ruler = SetMetrics(
            reader=reader, prepared=self.prepared, store=self.store, seed=self.settings.seed
        )
        distances, notes = ruler.measure(sets, network)
        unlabelled = [
            f"{name} has labels that are no classes of the project, or none: it is put to no classifier."
            for name, one in sets.items()
            if not one.has_labels
        ]
        split = ruler.reference_split
        return record.model_copy(
            update={
                "is_complete": True,
                "transfer": measure_transfer(reader, sets, (*own, *self.models), places=places),
                "distances": distances,
                "reference": "" if split is None else f"{split.value} samples",
                "notes": (*record.notes, *unlabelled, *notes),
            }
        )


def _some(
    captions: tuple[SourceCaption, ...], most: int, *, seed: int
) -> tuple[SourceCaption, ...]:
    if len(captions) <= most:
        return captions
    chosen = generator(seed, "captions to draw").choice(len(captions), most, replace=False)
    return tuple(captions[place] for place in sorted(chosen.tolist()))


def _notes(yields: Sequence[CaptionYield]) -> list[str]:
    refused = [one.refusal for one in yields if one.refusal]
    said = f"{len(refused)} of {len(yields)} captions cannot be generated, for example: {''.join(refused[:1])}"
    empty = "Not one image was misclassified: the set is empty. Generate more of every caption, or give harder captions."
    return [*([said] if refused else []), *([] if any(one.kept for one in yields) else [empty])]


def make_for_project(
    folder: Path,
    request: AdversarialRequest,
    *,
    models: Sequence[Path] = (),
    generator: str = "",
    engine: str = "",
    progress: StageProgress = no_stage_progress,
) -> MadeSet:
    """Make a set for the classifier of a project.

    Args:
        folder: of the project; its samples must have been ingested.
        request: what is asked.
        models: folders of further projects whose classifiers the set is put to.
        generator: name of another generator than the configured one.
        engine: name of another engine than the configured one.
        progress: told how far every step is.
    """
    settings = with_engine(with_generator(load_settings(folder), generator), engine)
    project = Project(folder, settings, progress=progress)
    further = tuple(classifier_of(one) for one in models)
    return AdversarialStage(project=project, models=further).run(request)
