"""Images nearest to a phrase or to another image: for looking, not for proof."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import (
    FailureCriterion,
    class_problems,
    predicted_classes,
    predicted_labels,
)
from weakspot.core.record import Record
from weakspot.core.run import Progress, no_progress
from weakspot.data.images import decode_image
from weakspot.data.locations import read_location, shown_location
from weakspot.project.nearest_rows import (
    EmbeddingShards,
    Nearest,
    approximate,
    nearest_rows,
    quantise_shards,
    rows_above,
)
from weakspot.run.halves import evaluated_splits
from weakspot.run.phrase_questions import hypothesis_method
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings

UNSAID, RIGHT, WRONG = -1, 0, 1


class IndexKind(StrEnum):
    """How rows are found: by reading all embeddings, by reading a smaller copy first, or by an index that may miss some."""

    EXACT = "exact"
    QUANTISED = "quantised"
    APPROXIMATE = "approximate"


@dataclass(frozen=True, kw_only=True)
class NearestRequest:
    """What is looked for.

    Args:
        phrase: words; empty if an image is given.
        like: id of a sample, or a file with an image; empty if words are given.
        n_wanted: how many images to list.
        above: least similarity; None for no limit.
        class_name: only samples with this label; empty for all.
        splits: only samples of these; empty for all.
        index: how rows are found.
    """

    phrase: str = ""
    like: str = ""
    n_wanted: int = 20
    above: float | None = None
    class_name: str = ""
    splits: tuple[str, ...] = ()
    index: IndexKind = IndexKind.EXACT

    def __post_init__(self) -> None:
        if bool(self.phrase.strip()) == bool(self.like):
            raise ConfigError(
                "Say either words or, with --like, an image.",
                given=[self.phrase, self.like] if self.phrase else None,
                fix='weakspot nearest "green apples", or weakspot nearest --like photo.jpg',
            )
        if self.n_wanted < 1:
            raise ConfigError("The option --top must be at least 1.", given=self.n_wanted)
        if self.above is not None and not -1.0 <= self.above <= 1.0:
            raise ConfigError("The option --above is a similarity from -1 to 1.", given=self.above)
        unknown = [name for name in self.splits if name not in tuple(Split)]
        if unknown:
            raise ConfigError(
                "There is no such split.",
                given=unknown,
                fix=f"Choose among {[split.value for split in Split]}.",
            )


class NearImage(Record):
    """A sample near what was asked for.

    Args:
        sample_id: its id.
        score: cosine of the angle to what was asked for.
        split: what it is for.
        label: its true label; several are joined by commas, empty if unlabelled.
        location: where its image is, without secrets; None without an image.
        prediction: what the classifier said of it; None outside the discovery half.
        is_failure: whether that was a failure; None outside the discovery half.
    """

    sample_id: str
    score: float
    split: str
    label: str
    location: str | None
    prediction: str | None = None
    is_failure: bool | None = None


class NearestResult(Record):
    """The images nearest to something.

    Args:
        asked: the words, or the image.
        index: how rows were found.
        images: nearest first; among equals the sample that comes first in the data set.
        n_compared: samples that were compared: those of the class and splits, without the confirmation half.
        n_above: how many of them reach the least similarity; None if none was set or only some rows were looked at.
        n_kept_back: samples of the class and splits that are in the confirmation half, and not shown.
        failing: failures among the near samples of the discovery half: all above the least similarity, else those listed.
        failing_elsewhere: failures among its other samples.
    """

    asked: str
    index: IndexKind
    images: tuple[NearImage, ...]
    n_compared: int
    n_above: int | None
    n_kept_back: int
    failing: Share
    failing_elsewhere: Share


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestStage:
    """What is needed to look for near images.

    Args:
        prepared: the project's samples and models.
        settings: the project's settings.
        progress: told how far the making of an index is.
    """

    prepared: Prepared
    settings: Settings
    progress: Progress = no_progress

    @cached_property
    def criterion(self) -> FailureCriterion:
        return self.settings.failure.criterion()

    def run(self, request: NearestRequest) -> NearestResult:
        """Return the images nearest to a phrase or an image.

        Raises:
            DataError: if there are no embeddings, no such class or no such sample.
            UnreadableImageError: if the image cannot be read.
            ModelError: if the embedder takes no phrases, or no images.
        """
        shards = self._shards()
        query, own_row = self._query(request)
        discovery, confirmation = self._halves()
        within = self._choose(request)
        n_kept_back = int(within[confirmation].sum())
        within[confirmation] = False
        if own_row is not None:
            within[own_row] = False
        found, above = self._find(shards, query, within, request)
        predictions = self._predictions(discovery, request.class_name)
        near = np.zeros(len(within), dtype=np.bool_)
        near[found.rows if above is None else above] = True
        return NearestResult(
            asked=request.phrase.strip() or request.like,
            index=request.index,
            images=self._images(found, predictions),
            n_compared=int(within.sum()),
            n_above=None if above is None else len(above),
            n_kept_back=n_kept_back,
            failing=_share(predictions[near & within]),
            failing_elsewhere=_share(predictions[~near & within]),
        )

    @property
    def _dataset(self) -> Dataset:
        return self.prepared.samples.dataset

    def _shards(self) -> EmbeddingShards:
        spaces = self.prepared.samples.spaces
        if CLIP not in spaces:
            raise DataError(
                "The samples have no embeddings to compare with.",
                fix="Give images or embeddings, and run `weakspot embed`; or ask for values of columns: `weakspot ask`.",
            )
        return EmbeddingShards([spaces[CLIP].embeddings])

    def _query(self, request: NearestRequest) -> tuple[FloatArray, int | None]:
        """Return the embedding to look for, and its row if it is one of the samples'."""
        if request.phrase.strip():
            return self._phrase_embedding(request.phrase.strip()), None
        row = _row_of(self._dataset, request.like)
        if row is None:
            return self._image_embedding(request.like), None
        embedding = np.asarray(self.prepared.samples.space(CLIP).embeddings[row], dtype=np.float32)
        if not np.isfinite(embedding).all():
            raise DataError(
                "This sample has no embedding.",
                given=request.like,
                fix="Choose another, or run `weakspot embed` again.",
            )
        return embedding, row

    def _phrase_embedding(self, phrase: str) -> FloatArray:
        embed = self.prepared.assistants.embed_texts
        if embed is None:
            raise ModelError(
                "The embedder has no text side, so phrases cannot be compared with samples.",
                fix="weakspot lab align",
            )
        return hypothesis_method(self.settings).phrase_embeddings([phrase], embed)[phrase]

    def _image_embedding(self, place: str) -> FloatArray:
        if not Path(place).is_file():
            raise DataError(
                "There is no sample with this id, and no such file.",
                given=place,
                fix="Give a sample id, or an image file.",
            )
        embedder = self.prepared.embedder
        if embedder is None:
            raise ModelError(
                "There is no embedder to make an embedding of the image.", where="[embedder]"
            )
        image = decode_image(read_location(place), image_side=embedder.image_side).image
        embedding: FloatArray = np.asarray(
            embedder.embed_prepared([embedder.prepare(image)]), dtype=np.float32
        )[0]
        return embedding

    def _halves(self) -> tuple[IntArray, IntArray]:
        """Return the rows of the discovery half and of the confirmation half; without halves every evaluation row is kept back."""
        try:
            discovery, confirmation = self.prepared.halves(self.settings, self.criterion)[0]
        except NotEnoughDataError:
            return np.empty(0, dtype=np.int64), self._dataset.rows_of(
                *evaluated_splits(self.settings, self._dataset)
            )
        return discovery.rows, confirmation.rows

    def _choose(self, request: NearestRequest) -> BoolArray:
        """Return which rows are of the class and splits that were asked for [n]."""
        dataset = self._dataset
        within = np.ones(len(dataset), dtype=np.bool_)
        if request.splits:
            within &= np.isin(
                dataset.splits, [SPLIT_ORDER.index(Split(name)) for name in request.splits]
            )
        if request.class_name:
            code = dataset.class_code(request.class_name)
            single = dataset.task is Task.SINGLE_LABEL
            within &= dataset.labels == code if single else dataset.label_matrix[:, code]
        return within

    def _find(
        self, shards: EmbeddingShards, query: FloatArray, within: BoolArray, request: NearestRequest
    ) -> tuple[Nearest, IntArray | None]:
        """Return the nearest rows, and all rows above the least similarity if there is one and all were looked at."""
        if request.index is IndexKind.APPROXIMATE:
            index = approximate(shards, progress=self.progress)
            (found,) = index.nearest_rows(query, request.n_wanted, within=within)
            return _at_least(found, request.above), None
        if request.index is IndexKind.QUANTISED:
            shards = quantise_shards(shards, progress=self.progress)
        (found,) = nearest_rows(shards, query, request.n_wanted, within=within)
        if request.above is None:
            return found, None
        parts = rows_above(shards, query, request.above, within=within)
        above = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return _at_least(found, request.above), above

    def _predictions(self, rows: IntArray, class_name: str) -> AnyArray:
        """Return for every row of the data set whether it failed; unsaid outside the given ones."""
        found = np.full(len(self._dataset), UNSAID, dtype=np.int8)
        for problem in class_problems(self._dataset, rows, self.criterion):
            if class_name in ("", problem.title):
                found[problem.rows] = np.maximum(
                    found[problem.rows], np.where(problem.failed, WRONG, RIGHT)
                )
        return found

    def _images(self, found: Nearest, predictions: AnyArray) -> tuple[NearImage, ...]:
        dataset, rows = self._dataset, found.rows
        said = np.flatnonzero(predictions[rows] != UNSAID)
        answers = dict(zip(said.tolist(), _answers(dataset, rows[said]), strict=True))
        columns = zip(
            dataset.sample_ids(rows),
            found.scores,
            label_texts(dataset, rows),
            dataset.locations(rows),
            rows,
            strict=True,
        )
        return tuple(
            NearImage(
                sample_id=sample_id,
                score=float(score),
                split=SPLIT_ORDER[dataset.splits[row]].value,
                label=label,
                location=None if location is None else shown_location(location),
                prediction=answers.get(place),
                is_failure=bool(predictions[row] == WRONG) if place in answers else None,
            )
            for place, (sample_id, score, label, location, row) in enumerate(columns)
        )


def _row_of(dataset: Dataset, sample_id: str) -> int | None:
    place = pc.index(dataset.table.column("sample_id"), pa.scalar(sample_id, pa.string())).as_py()
    return None if place < 0 else int(place)


def _at_least(found: Nearest, above: float | None) -> Nearest:
    if above is None:
        return found
    kept = found.scores >= above
    return Nearest(rows=found.rows[kept], scores=found.scores[kept])


def _share(predictions: AnyArray) -> Share:
    return Share.of(int((predictions == WRONG).sum()), int((predictions != UNSAID).sum()))


def label_texts(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return the true label of every row as people read it; several are joined by commas, empty if unlabelled."""
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] if code >= 0 else "" for code in dataset.labels[rows]]
    return [
        ", ".join(names[code] for code in np.flatnonzero(line))
        for line in dataset.label_matrix[rows]
    ]


def _answers(dataset: Dataset, rows: IntArray) -> list[str]:
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] for code in predicted_classes(dataset, rows)]
    return [
        ", ".join(names[code] for code in np.flatnonzero(line))
        for line in predicted_labels(dataset, rows)
    ]
