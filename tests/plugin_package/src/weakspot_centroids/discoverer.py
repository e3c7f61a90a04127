"""Failures as what lies nearer to their own mean than to the mean of the other samples."""

from dataclasses import asdict, dataclass

from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Count, check_bounds
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet, obstacle, with_embeddings
from weakspot.core.slices import DataUse, FailureSlice
from weakspot_centroids.rule import NearerRule


@dataclass(frozen=True, kw_only=True)
class CentroidDiscoverer:
    """Finds the samples of a class that lie nearer to the mean of its failures than to the mean of the others.

    Args:
        min_failures: classes with fewer failures, or fewer other samples, get a note.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = CentroidDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name
    'disc'
    """

    min_failures: Count = 2

    def __post_init__(self) -> None:
        """Refuse parameters that are out of bounds."""
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        """Whether it is only there for comparison."""
        return False

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return a slice or a note for every class; neither the seed nor assistants have an influence."""
        del seed, assistants
        slices, notes = [], []
        found_on = DataUse.of(samples)
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known, embeddings = with_embeddings(samples, problem, "clip")
            note = obstacle(known, min_failures=self.min_failures, min_right=self.min_failures)
            if note:
                notes.append(ClassNote(class_name=problem.title, note=note))
                continue
            rule = NearerRule(
                encoder_id=samples.space("clip").encoder_id,
                failures=PackedArray.of(embeddings[known.failed].mean(axis=0)),
                others=PackedArray.of(embeddings[~known.failed].mean(axis=0)),
            )
            slice_ = FailureSlice(
                class_name=problem.class_name,
                side=problem.side,
                rule=rule,
                method="weakspot-centroids/centroids",
                parameters=asdict(self),
                found_on=found_on,
                n_found=int(rule.members(samples, problem.rows).sum()),
            )
            slices.append(slice_)
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=len(slices))
