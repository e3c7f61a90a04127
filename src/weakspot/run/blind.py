"""Rules that are made without predictions: listed class by class, and tested on all evaluation samples at once."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, unjudged_classes
from weakspot.core.roles import Verifier
from weakspot.core.run import MethodRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import adjusted_p_values
from weakspot.discover.family_tests import BlindCandidate, BlindDiscoverer
from weakspot.run.class_findings import with_predictions
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_discoverers
from weakspot.verify.blind import BlindTest, judge_blind

BLIND_PART = 0.8
"""Part of the error rate for rules made without predictions; the two folds share the rest. Measured in docs/decisions/020-auto.md."""
MAX_TOLD = 200
READS_PREDICTIONS = "features"
DATA_SEED = 0
"""A new seed must not buy a new chance: which rules there are follows from the data."""


Counts = tuple[Counter[str], Counter[str], dict[str, str]]
_FOUND: WeakKeyDictionary[SampleSet, tuple[str, tuple[BlindTest, ...], Counts]] = (
    WeakKeyDictionary()
)
"""What was asked of samples, what was found, and what every method did: a run that finds and verifies has the same samples in hand
both times. Forgotten with them."""


def blind_discoverers(settings: Settings) -> dict[str, BlindDiscoverer]:
    """Return the configured methods that list rules without predictions; none without cross-fitting, which tests on all samples."""
    if settings.verify.scheme != "cross-fit":
        return {}
    return {
        name: part
        for name, part in build_discoverers(settings).items()
        if isinstance(part, BlindDiscoverer)
    }


def parts_of_error_rate(settings: Settings, n_pairs: int) -> tuple[float, ...]:
    """Return the part of the error rate that each pair of halves may use: both folds, and rules made without predictions."""
    if n_pairs == 1:
        return (1.0,)
    if not blind_discoverers(settings):
        return 0.5, 0.5, 1.0
    return (1.0 - BLIND_PART) / 2, (1.0 - BLIND_PART) / 2, BLIND_PART


class BlindSearch:
    """Lists and tests rules; what every method did is told afterwards.

    Args:
        samples: all evaluation samples.
        settings: which methods, and how many rules are told.
        criterion: what counts as a failure.
    """

    def __init__(self, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> None:
        self._samples, self._settings, self._criterion = samples, settings, criterion
        self._parts: Mapping[str, BlindDiscoverer] = blind_discoverers(settings)
        self._considered: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._notes: dict[str, str] = {}

    def run(self) -> tuple[BlindTest, ...]:
        """Return the rules that stand out most; asked again for the same samples, what was found before."""
        if not self._parts or not len(self._samples):
            return ()
        asked = f"{self._settings.model_dump_json()} {self._criterion!r}"
        known = _FOUND.get(self._samples)
        if known is None or known[0] != asked:
            tests, counts = self._run(), (self._considered, self._seconds, self._notes)
            known = _FOUND[self._samples] = asked, tests, counts
        _, tests, (self._considered, self._seconds, self._notes) = known
        return tests

    def _run(self) -> tuple[BlindTest, ...]:
        return judge_blind(
            self._classes(),
            self._samples,
            largest_p=self._settings.discover.screen_p,
            most=min(MAX_TOLD, self._settings.discover.max_tested),
            training=self._training(),
        )

    def _training(self) -> tuple[ClassProblem, ...]:
        """Return the classes among training samples that share no group, and so no image, with any sample that is tested."""
        dataset = self._samples.dataset
        rows = with_predictions(dataset, dataset.rows_of(Split.TRAIN))
        rows = rows[~np.isin(dataset.groups[rows], dataset.groups[self._samples.rows])]
        return class_problems(dataset, rows, self._criterion) if len(rows) else ()

    def recorded(self, told: Sequence[FailureSlice]) -> list[MethodRecord]:
        """Return what the run remembers of the methods that only work so."""
        return [
            MethodRecord(
                method=name,
                seconds=round(self._seconds[name] / 1000, 3),
                n_considered=self._considered[name],
                n_found=sum(found.method == name for found in told),
                n_tested=sum(found.method == name for found in told),
                note=self._notes.get(name, ""),
            )
            for name, part in self._parts.items()
            if part.is_always_blind
        ]

    def _classes(self) -> Iterator[tuple[ClassProblem, list[BlindCandidate]]]:
        blind = _without_predictions(self._samples)
        judged = {
            (problem.class_name, problem.side): problem
            for problem in class_problems(
                self._samples.dataset, self._samples.rows, self._criterion
            )
        }
        for unjudged in unjudged_classes(blind.dataset, blind.rows):
            problem = judged.get((unjudged.class_name, unjudged.side))
            if problem is not None and problem.n_failed and problem.n_right:
                yield problem, self._candidates(blind, unjudged)

    def _candidates(self, blind: SampleSet, problem: ClassProblem) -> list[BlindCandidate]:
        found: list[BlindCandidate] = []
        for name, part in self._parts.items():
            if name in self._notes:
                continue
            begun = time.perf_counter()
            try:
                listed = part.blind_candidates(blind, problem, seed=DATA_SEED)
            except (DataError, ModelError, NotEnoughDataError) as error:
                self._notes[name] = str(error)
                continue
            self._seconds[name] += round(1000 * (time.perf_counter() - begun))
            self._considered[name] += len(listed)
            found += listed
        return found


def _without_predictions(samples: SampleSet) -> SampleSet:
    """Return samples that nothing can be learnt from of what the classifier said; its last layer would tell, too."""
    dataset = replace(
        samples.dataset,
        predictions=None,
        predicted_matrix=None,
        probabilities=None,
        thresholds=None,
    )
    spaces = {name: one for name, one in samples.spaces.items() if name != READS_PREDICTIONS}
    return replace(samples, dataset=dataset, spaces=spaces)


def judge_blind_slices(
    slices: Sequence[FailureSlice],
    measured: Sequence[Evidence],
    tests: Sequence[BlindTest],
    verifier: Verifier,
) -> tuple[Evidence, ...]:
    """Return evidence whose p-values and verdicts allow for every rule that was listed.

    Args:
        slices: made without predictions.
        measured: what the verifier says of each by itself.
        tests: of all rules that are told now.
        verifier: whose error rate and correction hold.
    """
    known = {test.found.slice_id: test for test in tests}
    weights = [test.weight for test in tests]
    adjusted = adjusted_p_values(
        [test.p_value for test in tests],
        correction=getattr(verifier, "correction", "fdr"),
        weights=weights,
    )
    q_values = dict(zip(known, adjusted.tolist(), strict=True))
    mean = sum(weights) / max(len(weights), 1)
    return tuple(
        _judge(entry, known.get(_id_of_rule(found)), q_values, mean, verifier)
        for found, entry in zip(slices, measured, strict=True)
    )


def _id_of_rule(found: FailureSlice) -> str:
    """Return the id of a slice whatever else found the same rule."""
    return found.model_copy(update={"fold": 0}).slice_id


def _judge(
    entry: Evidence,
    test: BlindTest | None,
    q_values: Mapping[str, float],
    mean_weight: float,
    verifier: Verifier,
) -> Evidence:
    if entry.verdict not in (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED):
        return entry
    p_value = 1.0 if test is None else test.p_value
    q_value = 1.0 if test is None else q_values[test.found.slice_id]
    is_wide = entry.gap > 0 and entry.gap >= getattr(verifier, "min_gap", 0.0)
    is_found = q_value <= getattr(verifier, "alpha", 0.0) and is_wide
    return entry.model_copy(
        update={
            "p_value": p_value,
            "q_value": q_value,
            "weight": 1.0 if test is None else test.weight / mean_weight,
            # Both may be too small for a number.
            "n_compared": 1.0 if test is None else max(1.0, test.p_value / max(test.own_p, 1e-300)),
            "n_tested": max(len(q_values), 1),
            "verdict": Verdict.CONFIRMED if is_found else Verdict.NOT_CONFIRMED,
        }
    )
