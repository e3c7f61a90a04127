"""Single samples: what is known of one, its image, and what the classifier says of images that are not in the data.

Facts name no place of a file. Occlusion asks any model that answers images, a little with every request. It is this classifier's
answer to covered patches, not proof of what it uses: a patch may matter only together with another.
"""

import contextlib
import hashlib
import io
import math
import os
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Task
from weakspot.core.errors import DataError, StoreError, WeakspotError
from weakspot.core.failures import ClassProblem, predicted_classes, predicted_labels
from weakspot.core.run import RunRecord
from weakspot.data.images import decode_image, jpeg_at
from weakspot.data.locations import is_local, local_path, read_location, shown_location, split_range
from weakspot.data.prediction_columns import class_columns
from weakspot.project.nearest import label_texts
from weakspot.project.nearest_rows import EmbeddingShards, nearest_rows
from weakspot.run.models import reads_embeddings
from weakspot.run.preparation import CLIP, Prepared
from weakspot.web.services.view import SamplePage, View
from weakspot.web.services.workspace import Workspace


class ShownSample(View):
    """A sample as tiles of pages show it.

    Args:
        row: its row.
        label: true label; several are joined by commas.
        answer: what the classifier answered.
        is_failure: whether that was a failure; null if it is not known.
        score: similarity to what it was compared with, or depth inside a slice; null if there is neither.
    """

    row: int
    label: str
    answer: str
    is_failure: bool | None
    score: float | None = None


class ShownSamples(SamplePage):
    """Some of many samples, in order."""

    samples: list[ShownSample]


def shown_samples(
    dataset: Dataset,
    problem: ClassProblem,
    places: IntArray,
    *,
    labels: Sequence[str] | None = None,
    scores: Sequence[float | None] | None = None,
) -> list[ShownSample]:
    """Return samples of a class as pages show them.

    Args:
        dataset: holds them.
        problem: the class.
        places: which of its samples [n], in order.
        labels: what the truth is called; the class by default.
        scores: similarity or depth of each, if there is one.
    """
    rows, failed = problem.rows[places], problem.failed[places]
    columns = zip(
        rows.tolist(),
        [problem.title] * len(rows) if labels is None else labels,
        answers_of(dataset, rows, failed),
        failed.tolist(),
        [None] * len(rows) if scores is None else scores,
        strict=True,
    )
    return [
        ShownSample(row=row, label=label, answer=answer, is_failure=is_failure, score=score)
        for row, label, answer, is_failure, score in columns
    ]


MAX_PROBABILITIES = 5
MAX_COLUMNS = 100
MAX_VALUE_LENGTH = 500


class ClassProbability(View):
    """What the classifier gave to a class."""

    class_name: str
    probability: float


class SampleColumn(View):
    """A free column of a sample, as text."""

    name: str
    value: str


class SampleSlice(View):
    """A slice that a sample is a member of."""

    slice_id: str
    title: str
    verdict: str


class SampleFacts(View):
    """What is known of a sample.

    Args:
        row: its row.
        tables: what the row belongs to.
        sample_id: content hash, with a number behind it when the same content occurs again.
        name: file name, or what the source calls it.
        file: the same with its folders below the project's, if it is there.
        split: what it is for.
        width: pixels; 0 without an image.
        height: pixels; 0 without an image.
        labels: true labels; empty if it has none.
        given_labels: what the source gives, if people corrected it; null if they did not.
        answers: what the classifier answered; empty if unknown.
        is_failure: whether that counts as a failure; null if it is not known.
        probabilities: of the likeliest classes, likeliest first.
        columns: what else was given or measured of it.
        slices: slices of the newest run that it is a member of.
        has_heat_map: whether the classifier can be asked about its covered image.
    """

    row: int
    tables: str
    sample_id: str
    name: str
    file: str
    split: str
    width: int
    height: int
    labels: list[str]
    given_labels: list[str] | None
    answers: list[str]
    is_failure: bool | None
    probabilities: list[ClassProbability]
    columns: list[SampleColumn]
    slices: list[SampleSlice]
    has_heat_map: bool = False


