"""A problem whose truth is known."""

from dataclasses import dataclass, field, replace
from typing import Literal

from weakspot.core.arrays import BoolArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.run.attributes import told_from_words, with_attribute_columns
from weakspot.run.settings import Settings
from weakspot.words.attribute_columns import AssignedColumn, with_free_names

ProblemKind = Literal["rare", "correlation", "noisy-label", "several", "null"]


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownSlice:
    """A slice on which the classifier fails, known because it was put there.

    Args:
        class_name: the true class.
        inside: which rows of the data set are members [n].
        words: right words for it; any of them in a name makes the name right.
        same_attribute: words about the same attribute with other values; a name with one of them is half right.
        side: for multi-label tasks.
    """

    class_name: str
    inside: BoolArray
    words: tuple[str, ...] = ()
    same_attribute: tuple[str, ...] = ()
    side: Side | None = None

    def is_about(self, found: FailureSlice) -> bool:
        return found.class_name == self.class_name and found.side == self.side


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchProblem:
    """Samples, a classifier's predictions on them, and where it is known to fail.

    Args:
        source: where the images or features come from, for example `planted`.
        kind: what was planted.
        number: number of the world.
        samples: all samples with predictions and embeddings.
        discovery: the samples that methods may look at.
        confirmation: the samples that slices are proven on.
        truths: what must be found; empty for the null.
        fresh: further samples, seen by no step, on which it shows whether a confirmed slice is true; None if there are none.
        assistants: whom methods may ask.
        criterion: what counts as a failure.
    """

    source: str
    kind: ProblemKind
    number: int
    samples: SampleSet
    discovery: SampleSet
    confirmation: SampleSet
    truths: tuple[KnownSlice, ...]
    fresh: SampleSet | None = None
    assistants: Assistants = NO_ASSISTANTS
    criterion: FailureCriterion = field(default_factory=FailureCriterion)

    @property
    def title(self) -> str:
        return f"{self.source}, {self.kind}, {self.number}"


def with_attributes(problem: BenchProblem, settings: Settings) -> BenchProblem:
    """Return the problem with the built-in attributes as metadata columns; the same problem without a text side."""
    samples = problem.samples
    found = told_from_words(samples, problem.assistants, settings, notes=[])
    named = with_free_names(
        [one for one in found if isinstance(one, AssignedColumn)], samples.dataset.metadata_names
    )
    columns = {one.attribute.column: one.column for one in named if one.column is not None}
    dataset = with_attribute_columns(samples.dataset, columns, list(columns), told=list(columns))
    return replace(
        problem,
        samples=replace(samples, dataset=dataset),
        discovery=replace(problem.discovery, dataset=dataset),
        confirmation=replace(problem.confirmation, dataset=dataset),
        fresh=None if problem.fresh is None else replace(problem.fresh, dataset=dataset),
    )
