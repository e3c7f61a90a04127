"""Generated images beside the samples of a project: read, classified and embedded, and in the split `synthetic` for ever."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.roles import Classifier
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import EmbeddingSpace
from weakspot.data.image_folder import GeneratedFolder
from weakspot.data.settings import DataSettings
from weakspot.run.classification import (
    Classified,
    ClassifySettings,
    classify,
    classify_embeddings,
    reads_embeddings,
)
from weakspot.run.embedding import EmbedSettings, KnowsEmbeddings, embed
from weakspot.run.ingestion import IngestResult, ingest
from weakspot.run.preparation import CLIP, FEATURES, Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_engine
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

STORE_FOLDER = "synthetic"
INPUT = "synthetic"
COLUMNS = ("prompt", "generator")
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticSamples:
    """Generated images that a project does not have yet.

    Args:
        dataset: with predictions; all in the split `synthetic`.
        spaces: their embeddings by space name, as far as they could be made.
        summary: what was read and what was set aside.
        inputs: which images these are, for the run record.
    """

    dataset: Dataset
    spaces: dict[str, EmbeddingSpace]
    summary: IngestResult
    inputs: dict[str, str]


def with_synthetic(
    prepared: Prepared,
    folder: Path,
    *,
    settings: Settings,
    store: ProjectStore,
    progress: Progress = no_progress,
) -> Prepared:
    """Return the samples of a project followed by generated ones; those of the project keep their places and numbers.

    Images that the project has already are left out. What was computed is kept in the project folder, so that a second call, or
    one after an interruption, costs little.

    Args:
        prepared: the project's samples and models.
        folder: generated images, one sub-folder a class; see `GeneratedFolder`.
        settings: of the project.
        store: of the project.
        progress: told how far each step is.

    Raises:
        ConfigError: if there is no classifier that could be asked about new images.
        DataError: if a class is unknown, or an image is also in a split that is verified on.
        NotEnoughDataError: if not one image can be used.
    """
    found = read_synthetic(prepared, folder, settings=settings, store=store, progress=progress)
    if found is None:
        return prepared
    samples = prepared.samples
    n_before, n_after = len(samples.dataset), len(found.dataset)
    return replace(
        prepared,
        samples=replace(
            samples,
            dataset=samples.dataset.joined(found.dataset),
            rows=np.arange(n_before + n_after),
            spaces={
                name: _join(space, found.spaces.get(name), n_after)
                for name, space in samples.spaces.items()
            },
        ),
        assistants=_asked_about(prepared.assistants, n_before),
        inputs=prepared.inputs | found.inputs,
    )


def read_synthetic(
    prepared: Prepared,
    folder: Path,
    *,
    settings: Settings,
    store: ProjectStore,
    progress: Progress = no_progress,
) -> SyntheticSamples | None:
    """Return the generated images that a project does not have yet, None if it has them all in its own split `synthetic`."""
    project = prepared.samples.dataset
    classifier = prepared.classifier
    if classifier is None:
        raise ConfigError(
            "Without a classifier nothing can be computed of generated images.",
            where="[classifier]",
            fix="Configure one.",
        )
    source = GeneratedFolder(location=str(folder))
    assembly = DataSettings(
        class_names=project.class_names,
        task=project.task.value,
        default_split=Split.SYNTHETIC.value,
    )
    with store.writing():
        own = ProjectStore.create(store.data / STORE_FOLDER)
        summary = ingest(
            own, source, engine=build_engine(settings), progress=progress, settings=assembly
        )
        new = _new_samples(own.dataset(), project, where=str(folder))
        if new is None:
            return None
        work = _Work(store=own, settings=settings, progress=progress)
        joint = work.joint(new, prepared)
        classified = work.classified(new, classifier, joint)
    tables = own.current_tables()
    spaces = {CLIP: joint, FEATURES: classified.own}
    return SyntheticSamples(
        dataset=classified.dataset,
        spaces={name: space for name, space in spaces.items() if space is not None},
        summary=summary,
        inputs={INPUT: tables.folder.name if tables is not None else ""},
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """Passes over generated images, with a store of their own so that the project's matrices stay as they are."""

    store: ProjectStore
    settings: Settings
    progress: Progress

    def joint(self, dataset: Dataset, prepared: Prepared) -> EmbeddingSpace | None:
        """Return embeddings; None if the project's embedder can make none of new images."""
        if prepared.embedder is None or isinstance(prepared.embedder, KnowsEmbeddings):
            return None
        asked = self.settings.embedder.batch_size
        chosen = EmbedSettings(batch_size=asked or EmbedSettings.batch_size)
        engine = build_engine(self.settings)
        return embed(
            self.store,
            dataset,
            prepared.embedder,
            engine=engine,
            progress=self.progress,
            settings=chosen,
        ).space

    def classified(
        self, dataset: Dataset, classifier: Classifier, joint: EmbeddingSpace | None
    ) -> Classified:
        """Return predictions and features."""
        thresholds = self.settings.failure.label_thresholds
        if reads_embeddings(classifier):
            return classify_embeddings(dataset, classifier, joint, label_thresholds=thresholds)
        chosen, engine = ClassifySettings(label_thresholds=thresholds), build_engine(self.settings)
        return classify(
            self.store, dataset, classifier, engine=engine, progress=self.progress, settings=chosen
        )