def sample_facts(workspace: Workspace, row: int, *, with_slices: bool = True) -> SampleFacts | None:
    """Return what is known of a sample, None if there is none.

    Args:
        workspace: the project.
        row: which sample.
        with_slices: whether slices are listed, which not everybody may see.
    """
    samples = workspace.samples
    if not 0 <= row < len(samples.dataset):
        return None
    record = workspace.record() if with_slices else None
    dataset = samples.dataset
    whole = dataset.table.slice(row, 1)
    return SampleFacts(
        row=row,
        tables=workspace.tables_key,
        sample_id=str(whole.column("sample_id")[0].as_py()),
        name=names_of(dataset, np.array([row]))[0],
        file=files_of(workspace, np.array([row]))[0],
        split=SPLIT_ORDER[int(dataset.splits[row])].value,
        width=int(whole.column("width")[0].as_py() or 0),
        height=int(whole.column("height")[0].as_py() or 0),
        labels=_labels(dataset, row),
        given_labels=list(dataset.given_labels[row] or ()) if row in dataset.given_labels else None,
        answers=predicted_names(dataset, np.array([row]))[0],
        is_failure=_is_failure(workspace, row),
        probabilities=_probabilities(dataset, row),
        columns=_columns(dataset, whole),
        slices=[] if record is None else _slices(workspace, record, row),
        has_heat_map=workspace.prepared.classifier is not None
        and dataset.locations(np.array([row]))[0] is not None,
    )


class SampleFile(View):
    """Where the image of a sample is; for owners only, as it is a place on their machine or in their storage.

    Args:
        path: where, without user names, passwords and signatures; null without an image.
        is_there: whether something can be read there; null if it is not on this machine and was not asked.
    """

    path: str | None
    is_there: bool | None


def sample_file(workspace: Workspace, row: int) -> SampleFile:
    (location,) = workspace.samples.dataset.locations(np.array([row]))
    if location is None:
        return SampleFile(path=None, is_there=None)
    place, _ = split_range(location)
    is_there = local_path(place).is_file() if is_local(place) else None
    return SampleFile(path=shown_location(location), is_there=is_there)


