"""The samples of a slice's class on the half that people may look at: inside, outside, deepest, and against expectation."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.evidence import sides_of
from weakspot.core.failures import ClassProblem, class_problems
from weakspot.core.group_tests import effective_number
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.web.services.samples.facts import answers_of
from weakspot.web.services.view import FLOAT32, UINT8, SamplePage, View, pack
from weakspot.web.services.workspace import Workspace

MOST_KEPT = 24
MOST_EXTREME = 60


class Shown(StrEnum):
    """Which samples are asked for.

    `extremes` are the deepest inside, then the farthest outside; `counter` are members that do not fail, then failures outside.
    """

    MEMBERS = "members"
    EXTREMES = "extremes"
    COUNTER = "counter"
    OUTSIDE = "outside"


class SliceSamplePage(SamplePage):
    """Some samples of a slice's class, as columns.

    Args:
        half: which half the samples are of.
        n_first: how many of them belong to the first part (deepest inside; members that do not fail).
        rows: row numbers.
        label: the class that all of them have.
        answers: what the classifier answered.
        failed: whether that was a failure.
        inside: whether they are members.
        scores: how deep inside they lie, in the measure of the rule.
    """

    half: str
    n_first: int
    rows: list[int]
    label: str
    answers: list[str]
    failed: list[bool]
    inside: list[bool]
    scores: list[float]


class SliceScores(View):
    """How deep all samples of the class lie in a slice, deepest first: enough to move the threshold without the server.

    Args:
        n_samples: how many.
        scores: little-endian 32-bit floating-point numbers, base64.
        failed: one byte per sample, 1 for failures, base64.
        threshold: where membership begins now.
    """

    n_samples: int
    scores: str
    failed: str
    threshold: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LookedAt:
    """The samples of a slice's class whose membership is known, deepest inside first.

    Args:
        samples: the half that the slice was found on, with all columns that its rule reads.
        problem: samples of the class.
        inside: which of them are members.
        scores: how deep they lie.
    """

    samples: SampleSet
    problem: ClassProblem
    inside: BoolArray
    scores: DoubleArray

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return failures and samples inside, failures and samples outside."""
        failed, inside = self.problem.failed, self.inside
        return (
            int(failed[inside].sum()),
            int(inside.sum()),
            int(failed[~inside].sum()),
            int((~inside).sum()),
        )

    @property
    def effective(self) -> tuple[float, float]:
        """Return how many independent samples those inside and outside are worth."""
        groups = self.problem.groups
        return effective_number(groups, self.inside), effective_number(groups, ~self.inside)

    def places(self, kind: Shown) -> tuple[IntArray, int]:
        """Return the places of a kind of sample, best first, and how many of them belong to its first part."""
        inside, outside = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        failed = self.problem.failed
        parts = {
            Shown.MEMBERS: (inside, inside[:0]),
            Shown.EXTREMES: (inside[:MOST_EXTREME], outside[::-1][:MOST_EXTREME]),
            Shown.COUNTER: (inside[~failed[inside]], outside[failed[outside]]),
            Shown.OUTSIDE: (outside, outside[:0]),
        }
        first, second = parts[kind]
        return np.concatenate([first, second]), len(first)


def look_at(workspace: Workspace, record: RunRecord, found: FailureSlice) -> LookedAt:
    """Return the samples of a slice's class on the half it was found on; kept for the slices that were looked at last."""
    whole = workspace.samples_for(record)
    kept = workspace.once("slices looked at", dict[str, LookedAt])
    known = kept.get(found.slice_id)
    if known is not None and known.samples.dataset is whole.dataset:
        return known
    half = half_of(workspace, found)
    made = _look_at(workspace, whole.only(half.rows, name=half.name), found)
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[found.slice_id] = made
    return made


def half_of(workspace: Workspace, found: FailureSlice) -> SampleSet:
    """Return the half that a slice was found on: of cross-fitted runs either of the two.

    One that was made without predictions was found on nothing, and is shown on the discovery half, the one that people may look at.

    Raises:
        DataError: if the slice was found on other samples than the project holds now.
    """
    use = found.found_on.digest
    if use in (workspace.discovery_use.digest, DataUse.nothing().digest):
        return workspace.discovery
    if (
        use == workspace.confirmation_digest
        and workspace.project.settings.verify.scheme == "cross-fit"
    ):
        return workspace.confirmation
    earlier = workspace.once(f"half {use}", lambda: _earlier_half(workspace, found))
    if isinstance(earlier, SampleSet):
        return earlier
    raise DataError(
        "This slice was found on other samples than the project holds now.",
        fix="Start a new run on the overview.",
    )


def _earlier_half(workspace: Workspace, found: FailureSlice) -> SampleSet | None:
    """Return the half that an earlier version gave to a run, None if it cannot be made again."""
    pairs = workspace.prepared.halves(
        workspace.project.settings, workspace.criterion, slices=[found]
    )
    halves = (discovery for discovery, _ in pairs)
    return next((half for half in halves if half.digest() == found.found_on.digest), None)


def _look_at(workspace: Workspace, samples: SampleSet, found: FailureSlice) -> LookedAt:
    problems = class_problems(samples.dataset, samples.rows, workspace.criterion)
    sides = sides_of(found, samples, problems)
    if sides.problem is None:
        raise DataError("There are no samples of this class to look at.", given=found.class_name)
    scores = found.rule.scores(samples, sides.problem.rows)
    # A row may satisfy one of several rules without having what another reads, so that only its score is unknown.
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    known = np.flatnonzero(sides.inside | sides.outside)
    order = known[np.lexsort((-scores[known], ~sides.inside[known]))]
    return LookedAt(
        samples=samples,
        problem=sides.problem.only(order),
        inside=sides.inside[order],
        scores=scores[order],
    )


def sample_page(
    workspace: Workspace,
    record: RunRecord,
    found: FailureSlice,
    kind: Shown,
    *,
    offset: int,
    limit: int,
) -> SliceSamplePage:
    seen = look_at(workspace, record, found)
    places, n_first = seen.places(kind)
    chosen = places[offset : offset + limit]
    rows, failed = seen.problem.rows[chosen], seen.problem.failed[chosen]
    return SliceSamplePage(
        tables=workspace.tables_key,
        half=seen.samples.name,
        total=len(places),
        n_first=n_first,
        offset=offset,
        rows=rows.tolist(),
        label=seen.problem.title,
        answers=answers_of(seen.samples.dataset, rows, failed),
        failed=failed.tolist(),
        inside=seen.inside[chosen].tolist(),
        scores=[float(score) for score in np.maximum(seen.scores[chosen], -1e30)],
    )


def slice_scores(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SliceScores:
    """Return the scores of all samples of the class.

    Raises:
        DataError: if the rule of the slice has no threshold.
    """
    threshold = threshold_of(found)
    if threshold is None:
        raise DataError(
            "Whether a sample belongs to this slice does not depend on a threshold.",
            given=found.rule.kind,
        )
    seen = look_at(workspace, record, found)
    return SliceScores(
        n_samples=len(seen.scores),
        scores=pack(seen.scores, FLOAT32),
        failed=pack(seen.problem.failed, UINT8),
        threshold=threshold,
    )


def threshold_of(found: FailureSlice) -> float | None:
    """Return where membership of a slice begins, None if its rule has no single threshold."""
    value = getattr(found.rule, "threshold", None)
    return float(value) if value is not None else None
