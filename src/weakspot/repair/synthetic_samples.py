"""Generated images beside the samples of a project: read, classified and embedded, and in the split `synthetic` for ever."""

from collections.abc import Callable
from dataclasses import replace
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
from weakspot.run.embedding import EmbedSettings, KnowsEmbeddings, embed
from weakspot.run.ingestion import ingest
from weakspot.run.models import (
    Classified,
    ClassifySettings,
    classify,
    classify_embeddings,
    reads_embeddings,
)
from weakspot.run.preparation import CLIP, FEATURES, Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_engine
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

STORE_FOLDER = "synthetic"
INPUT = "synthetic"
COLUMNS = ("prompt", "generator")
_MAX_NAMED = 5


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
    read = read_synthetic(prepared, folder, settings=settings, store=store, progress=progress)
    if read is None:
        return prepared
    samples, (generated, spaces, which) = prepared.samples, read
    n_before, n_after = len(samples.dataset), len(generated)
    return replace(
        prepared,
        samples=replace(
            samples,
            dataset=samples.dataset.joined(generated),
            rows=np.arange(n_before + n_after),
            spaces={
                name: _join(space, spaces.get(name), n_after)
                for name, space in samples.spaces.items()
            },
        ),
        assistants=_asked_about(prepared.assistants, n_before),
        inputs=prepared.inputs | {INPUT: which},
    )


def read_synthetic(
    prepared: Prepared,
    folder: Path,
    *,
    settings: Settings,
    store: ProjectStore,
    progress: Progress = no_progress,
) -> tuple[Dataset, dict[str, EmbeddingSpace | None], str] | None:
    """Return the generated images that a project does not have yet, with predictions, their embeddings by space, and which they are.

    None if the project has them all in its own split `synthetic`.
    """
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
        ingest(own, source, engine=build_engine(settings), progress=progress, settings=assembly)
        new = _new_samples(own.dataset(), project, where=str(folder))
        if new is None:
            return None
        joint = _embedded(own, new, prepared, settings, progress)
        classified = _classified(own, new, classifier, joint, settings, progress)
    tables = own.current_tables()
    which = tables.folder.name if tables is not None else ""
    return classified.dataset, {CLIP: joint, FEATURES: classified.own}, which


def _embedded(
    store: ProjectStore,
    dataset: Dataset,
    prepared: Prepared,
    settings: Settings,
    progress: Progress,
) -> EmbeddingSpace | None:
    """Return embeddings, kept in a store of their own; None if the project's embedder can make none of new images."""
    if prepared.embedder is None or isinstance(prepared.embedder, KnowsEmbeddings):
        return None
    batch_size = settings.embedder.batch_size or EmbedSettings.batch_size
    return embed(
        store,
        dataset,
        prepared.embedder,
        engine=build_engine(settings),
        progress=progress,
        settings=EmbedSettings(batch_size=batch_size),
    ).space


def _classified(
    store: ProjectStore,
    dataset: Dataset,
    classifier: Classifier,
    joint: EmbeddingSpace | None,
    settings: Settings,
    progress: Progress,
) -> Classified:
    """Return predictions and features, kept in a store of their own."""
    thresholds = settings.failure.label_thresholds
    if reads_embeddings(classifier):
        return classify_embeddings(dataset, classifier, joint, label_thresholds=thresholds)
    chosen, engine = ClassifySettings(label_thresholds=thresholds), build_engine(settings)
    return classify(store, dataset, classifier, engine=engine, progress=progress, settings=chosen)


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
