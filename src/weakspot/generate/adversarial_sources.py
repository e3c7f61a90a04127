"""What an adversarial set starts from and is compared with: captions, tables, and images from outside a project."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import FloatArray, IntArray, generator
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError, raise_all
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.roles import Captioner, Classifier, CompletesCaptions, Embedder, Engine
from weakspot.core.run import Progress
from weakspot.data.image_folder import TABLE_NAMES, GeneratedFolder
from weakspot.data.open_source import open_source
from weakspot.data.settings import DataSettings
from weakspot.data.source import SampleSource
from weakspot.data.tables import TABLE_EXTENSIONS
from weakspot.generate.adversarial import Answers, SourceCaption, caption_from, merged
from weakspot.generate.sampling import DrawableSentences
from weakspot.generate.search.sentences import ASSEMBLED, baseline_prompt, parent_of
from weakspot.run.embedding import embed
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import ImageBench, ImageTexts
from weakspot.run.models import classify, classify_embeddings, reads_embeddings
from weakspot.store.array_files import folder_name
from weakspot.store.project import ProjectStore

LISTS_FOLDER = "lists"


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageList:
    """Images with what is known of them.

    Args:
        name: how it is called in tables.
        store: where numbers of its images are kept.
        dataset: the images.
        has_labels: whether every label is a class of the project, so that classifiers can be asked.
    """

    name: str
    store: ProjectStore
    dataset: Dataset
    has_labels: bool = True

    def only(self, rows: IntArray) -> "ImageList":
        """Return some of the images, without predictions."""
        table = self.dataset.table.take(pa.array(rows))
        return replace(
            self,
            dataset=Dataset(
                class_names=self.dataset.class_names, task=self.dataset.task, table=table
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ListReader:
    """Reads images from outside into the store of a project.

    Args:
        store: of the project.
        class_names: of the project.
        engine: reads and decodes.
        told: gives the progress callback of a step.
    """

    store: ProjectStore
    class_names: tuple[str, ...]
    engine: Engine
    told: Callable[[str], Progress]

    def labelled(self, location: Path) -> ImageList:
        """Return labelled images of the project's classes.

        Raises:
            DataError: if they have other labels, or none.
        """
        found = self._read(location, self.class_names)
        if not found.dataset.is_labelled.any():
            raise DataError(
                "Not one of the images has a label.",
                where=str(location),
                fix="Put them into a sub-folder a class.",
            )
        return found

    def any_images(self, location: Path) -> ImageList:
        """Return images with whatever labels they have."""
        try:
            found = self._read(location, self.class_names)
        except DataError:
            return replace(self._read(location, ()), has_labels=False)
        return replace(found, has_labels=bool(found.dataset.is_labelled.all()))

    def _read(self, location: Path, class_names: tuple[str, ...]) -> ImageList:
        source = _source(location)
        settings = DataSettings(
            class_names=class_names, task="single-label", default_split=Split.POOL.value
        )
        place = (
            self.store.data
            / LISTS_FOLDER
            / folder_name(f"{location.name or 'list'} {location.resolve()}")
        )
        with self.store.writing():
            own = ProjectStore.create(place)
            ingest(
                own,
                source,
                engine=self.engine,
                progress=self.told(f"read {location.name}"),
                settings=settings,
            )
        return ImageList(name=location.resolve().name, store=own, dataset=own.dataset())

    def embeddings(self, images: ImageList, embedder: Embedder) -> FloatArray:
        """Return what an embedder makes of the images [n, d]; rows of NaN where it could not read one."""
        made = embed(
            images.store,
            images.dataset,
            embedder,
            engine=self.engine,
            progress=self.told(f"embed {images.name}"),
        )
        return made.space.embeddings

    def answers(self, images: ImageList, model: "ModelUnderTest") -> Answers:
        """Return what a classifier says of labelled images.

        Raises:
            ModelError: if it knows other classes, or reads embeddings and there is no embedder.
        """
        labelled = images.only(np.flatnonzero(images.dataset.is_labelled))
        progress = self.told(f"{model.name} on {images.name}")
        if reads_embeddings(model.classifier):
            if model.embedder is None:
                raise ModelError(
                    "This classifier reads embeddings, and no embedder makes them.",
                    where=model.name,
                )
            made = embed(
                labelled.store,
                labelled.dataset,
                model.embedder,
                engine=self.engine,
                progress=progress,
            )
            classified = classify_embeddings(
                labelled.dataset, model.classifier, made.space, label_thresholds={}
            )
        else:
            classified = classify(
                labelled.store,
                labelled.dataset,
                model.classifier,
                engine=self.engine,
                progress=progress,
            )
        probabilities = classified.dataset.probabilities
        if probabilities is None:
            raise ModelError("The classifier gives no probabilities.", where=model.name)
        return np.asarray(probabilities), labelled.dataset.labels


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUnderTest:
    """A classifier that sets are put to.

    Args:
        name: how it is called in tables.
        classifier: the classifier.
        embedder: makes the embeddings that some classifiers read; None for those that read images.
    """

    name: str
    classifier: Classifier
    embedder: Embedder | None = None


def _source(location: Path) -> SampleSource:
    tables = [
        location / f"{name}{extension}" for name in TABLE_NAMES for extension in TABLE_EXTENSIONS
    ]
    if any(path.is_file() for path in tables):
        return GeneratedFolder(location=str(location))
    return open_source(str(location))


LABEL, CAPTION = "label", "caption"
WordsOfRows = Callable[[IntArray, str], list[str]]
ANY_NUMBER = 1000
MAX_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """The baseline prompts of a project.

    Args:
        class_names: its classes.
        template: the setting search.prompt.
        parents: parents that a person gave, by class.
    """

    class_names: tuple[str, ...]
    template: str
    parents: dict[str, str]

    def of(self, class_name: str) -> str:
        parent = parent_of(class_name, other_classes=self.class_names, parents=self.parents)
        return baseline_prompt(class_name, template=self.template, parent=parent)


def failed_rows(dataset: Dataset, criterion: FailureCriterion) -> IntArray:
    """Return the failures of a project on its validation and test samples.

    Raises:
        NotEnoughDataError: if there is none.
    """
    rows = dataset.rows_of(Split.VALIDATION, Split.TEST)
    problems = class_problems(dataset, rows, criterion)
    found = (
        np.concatenate([problem.rows[problem.failed] for problem in problems])
        if problems
        else rows[:0]
    )
    if not len(found):
        raise NotEnoughDataError(
            "The classifier fails on no validation or test sample, so there is nothing to caption.",
            fix="Give other images with --images, or captions with --captions.",
        )
    return np.asarray(np.sort(found), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageCaptions:
    """Captions labelled images.

    Args:
        captioner: whom to ask; None for captions that came with the images, or else words.
        baselines: the prompts that captions go on from.
        engine: reads and decodes images.
        progress: told how many images are done.
        words: rows and their class to words that the embedder ranks; None if it cannot.
        drawable: leaves out sentences that the generator cannot draw, before the first ones are taken; None: all are taken.
    """

    captioner: Captioner | None
    baselines: Baselines
    engine: Engine
    progress: Progress
    words: WordsOfRows | None = None
    drawable: DrawableSentences | None = None

    def source(self, dataset: Dataset) -> str:
        if self.captioner is not None:
            return self.captioner.captioner_id
        return "captions that came with them" if CAPTION in dataset.metadata_names else ASSEMBLED

    def of(
        self, dataset: Dataset, rows: IntArray, store: ProjectStore
    ) -> tuple[SourceCaption, ...]:
        """Return the different captions of some rows.

        Raises:
            ConfigError: if no captioner is configured and the images have no column of captions.
            ModelError: if the captioner cannot be used.
            NotEnoughDataError: if no image got a caption.
        """
        caption_rows = self._row_captioner(dataset, store)
        keys = dataset.table.column("key")
        found: list[SourceCaption | None] = []
        for code in np.unique(dataset.labels[rows]).tolist():
            own = rows[dataset.labels[rows] == code]
            name = dataset.class_names[code]
            baseline = self.baselines.of(name)
            origins = keys.take(pa.array(own)).to_pylist()
            texts = caption_rows(own, baseline, name)
            if self.drawable is not None:
                texts = [self.drawable(text, baseline) for text in texts]
            found += [
                caption_from(name, baseline, text, origin=origin)
                for text, origin in zip(texts, origins, strict=True)
            ]
        captions = merged([one for one in found if one is not None])
        if not captions:
            raise NotEnoughDataError(
                f"None of {len(rows)} images got a caption that can be generated.",
                fix="Try another captioner, or another generator.",
            )
        return captions

    def _row_captioner(
        self, dataset: Dataset, store: ProjectStore
    ) -> Callable[[IntArray, str, str], list[str]]:
        captioner = self.captioner
        words = self.words
        if captioner is None and words is not None and CAPTION not in dataset.metadata_names:
            return lambda rows, _baseline, name: words(rows, name)
        if captioner is None:
            return _column(dataset)
        texts = ImageTexts(
            ImageBench(
                dataset=dataset,
                store=store,
                engine=self.engine,
                progress_of=lambda _step: self.progress,
            ),
            who="captioner",
            part=captioner,
            identity=lambda: captioner.captioner_id,
            step="caption",
        )

        def caption_rows(rows: IntArray, baseline: str, class_name: str) -> list[str]:
            if isinstance(captioner, CompletesCaptions):
                return texts.said(
                    rows,
                    partial(captioner.complete, beginning=baseline),
                    question=f"complete: {baseline}",
                )
            return texts.said(
                rows, partial(captioner.caption, about=class_name), question=f"caption: {baseline}"
            )

        return caption_rows


def _column(dataset: Dataset) -> Callable[[IntArray, str, str], list[str]]:
    if CAPTION not in dataset.metadata_names:
        raise ConfigError(
            "There is nobody to caption the images.",
            where="[captioner]",
            fix="Configure a captioner, give the images a column `caption`, or give a table of captions with --captions.",
        )
    column = dataset.metadata(CAPTION)
    return lambda rows, _baseline, _name: [
        str(text or "") for text in column.take(pa.array(rows)).to_pylist()
    ]


def captions_of_table(path: Path, baselines: Baselines) -> tuple[SourceCaption, ...]:
    """Return the different captions of a table with the columns label and caption.

    Raises:
        DataError: listing everything that is wrong with it.
    """
    problems: list[str] = []
    found: list[SourceCaption] = []
    for line, label, text in _rows(path):
        if label not in baselines.class_names:
            problems.append(f"line {line}: there is no class {label!r}")
            continue
        caption = caption_from(
            label,
            baselines.of(label),
            text,
            origin=f"{path.name}:{line}",
            most_sentences=ANY_NUMBER,
        )
        if caption is None:
            problems.append(f"line {line}: the caption says nothing")
        else:
            found.append(caption)
    known = ", ".join(baselines.class_names[:MAX_NAMED])
    shown = problems[:MAX_NAMED] + (
        [f"and {len(problems) - MAX_NAMED} more"] if len(problems) > MAX_NAMED else []
    )
    raise_all(
        shown,
        error=DataError,
        what="Some captions cannot be used:",
        where=str(path),
        fix=f"Classes are {known}.",
    )
    if not found:
        raise DataError("The table has no captions.", where=str(path))
    return merged(found)


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in (LABEL, CAPTION) if name not in (reader.fieldnames or ())]
            if missing:
                raise DataError(
                    f"The table of captions lacks the columns {missing}.",
                    where=str(path),
                    given=list(reader.fieldnames or ()),
                    fix="Write the columns label and caption, separated by a comma.",
                )
            for row in reader:
                yield reader.line_num, (row[LABEL] or "").strip(), (row[CAPTION] or "").strip()
    except OSError as error:
        raise DataError(
            f"The table of captions cannot be read: {error.strerror}.", where=str(path)
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"The table of captions is no CSV file: {error}.", where=str(path)
        ) from error


def chosen_rows(rows: IntArray, most: int, *, seed: int) -> IntArray:
    """Return at most so many rows, generated at random and in order."""
    if len(rows) <= most:
        return rows
    return np.sort(generator(seed, "pictures to caption").choice(rows, most, replace=False))
