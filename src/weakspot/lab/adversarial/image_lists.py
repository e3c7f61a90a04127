"""Images from outside a project, read once and kept beside it: lists to caption, and sets to compare with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.compare.transfer import Answers
from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import DataError, ModelError
from weakspot.core.roles import Classifier, Embedder, Engine
from weakspot.core.run import Progress
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.generated_folder import TABLE_NAMES, GeneratedFolder
from weakspot.ingest.open_source import open_source
from weakspot.ingest.source import SampleSource
from weakspot.ingest.tables import TABLE_EXTENSIONS
from weakspot.pipeline.ingestion import ingest
from weakspot.pipeline.models.classification import classify
from weakspot.pipeline.models.embedding import embed
from weakspot.pipeline.models.embedding_classifiers import classify_embeddings, reads_embeddings
from weakspot.store.names import folder_name
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
        settings = AssemblySettings(
            class_names=class_names, task=Task.SINGLE_LABEL, default_split=Split.POOL
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
        return Answers(probabilities=np.asarray(probabilities), labels=labelled.dataset.labels)


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