def names_of(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return file names; of images inside larger files what the source calls them, and without either the beginning of the id."""
    columns = zip(
        dataset.locations(rows), _keys(dataset, rows), dataset.sample_ids(rows), strict=True
    )
    return [_name(location, key) or sample_id[:12] for location, key, sample_id in columns]


def files_of(workspace: Workspace, rows: IntArray) -> list[str]:
    """Return the same with the folders below the project's own, where files are there: never a place outside of it."""
    dataset, folder = workspace.samples.dataset, f"{workspace.project.folder.resolve()}{os.sep}"
    places = dataset.locations(rows)
    names = names_of(dataset, rows)
    return [
        place[len(folder) :] if place and "#" not in place and place.startswith(folder) else name
        for place, name in zip(places, names, strict=True)
    ]


def _name(location: str | None, key: str) -> str:
    place, part = split_range(location or "")
    if not place or part is not None:
        return key.rstrip("/").rpartition("/")[2]
    return shown_location(place).rstrip("/").rpartition("/")[2]


def _keys(dataset: Dataset, rows: IntArray) -> list[str]:
    column = dataset.table.column("key").take(pa.array(rows))
    return [str(key or "") for key in column.to_pylist()]


def answers_of(dataset: Dataset, rows: IntArray, failed: BoolArray) -> list[str]:
    """Return what the classifier answered of rows, in the words of the report."""
    if dataset.task is Task.SINGLE_LABEL:
        return [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    return ["wrong" if one else "right" for one in failed]


def _labels(dataset: Dataset, row: int) -> list[str]:
    if dataset.task is Task.SINGLE_LABEL:
        return [dataset.class_names[int(dataset.labels[row])]] if dataset.is_labelled[row] else []
    return [
        name
        for name, has in zip(dataset.class_names, dataset.label_matrix[row], strict=True)
        if has
    ]


def predicted_names(dataset: Dataset, rows: IntArray) -> list[list[str]]:
    """Return the classes that the classifier answered of every row; none where that is not known."""
    names = dataset.class_names
    if not dataset.has_predictions:
        return [[] for _ in rows]
    if dataset.task is Task.MULTI_LABEL:
        found = predicted_labels(dataset, rows)
        return [[names[code] for code in np.flatnonzero(line)] for line in found]
    codes = predicted_classes(dataset, rows)
    if dataset.predictions is None:
        chances = np.asarray(dataset.probabilities)[rows]
        codes = np.where(np.isfinite(chances).all(axis=1), codes, -1)
    return [[names[code]] if code >= 0 else [] for code in codes.tolist()]


def _is_failure(workspace: Workspace, row: int) -> bool | None:
    """Return whether a single-label result failed; of several labels some may be right and some wrong."""
    dataset = workspace.samples.dataset
    if (
        dataset.task is not Task.SINGLE_LABEL
        or not dataset.is_labelled[row]
        or not predicted_names(dataset, np.array([row]))[0]
    ):
        return None
    try:
        return bool(workspace.criterion.failed(dataset, np.array([row]))[0])
    except WeakspotError:
        return None


def _probabilities(dataset: Dataset, row: int) -> list[ClassProbability]:
    if dataset.probabilities is None:
        return []
    chances = np.asarray(dataset.probabilities[row], dtype=np.float64)
    order = np.argsort(-chances, kind="stable")[:MAX_PROBABILITIES]
    return [
        ClassProbability(class_name=dataset.class_names[code], probability=float(chances[code]))
        for code in order.tolist()
        if math.isfinite(chances[code])
    ]


def _columns(dataset: Dataset, whole: pa.Table) -> list[SampleColumn]:
    names = dataset.metadata_names[:MAX_COLUMNS]
    values = ((name, whole.column(f"meta.{name}")[0].as_py()) for name in names)
    return [
        SampleColumn(name=name, value=str(value)[:MAX_VALUE_LENGTH])
        for name, value in values
        if value is not None
    ]


def _slices(workspace: Workspace, record: RunRecord, row: int) -> list[SampleSlice]:
    """Return the slices of its class that a sample is in; rules that read what is not there now are passed over."""
    samples = workspace.samples.only(np.array([row]))
    verdicts = {entry.slice_id: entry.verdict.value for entry in record.evidence}
    hidden = record.dismissed()
    found = []
    for one in record.slices:
        try:
            is_member = (
                one.slice_id not in hidden
                and len(one.class_rows(samples))
                and len(one.members(samples))
            )
        except WeakspotError:
            continue
        if is_member:
            found.append(
                SampleSlice(
                    slice_id=one.slice_id, title=one.title, verdict=verdicts.get(one.slice_id, "")
                )
            )
    return found


FEW_PIXELS = 512 * 512
MAX_JPEG_SIDE = 65_500
QUALITY = 92
_DECODING_ORIGINALS = threading.BoundedSemaphore(2)


@dataclass(frozen=True, kw_only=True)
class EncodedImage:
    """An image for a page.

    Args:
        data: the file.
        tag: the same for the same image and size, for ever.
        media_type: of the file.
    """

    data: bytes
    tag: str
    media_type: str = "image/jpeg"


def original(workspace: Workspace, row: int, *, side: int | None = None) -> EncodedImage | None:
    """Return the image of a sample, None if it has none that can be read.

    It is encoded anew, so that nothing but pixels reaches a page. Small ones lose nothing: people count their pixels.

    Args:
        workspace: the project.
        row: which sample.
        side: longest side in pixels; smaller images are not enlarged. None for the size it has.
    """
    dataset, here = workspace.samples.dataset, np.array([row])
    (location,), (content,) = dataset.locations(here), dataset.content_hashes(here)
    if location is None:
        return None
    try:
        with _DECODING_ORIGINALS, workspace.project.reading():
            # Asked for a side, a JPEG is decoded no larger than that needs.
            image = decode_image(read_location(location), image_side=side).image
            if side is not None:
                image.thumbnail((side, side))
    except WeakspotError:
        return None
    is_exact = image.width * image.height <= FEW_PIXELS or max(image.size) > MAX_JPEG_SIDE
    stream = io.BytesIO()
    if is_exact:
        image.save(stream, format="PNG", compress_level=1)
    else:
        image.save(stream, format="JPEG", quality=QUALITY, subsampling=0)
    return EncodedImage(
        data=stream.getvalue(),
        media_type="image/png" if is_exact else "image/jpeg",
        tag=hashlib.sha256(f"{content} {side or 'whole'}".encode()).hexdigest()[:32],
    )


SIDES = (64, 96, 128, 160, 224, 320, 512)
FOLDER = "thumbnails"
MAX_BYTES = 512 * 1024 * 1024
KEPT_SHARE = 0.75
UNFINISHED = ".part"
_DECODING_THUMBNAILS = threading.BoundedSemaphore(max(2, (os.cpu_count() or 1)))


class ThumbnailFolder:
    """Thumbnails on disk by content and side; when there are too many bytes, the oldest go.

    Every file is written under a name of its own and then renamed, so that readers and other processes see whole files or none.
    A disk that is full or read-only costs time, not answers.

    Args:
        folder: where they are; made when the first one is kept.
        most_bytes: how much is kept at most, within what one process writes between two counts.
    """

    def __init__(self, folder: Path, *, most_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self._guard = threading.Lock()
        self._n_bytes: int | None = None

    def get(self, tag: str) -> bytes | None:
        try:
            return self._path(tag).read_bytes() or None
        except OSError:
            return None

    def keep(self, tag: str, data: bytes) -> None:
        path = self._path(tag)
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            os.replace(unfinished, path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            return
        self._count(len(data))

    def _path(self, tag: str) -> Path:
        return self.folder / tag[:2] / f"{tag}.jpg"

    def _count(self, n_bytes: int) -> None:
        with self._guard:
            if self._n_bytes is None:
                self._n_bytes = sum(size for _, size, _ in self._files())
            else:
                self._n_bytes += n_bytes
            if self._n_bytes > self.most_bytes:
                self._n_bytes = self._tidy()

    def _tidy(self) -> int:
        """Delete the oldest files until three quarters of what may be kept are left; return how many bytes that is."""
        files = sorted(self._files())
        n_bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if n_bytes <= KEPT_SHARE * self.most_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            n_bytes -= size
        return n_bytes

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return age, size and path of every file; others may delete some meanwhile."""
        found = []
        for path in self.folder.glob("*/*"):
            try:
                facts = path.stat()
            except OSError:
                continue
            found.append((facts.st_mtime, facts.st_size, path))
        return found


def thumbnail(workspace: Workspace, row: int, *, side: int) -> EncodedImage | None:
    """Return a small image of a sample, None if it has none that can be read.

    Args:
        workspace: the project.
        row: which sample.
        side: longest side in pixels; the next larger one of `SIDES` is taken.
    """
    dataset = workspace.samples.dataset
    if not 0 <= row < len(dataset):
        return None
    here = np.array([row])
    (location,), (content,) = dataset.locations(here), dataset.content_hashes(here)
    if location is None:
        return None
    size = next((step for step in SIDES if step >= side), SIDES[-1])
    tag = hashlib.sha256(f"{content} {size}".encode()).hexdigest()[:32]
    kept = _folder(workspace)
    data = kept.get(tag)
    if data is None:
        with _DECODING_THUMBNAILS, workspace.project.reading():
            data = jpeg_at(location, size)
        if data is None:
            return None
        kept.keep(tag, data)
    return EncodedImage(data=data, tag=tag)


def _folder(workspace: Workspace) -> ThumbnailFolder:
    return workspace.once(FOLDER, lambda: ThumbnailFolder(workspace.project.store.data / FOLDER))


def lock_of_models(workspace: Workspace) -> threading.Lock:
    """Return what is held while models are asked: they are not made for several threads at once."""
    return workspace.once("lock of a tried image", threading.Lock)


def with_classifier(workspace: Workspace) -> Prepared:
    """Return samples and models.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = workspace.prepared
    if prepared.classifier is None:
        raise StoreError(
            "There is no classifier to ask: the project has predictions only.",
            where="[classifier]",
            fix="Configure a classifier in weakspot.toml to try images.",
        )
    return prepared


def embed_images(prepared: Prepared, images: Sequence[Image.Image]) -> FloatArray | None:
    """Return unit vectors [n, d] of images, None if there is no embedder."""
    embedder = prepared.embedder
    if embedder is None or CLIP not in prepared.samples.spaces:
        return None
    found = embedder.embed_prepared([embedder.prepare(image) for image in images])
    embeddings: FloatArray = unit_rows(np.asarray(found, dtype=np.float32))
    return embeddings


def classify_images(
    prepared: Prepared, images: Sequence[Image.Image], embeddings: FloatArray | None = None
) -> FloatArray:
    """Return probabilities [n, c] of RGB images, in the order of the data set's classes.

    Args:
        prepared: with a classifier.
        images: upright, RGB.
        embeddings: of these images, for a classifier that reads them; made here if they are not given.

    Raises:
        StoreError: if the classifier reads embeddings and nothing makes them.
    """
    classifier = prepared.classifier
    assert classifier is not None
    if reads_embeddings(classifier):
        known = embed_images(prepared, images) if embeddings is None else embeddings
        if known is None:
            raise StoreError(
                "The classifier reads embeddings, and there is no embedder to make one of the image.",
                where="[embedder]",
            )
        output = classifier.classify(list(known))
    else:
        output = classifier.classify([classifier.prepare(image) for image in images])
    dataset, found = prepared.samples.dataset, np.asarray(output.probabilities, dtype=np.float32)
    columns = class_columns(
        dataset,
        classifier.class_names,
        n_columns=found.shape[1],
        classifier_id=classifier.classifier_id,
    )
    probabilities: FloatArray = np.nan_to_num(found[:, columns])
    return probabilities


CELLS = 10
COVERED = 2
"""A patch covers so many cells each way, and begins at every cell: each cell is covered by several patches."""
BATCH = 11
PATIENCE_SECONDS = 0.6
MAX_KEPT = 32
MAX_SIDE = 1024


class HeatOfClass(ClassProbability):
    """How much the probability of a class falls where a patch is covered.

    Args:
        heat: rows of cells, each the mean fall over the patches that cover it; below 0 where covering raises it.
    """

    heat: list[list[float]]


class HeatView(View):
    """A heat map, or how far it is.

    Args:
        done: patches that were covered so far.
        total: how many there are.
        maps: of the class that is predicted and, if it is another, of the true one; empty until all patches are done.
    """

    done: int
    total: int
    maps: tuple[HeatOfClass, ...] = ()


@dataclass
class Occlusion:
    """The covered images of one sample, as far as they were asked about.

    Args:
        image: the whole one.
        answers: probabilities [k, c] of the whole image, then of the covered ones, in the order of `patches`.
    """

    image: Image.Image
    answers: list[FloatArray] = field(default_factory=list)

    @property
    def total(self) -> int:
        return 1 + len(patches())

    @property
    def is_done(self) -> bool:
        return len(self.answers) >= self.total

    def following(self) -> list[Image.Image]:
        """Return the images that are asked about next; which ones share a batch never changes."""
        start = len(self.answers)
        return [self._covered(place) for place in range(start, min(start + BATCH, self.total))]

    def heat(self, code: int) -> FloatArray:
        """Return how much a class falls, by cell [CELLS, CELLS]."""
        whole = float(self.answers[0][code])
        summed, counted = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
        for (top, left), answer in zip(patches(), self.answers[1:], strict=True):
            here = slice(max(0, top), top + COVERED), slice(max(0, left), left + COVERED)
            summed[here] += whole - float(answer[code])
            counted[here] += 1
        fall: FloatArray = (summed / counted).astype(np.float32)
        return fall

    def _covered(self, place: int) -> Image.Image:
        if place == 0:
            return self.image
        top, left = patches()[place - 1]
        width, height = self.image.size
        box = (
            max(0, left) * width // CELLS,
            max(0, top) * height // CELLS,
            min(CELLS, left + COVERED) * width // CELLS,
            min(CELLS, top + COVERED) * height // CELLS,
        )
        grey = tuple(int(value) for value in np.asarray(self.image).reshape(-1, 3).mean(axis=0))
        covered = self.image.copy()
        covered.paste(grey, box)
        return covered


def patches() -> tuple[tuple[int, int], ...]:
    """Return the first cell of every patch; the outermost lie half outside, so that every cell is covered as often."""
    starts = range(1 - COVERED, CELLS)
    return tuple((top, left) for top in starts for left in starts)


def heat_map(
    workspace: Workspace, row: int, *, patience: float = PATIENCE_SECONDS
) -> HeatView | None:
    """Return the heat map of a sample, or how far it is after another little while; None if its image cannot be read.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    with lock_of_models(workspace):
        try:
            found = workspace.recent(
                "occlusions", row, lambda: Occlusion(image=_image(workspace, row)), most=MAX_KEPT
            )
        except WeakspotError:
            return None
        start = time.monotonic()
        while not found.is_done:
            found.answers.extend(classify_images(prepared, found.following()))
            if time.monotonic() - start >= patience:
                break
    if not found.is_done:
        return HeatView(done=len(found.answers), total=found.total)
    return HeatView(done=found.total, total=found.total, maps=_maps(workspace, row, found))


def _maps(workspace: Workspace, row: int, found: Occlusion) -> tuple[HeatOfClass, ...]:
    dataset = workspace.samples.dataset
    codes = [int(np.argmax(found.answers[0]))]
    if dataset.task is Task.MULTI_LABEL:
        codes += np.flatnonzero(dataset.label_matrix[row]).tolist()
    elif dataset.is_labelled[row]:
        codes.append(int(dataset.labels[row]))
    return tuple(
        HeatOfClass(
            class_name=dataset.class_names[code],
            probability=float(found.answers[0][code]),
            heat=found.heat(code).tolist(),
        )
        for code in dict.fromkeys(codes)
    )


def _image(workspace: Workspace, row: int) -> Image.Image:
    (location,) = workspace.samples.dataset.locations(np.array([row]))
    if location is None:
        raise DataError("The sample has no image.")
    classifier = with_classifier(workspace).classifier
    side = None if classifier is None else classifier.image_side
    with workspace.project.reading():
        image = decode_image(read_location(location), image_side=side).image
    image.thumbnail((max(MAX_SIDE, side or 0),) * 2)
    return image.convert("RGB")


N_CLASSES = 5
N_NEAREST = 8


class TrialView(View):
    """What came of trying an image; nothing of it is kept.

    Args:
        tables: which tables the row numbers are of.
        width: of the image as it was decoded.
        height: of the image as it was decoded.
        classes: the likeliest classes, the likeliest first; of a multi-label classifier each on its own.
        nearest: samples that look most like it; empty without an embedder.
    """

    tables: str
    width: int
    height: int
    classes: list[ClassProbability]
    nearest: list[ShownSample]


def needed_side(workspace: Workspace) -> int | None:
    """Return the shortest image side that the models need; None for full size.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    sides = [
        part.image_side for part in (prepared.classifier, prepared.embedder) if part is not None
    ]
    known = [side for side in sides if side is not None]
    return max(known) if len(known) == len(sides) else None


def try_image(workspace: Workspace, image: Image.Image) -> TrialView:
    """Return what the classifier says of an RGB image, and the samples of the discovery half that look like it.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    with lock_of_models(workspace):
        embeddings = embed_images(prepared, [image])
        probabilities = classify_images(prepared, [image], embeddings)[0]
    names = prepared.samples.dataset.class_names
    best = np.argsort(-probabilities, kind="stable")[:N_CLASSES]
    return TrialView(
        tables=workspace.tables_key,
        width=image.width,
        height=image.height,
        classes=[
            ClassProbability(class_name=names[code], probability=float(probabilities[code]))
            for code in best
        ],
        nearest=[] if embeddings is None else _nearest(workspace, embeddings[0]),
    )


def _nearest(workspace: Workspace, embedding: FloatArray) -> list[ShownSample]:
    samples = workspace.discovery
    within = np.zeros(len(samples.dataset), dtype=np.bool_)
    within[samples.rows] = True
    (found,) = nearest_rows(
        EmbeddingShards([samples.space(CLIP).embeddings]), embedding, N_NEAREST, within=within
    )
    rows = found.rows
    failed = workspace.once("failures by row", lambda: _failures(workspace))[rows]
    labels, answers = label_texts(samples.dataset, rows), answers_of(samples.dataset, rows, failed)
    return [
        ShownSample(
            row=int(row),
            label=label,
            answer=answer,
            is_failure=bool(wrong),
            score=float(similarity),
        )
        for row, label, answer, wrong, similarity in zip(
            rows, labels, answers, failed, found.scores, strict=True
        )
    ]


def _failures(workspace: Workspace) -> BoolArray:
    found = np.zeros(len(workspace.samples.dataset), dtype=np.bool_)
    for problem in workspace.problems.values():
        found[problem.rows] |= problem.failed
    return found
