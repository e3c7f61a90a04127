"""The classifier under test on pictures, batch by batch, wherever an engine has a worker."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier, ClassifierOutput, Engine
from weakspot.embed.encode import (
    Loaded,
    PictureRequest,
    UnreadablePicture,
    checked_rows,
    load_picture,
    lost_picture,
    positions_of,
    sorted_out,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifiedBatch:
    """What a classifier says of some pictures.

    Args:
        positions: their numbers [n].
        output: of those pictures; None if not one of the batch could be read.
        unreadable: pictures met on the way that have no outcome.
    """

    positions: IntArray
    output: ClassifierOutput | None
    unreadable: tuple[UnreadablePicture, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifyWork:
    """Requests to outcomes.

    Args:
        classifier: built again in every worker that is another process.
    """

    classifier: Classifier

    def prepare(self, item: PictureRequest) -> Loaded:
        """Return one picture read, decoded and prepared, or why it cannot be."""
        return load_picture(item, self.classifier.prepare, self.classifier.picture_side)

    def run(self, ready: Sequence[Loaded]) -> ClassifiedBatch:
        """Return the outcomes of those that could be read."""
        loaded, unreadable = sorted_out(ready)
        output = checked_output(self.classifier, [picture.array for picture in loaded]) if loaded else None
        return ClassifiedBatch(positions=positions_of(loaded), output=output, unreadable=unreadable)


def classify_pictures(
    requests: Iterable[PictureRequest], classifier: Classifier, *, engine: Engine, batch_size: int
) -> Iterator[ClassifiedBatch]:
    """Yield outcomes batch by batch, in the order of requests; unreadable pictures are listed, not raised.

    Raises:
        ModelError: if the classifier does not give one row of probabilities for each.
    """
    build = partial(ClassifyWork, classifier=classifier)
    yield from engine.map_batches(build, requests, batch_size=batch_size, lost=_lost_batch)


def checked_output(classifier: Classifier, prepared: Sequence[AnyArray]) -> ClassifierOutput:
    """Return what a classifier says of prepared pictures.

    Raises:
        ModelError: if it is not one row of probabilities for each.
    """
    output, n_rows, where = classifier.classify(prepared), len(prepared), classifier.classifier_id
    probabilities = checked_rows(output.probabilities, n_rows, where=where)
    if probabilities.min(initial=0.0) < 0 or probabilities.max(initial=0.0) > 1 + 1e-4:
        raise ModelError(
            "The classifier's probabilities lie outside [0, 1].",
            where=where,
            given=[float(probabilities.min()), float(probabilities.max())],
            fix="If these are logits, say so in the classifier's options.",
        )
    features = None if output.features is None else checked_rows(output.features, n_rows, where=where)
    return ClassifierOutput(probabilities=probabilities, features=features)


def _lost_batch(request: PictureRequest) -> ClassifiedBatch:
    return ClassifiedBatch(positions=positions_of([]), output=None, unreadable=(lost_picture(request),))
