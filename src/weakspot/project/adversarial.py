"""An adversarial set for the classifier of a project: made, measured, and shown as a page.

Its images, how often captions fail beside the baseline, what other classifiers say of it, and how far it is from real images.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, generator
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.evidence import Share
from weakspot.core.failures import describe_criterion
from weakspot.core.generated import GenerationResult
from weakspot.core.roles import Captioner, Embedder, ImageGenerator
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.data.charts import LabelPanel, heat_map, label_bars
from weakspot.data.image_grid import labelled_grid
from weakspot.generate.adversarial import (
    AdversarialEffort,
    AdversarialRequest,
    AdversarialSet,
    CaptionYield,
    ClassYield,
    SourceCaption,
    TransferMatrix,
    class_yield,
    collect,
    read_record,
    refuse_foreign,
    transfer_matrix,
    write_images,
    write_record,
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
from weakspot.generate.project_generator import (
    GeneratedPredictions,
    build_generator,
    with_generator,
)
from weakspot.generate.sampling import GeneratedSeries, drawable_sentences
from weakspot.generate.search.sentences import WordSentences
from weakspot.generate.service import confirm_cost
from weakspot.models.torch.embedders import InceptionEmbedder
from weakspot.project.generated_findings import classifier_of
from weakspot.project.project import Project
from weakspot.report.document import figure, paragraph, share_cell, small_page, table, text_cell
from weakspot.report.wording import count, percent
from weakspot.run.assistants import assistant_parts
from weakspot.run.embedding import KnowsEmbeddings
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.reporting import written
from weakspot.run.settings import Settings, load_settings, with_engine
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
        encoders: list[Embedder] = [
            RawFeatures(embedder=one) if hasattr(one, "raw_features") else one
            for one in (usable, network)
            if one is not None
        ]
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


PAGE, SHEET = "adversarial.html", "adversarial.png"
MAX_ROWS, MAX_COLUMNS, CELL_SIDE = 8, 8, 112
MAX_CLASSES = 4
MAX_CAPTIONS = 60


def write_set_page(made: MadeSet, folder: Path) -> tuple[Path, ...]:
    """Write page, contact sheet and final record beside the images of a set; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    sheet = contact_sheet(made)
    contents: dict[str, bytes | Image.Image] = {PAGE: adversarial_page(made.record, sheet).encode()}
    files = written(folder, contents if sheet is None else {**contents, SHEET: sheet})
    return (*files, write_record(folder, made.record))


