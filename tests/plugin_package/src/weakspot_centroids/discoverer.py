"""Failures as the line from the mean of the right samples to the mean of the failures."""

from dataclasses import asdict, dataclass

import numpy as np

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice


@dataclass(frozen=True, kw_only=True)
class CentroidDiscoverer:
    """Finds one slice per class.

    Args:
        min_failures: classes with fewer failures, or fewer right samples, are passed over.
    """

    min_failures: int = 2

    @property
    def is_baseline(self) -> bool:
        """Return False."""
        return False

    def discover(self, samples: SampleSet, criterion: FailureCriterion, *, seed: int, assistants: Assistants = NOBODY) -> Discovery:
        """Return a slice or a note for every class; the seed has no influence."""
        del seed
        slices, notes = [], []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known = np.isfinite(samples.vectors("joint", problem.rows)).all(axis=1)
            if min((problem.failed & known).sum(), (~problem.failed & known).sum()) < self.min_failures:
                notes.append(ClassNote(class_name=problem.title, note="Too few failures or right samples."))
            else:
                slices.append(self._slice(samples, problem, known))
        return Discovery(slices=tuple(slices), notes=tuple(notes))

    def _slice(self, samples: SampleSet, problem: ClassProblem, known: np.ndarray) -> FailureSlice:
        vectors = samples.vectors("joint", problem.rows).astype(np.float64)
        failures, right = vectors[known & problem.failed].mean(axis=0), vectors[known & ~problem.failed].mean(axis=0)
        direction = (failures - right).round(6)
        rule = LinearRule(
            encoder_id=samples.space("joint").encoder_id,
            direction=tuple(direction.tolist()),
            offset=-float(direction @ (failures + right) / 2),
            normalise=False,
        )
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method="weakspot-centroids/centroids",
            parameters=asdict(self),
            found_on=DataUse(name=samples.name, n_samples=len(samples), digest=samples.digest()),
            n_found=int(rule.members(samples, problem.rows).sum()),
        )