def _new_samples(generated: Dataset, project: Dataset, *, where: str) -> Dataset | None:
    """Return each generated image once, without those that the project has already."""
    keys, own = (
        packed_hashes(dataset.table.column("content_hash")) for dataset in (generated, project)
    )
    is_verified_on = np.isin(keys, own[project.rows_of(Split.VALIDATION, Split.TEST)])
    if is_verified_on.any():
        names = (
            generated.table.column("key").take(pa.array(np.flatnonzero(is_verified_on))).to_pylist()
        )
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        raise DataError(
            f"{len(names)} generated images are also validation or test samples of the project: "
            f"{', '.join(names[:_MAX_NAMED])}{more}. A repair that trains on them cannot be measured.",
            where=where,
            fix="Remove them from the folder, or from the project's validation and test samples.",
        )
    is_first = np.zeros(len(keys), dtype=np.bool_)
    is_first[np.unique(keys, return_index=True)[1]] = True
    rows: IntArray = np.flatnonzero(is_first & ~np.isin(keys, own))
    if len(rows):
        table = generated.table.take(pa.array(rows))
        return _with_columns(
            Dataset(class_names=generated.class_names, task=generated.task, table=table)
        )
    if len(project.rows_of(Split.SYNTHETIC)):
        return None
    raise NotEnoughDataError(
        f"The project has all {len(keys)} generated images already, as training or pool samples.",
        where=where,
        fix="Give images that are not among the samples.",
    )


def _with_columns(dataset: Dataset) -> Dataset:
    missing = [name for name in COLUMNS if name not in dataset.metadata_names]
    return dataset.with_metadata({name: pa.nulls(len(dataset), pa.string()) for name in missing})


def _join(space: EmbeddingSpace, added: EmbeddingSpace | None, n_added: int) -> EmbeddingSpace:
    embeddings = (
        np.full((n_added, space.embeddings.shape[1]), np.nan, dtype=np.float32)
        if added is None
        else added.embeddings
    )
    return replace(space, embeddings=np.concatenate([space.embeddings, embeddings]))


def _asked_about(assistants: Assistants, n_rows: int) -> Assistants:
    captions, answers = assistants.captions, assistants.answers
    return replace(
        assistants,
        captions=None if captions is None else lambda rows: _said(captions, rows, n_rows),
        answers=None
        if answers is None
        else lambda rows, question: _said(lambda own: answers(own, question), rows, n_rows),
    )


def _said(ask: Callable[[IntArray], list[str]], rows: IntArray, n_rows: int) -> list[str]:
    known = np.asarray(rows) < n_rows
    texts = iter(ask(np.asarray(rows)[known]))
    return [next(texts) if one else "" for one in known.tolist()]