def contact_sheet(made: MadeSet) -> Image.Image | None:
    """Return images of the set, one row a class, with what each is taken for; None for an empty set."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for brought in made.record.yields:
        own = rows.setdefault(brought.caption.class_name, [])
        own += zip(brought.kept[:2], brought.predicted[:2], strict=True)
    shown = {name: own[:MAX_COLUMNS] for name, own in sorted(rows.items()) if own}
    if not shown:
        return None
    width = max(map(len, shown.values()))
    names = list(shown)[:MAX_ROWS]
    empty: list[Image.Image | None] = [None]
    return labelled_grid(
        [
            [_image(made, key) for key, _ in shown[name]] + empty * (width - len(shown[name]))
            for name in names
        ],
        row_names=names,
        column_names=[""] * width,
        cell_side=CELL_SIDE,
        captions=[
            [f"taken for {said}" for _, said in shown[name]] + [""] * (width - len(shown[name]))
            for name in names
        ],
    )


def _image(made: MadeSet, key: str) -> Image.Image:
    with Image.open(made.stored_images / made.generated[key].file) as image:
        return image.convert("RGB")


def adversarial_page(record: AdversarialSet, sheet: Image.Image | None) -> str:
    """Return a set as one HTML page without outside references."""
    return small_page(
        f"{record.name}: {count(record.n_kept, 'image')} that {record.made_for} gets wrong",
        [
            *[paragraph(line) for line in explanation(record)],
            ""
            if sheet is None
            else figure(sheet, alt="Images of the set by class, with what each is taken for"),
            "<h2>How often captions fail</h2>",
            _class_table(record.classes),
            *_label_figures(record.classes),
            *_transfer_parts(record.transfer),
            *_distance_parts(record),
            "<h2>Captions</h2>",
            _caption_table(record),
            *[paragraph(note) for note in record.notes],
        ],
    )


def explanation(record: AdversarialSet) -> Iterator[str]:
    generated = [one for one in record.yields if not one.refusal]
    kept_from = sum(bool(one.kept) for one in record.yields)
    yield (
        f"{count(len(generated), 'caption')} (of {record.caption_source}) were generated by {record.inputs.get('generator', '')}, "
        f"{record.n_asked:,} images with the baselines. {count(record.n_kept, 'misclassified image')} of "
        f"{count(kept_from, 'caption')} are kept, at most {record.settings.get('keep')} of each. Misclassified: {record.criterion}."
    )
    if record.rejected:
        yield (
            "The quality check rejected "
            + ", ".join(f"{number:,} ({quality})" for quality, number in record.rejected.items())
            + "."
        )
    yield (
        "These are generated images, and they are chosen because they fail: they show where to look and can be trained on, but "
        "nothing is proved by them about real images."
    )


def adversarial_lines(record: AdversarialSet) -> Iterator[str]:
    yield from explanation(record)
    yield from (f"  {class_sentence(one)}" for one in record.classes)
    if record.transfer is not None:
        yield "Other classifiers (share that is wrong; true label not among the 3 likeliest):"
        for cell in record.transfer.cells:
            low, high = 100 * cell.interval.low, 100 * cell.interval.high
            own = " (made for it)" if cell.is_own else ""
            yield (
                f"  {cell.set_name} on {cell.model}{own}: {100 * cell.rate:.0f} % ({low:.0f}-{high:.0f}) of {cell.n_images}; "
                f"{100 * cell.rate_of_top:.0f} %"
            )
    for space in dict.fromkeys(row.space for row in record.distances):
        yield f"Distance to the {record.reference}, in the space of {space}:"
        yield from (f"  {distance_line(row)}" for row in record.distances if row.space == space)
    yield from record.notes


def class_sentence(one: ClassYield) -> str:
    base = (
        f"{percent(one.baseline.value)} of {one.baseline.total}"
        if one.baseline.total
        else "not generated"
    )
    first = f"{percent(one.captions.value)} of their first {one.captions.total} images fail"
    return f"{one.class_name}: {count(one.n_captions, 'caption')}, {first} (baseline prompt: {base}); {one.n_kept:,} kept."


def _class_table(classes: Sequence[ClassYield]) -> str:
    rows = [
        (
            one.class_name,
            share_cell(one.baseline),
            share_cell(one.captions),
            text_cell(ratio(one.captions, one.baseline)),
            text_cell(str(one.n_captions)),
            text_cell(str(one.n_kept)),
        )
        for one in classes
    ]
    titles = ["class", "baseline prompt fails", "captions fail", "times", "captions", "kept"]
    return table(
        titles,
        rows,
        caption="Captions by their first images, as many of each, so that stopping early does not flatter them.",
    )


def ratio(share: Share, baseline: Share) -> str:
    """Return how many times as often one fails as the other, a dash where that cannot be said.

    >>> ratio(Share.of(30, 100), Share.of(10, 100)), ratio(Share.of(30, 100), Share.of(0, 100))
    ('3.0', '–')
    """
    return f"{share.value / baseline.value:.1f}" if baseline.value and share.total else "–"


def _label_figures(classes: Sequence[ClassYield]) -> Iterator[str]:
    chosen = sorted(classes, key=lambda one: (-one.n_kept, one.class_name))[:MAX_CLASSES]
    if any(one.n_kept for one in chosen):
        yield "<h2>What failures are taken for</h2>"
    for one in chosen:
        panels = [
            LabelPanel(
                title=f"{one.class_name}: baseline prompt",
                n_images=one.baseline.total,
                counts=_wrong(one, one.baseline_labels),
            ),
            LabelPanel(
                title=f"{one.class_name}: captions",
                n_images=one.n_judged,
                counts=_wrong(one, one.caption_labels),
            ),
        ]
        if one.n_kept:
            yield f"<figure>{label_bars(panels)}</figure>"


def _wrong(one: ClassYield, labels: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in labels.items() if name != one.class_name}


def _transfer_parts(matrix: TransferMatrix | None) -> Iterator[str]:
    if matrix is None:
        return
    yield "<h2>Other classifiers</h2>"
    yield f"<figure>{heat_map(matrix.sets, matrix.rates(), title='Share that is wrong', columns=matrix.models)}</figure>"
    top = heat_map(
        matrix.sets,
        matrix.rates(of_top=True),
        title="Share whose true label is not among the 3 likeliest",
        columns=matrix.models,
    )
    yield f"<figure>{top}</figure>"
    rows = [
        (
            cell.set_name,
            text_cell(cell.model),
            share_cell(Share.of(cell.n_wrong, cell.n_images)),
            share_cell(Share.of(cell.n_wrong_of_top, cell.n_images)),
        )
        for cell in matrix.cells
    ]
    yield table(["set", "classifier", "wrong", "not among the 3 likeliest"], rows)
    yield from (paragraph(note) for note in matrix.notes)


def _distance_parts(record: AdversarialSet) -> Iterator[str]:
    if not record.distances:
        return
    yield f"<h2>Distance to the {record.reference}</h2>"
    for space in dict.fromkeys(row.space for row in record.distances):
        own = [row for row in record.distances if row.space == space]
        rows = [(row.name, *(text_cell(*cell) for cell in _distance_cells(row))) for row in own]
        titles = [
            "set",
            "images",
            "Frechet",
            f"Frechet on {own[0].n_equal}",
            "extrapolated",
            "kernel x 1000",
        ]
        yield table(
            titles,
            rows,
            caption=f"In the space of {space}, to {own[0].n_reference:,} images; smaller is closer.",
        )
    yield paragraph(
        "The Frechet distance grows when there are few images: compare sets by the column with equally many, or by the kernel "
        "distance, which has no such bias. In Inception space the two are called FID and KID."
    )


def _distance_cells(row: SetDistance) -> list[tuple[str, str]]:
    error = row.kernel.standard_error
    return [
        (f"{row.n_images:,}", ""),
        (f"{row.frechet:.4g}", ""),
        (f"{row.frechet_equal:.4g}", ""),
        ("–" if row.frechet_unbiased is None else f"{row.frechet_unbiased:.4g}", ""),
        (f"{1000 * row.kernel.value:.4g}", "" if error is None else f"± {1000 * error:.2g}"),
    ]


def distance_line(row: SetDistance) -> str:
    error = (
        "" if row.kernel.standard_error is None else f" ± {1000 * row.kernel.standard_error:.2g}"
    )
    return (
        f"{row.name}: Frechet {row.frechet:.4g} ({row.frechet_equal:.4g} on {row.n_equal} images), "
        f"kernel x 1000 {1000 * row.kernel.value:.4g}{error}"
    )


def _caption_table(record: AdversarialSet) -> str:
    ranked = sorted(
        record.yields, key=lambda one: (-one.first.value, -one.n_failed, one.caption.prompt)
    )[:MAX_CAPTIONS]
    rows = [
        (
            one.caption.prompt,
            text_cell(one.caption.class_name),
            share_cell(one.first),
            text_cell(f"{one.n_failed:,}", f"of {one.n_judged:,}"),
            text_cell(str(len(one.kept))),
            text_cell(one.refusal or next(iter(one.wrong_labels), "–")),
        )
        for one in ranked
    ]
    more = (
        ""
        if len(record.yields) <= MAX_CAPTIONS
        else f"The {MAX_CAPTIONS} that fail most; all are in the record."
    )
    return table(
        ["caption", "class", "first images fail", "all that failed", "kept", "mostly taken for"],
        rows,
        caption=more,
    )
