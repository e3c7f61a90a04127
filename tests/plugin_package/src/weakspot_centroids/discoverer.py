"""Failures as what lies nearer to their own mean than to the mean of the other samples."""

from dataclasses import dataclass

from weakspot.core.bounds import Count
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.samples import Need
from weakspot_centroids.rule import NearerRule


@dataclass(frozen=True, kw_only=True)
class CentroidDiscoverer(ClassDiscoverer):
    """Finds the samples of a class that lie nearer to the mean of its failures than to the mean of the others.

    Args:
        space: which embeddings are read.
        min_failures: classes with fewer failures get a note.
        min_right: classes with fewer other samples get a note.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = CentroidDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name
    'disc'
    """

    method = "weakspot-centroids/centroids"
    needs = (Need.EMBEDDINGS,)
    space: str = "clip"
    min_failures: Count = 2
    min_right: Count = 2

    def slices_of(self, of: ClassSamples) -> Discovery:
        """Return one slice; classes with an obstacle do not come here."""
        failed = of.problem.failed
        rule = NearerRule(
            space=self.space,
            encoder_id=of.encoder_id,
            failures=PackedArray.of(of.embeddings[failed].mean(axis=0)),
            others=PackedArray.of(of.embeddings[~failed].mean(axis=0)),
        )
        return Discovery(slices=(self.slice_of(of, rule),), n_considered=1)
