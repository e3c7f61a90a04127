"""Clusters of a class at every scale, made without predictions, so that all samples may say whether one fails more often."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.bounds import Bounds, Count, Fraction, PositiveFraction
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.samples import Need, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association
from weakspot.discover.family_tests import BlindCandidate

MIN_SPREAD = 1e-9
MAX_JUMP = 1.0
EQUAL_PART = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """A cluster.

    Args:
        direction: [d] along which its members lie apart from the rest of the class.
        threshold: product of embedding and direction from which on a sample is a member.
        inside: which samples are members by that rule [n].
        weight: how much it stands out as a cluster; predictions have no part in it.
    """

    direction: DoubleArray
    threshold: float
    inside: BoolArray
    weight: float


@dataclass(frozen=True, kw_only=True)
class ClustersDiscoverer(ClassDiscoverer):
    """Finds slices among the clusters of a class, from about ten samples up to half of it; predictions do not make them.

    After Ward, *Hierarchical Grouping to Optimize an Objective Function* (1963).

    Args:
        space: which embeddings are read.
        n_dimensions: principal components of the class's embeddings that the tree is built on.
        min_members: clusters with fewer samples are passed over.
        max_share: clusters with a larger share of their class are passed over.
        shrinkage: of the covariance by which a cluster's linear rule is found; 1 for the plain direction of its mean.
        same_at: of clusters whose members overlap at least so much (Jaccard), the one that stands out most is kept.
        max_clusters: clusters of a class, at most; those that stand out most.
        max_slices: slices of a class, at most.
        min_failures: classes and slices with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        max_samples: the tree is built on a random part of classes with more samples.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = ClustersDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 14)
    """

    method = "clusters"
    needs = (Need.EMBEDDINGS,)
    strongest_first = True
    is_always_blind = True
    auto_place = 1
    space: str = "clip"
    n_dimensions: Count = 16
    min_members: Annotated[int, Bounds(ge=2)] = 10
    max_share: PositiveFraction = 0.5
    shrinkage: Fraction = 0.5
    same_at: PositiveFraction = 0.8
    max_clusters: Count = 60
    max_slices: Count = 5
    min_failures: Count = 2
    min_right: Count = 2
    max_samples: Annotated[int, Bounds(ge=20)] = 1500

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return the clusters of one class with how much each stands out; what the classifier said is not asked for."""
        of = self.class_samples(samples, problem, DataUse.nothing(), seed=seed)
        return tuple(
            (
                self.slice_of(of, self._rule(of, node), n_found=int(node.inside.sum())),
                node.weight,
            )
            for node in self.nodes_of(of)
        )

    def looked_at(self, of: ClassSamples) -> Discovery:
        """Return the clusters in which failures of a class gather; those of a class with an obstacle are counted, too."""
        nodes = self.nodes_of(of)
        if of.obstacle:
            return of.noted(of.obstacle, n_considered=len(nodes))
        known = of.problem
        ranked: list[tuple[float, int, FailureSlice]] = []
        for place, node in enumerate(nodes):
            rule = self._rule(of, node)
            inside = rule.members(of.samples, known.rows)
            strength = association(known.failed, inside)
            if known.failed[inside].sum() >= self.min_failures and strength > 0:
                slice_ = self.slice_of(of, rule, strength=strength, n_found=int(inside.sum()))
                ranked.append((-round(strength, 9), place, slice_))
        if not ranked:
            nothing = f"None of {len(nodes)} clusters fails more often than the rest."
            return of.noted(nothing, n_considered=len(nodes))
        ranked.sort(key=lambda entry: entry[:2])
        slices = tuple(slice_ for _, _, slice_ in ranked[: self.max_slices])
        return Discovery(slices=slices, n_considered=len(nodes))

    def nodes_of(self, of: ClassSamples) -> list[Node]:
        raw = of.embeddings
        if len(raw) > self.max_samples:
            raw = raw[np.sort(self.random(of).permutation(len(raw))[: self.max_samples])]
        return self.nodes(unit_rows(raw))

    def nodes(self, embeddings: FloatArray) -> list[Node]:
        """Return the clusters of unit vectors [n, d], those that stand out most first: Ward's tree over principal components."""
        values = np.asarray(embeddings, dtype=np.float64)
        if len(values) < 2 * self.min_members:
            return []
        centred = values - values.mean(axis=0)
        if np.square(centred).sum() / len(centred) <= MIN_SPREAD:
            return []
        covariance = centred.T @ centred / len(centred)
        clusters, jumps = self._clusters(centred, covariance)
        if not len(clusters):
            return []
        directions = self._directions(centred, covariance, clusters)
        scores = centred @ directions.T
        offsets = directions @ values.mean(axis=0)
        weights = np.minimum(jumps, MAX_JUMP) ** 2
        kept: list[Node] = []
        for place in np.lexsort((np.arange(len(jumps)), -weights)):
            cut, inside = _best_cut(scores[:, place], clusters[place])
            n_inside = int(inside.sum())
            if self.min_members <= n_inside <= len(values) - self.min_members and self._is_new(
                inside, kept
            ):
                kept.append(
                    Node(
                        direction=directions[place],
                        threshold=cut + float(offsets[place]),
                        inside=inside,
                        weight=float(weights[place]),
                    )
                )
            if len(kept) == self.max_clusters:
                break
        # A part of the weight is equal for all, so that none goes without.
        mean = float(np.mean([node.weight for node in kept])) or 1.0 if kept else 1.0
        return [
            replace(node, weight=EQUAL_PART + (1.0 - EQUAL_PART) * node.weight / mean)
            for node in kept
        ]

    def _clusters(
        self, centred: DoubleArray, covariance: DoubleArray
    ) -> tuple[BoolArray, DoubleArray]:
        """Return members [m, n] of the nodes of allowed size, and by how much the node above each is wider."""
        from scipy.cluster.hierarchy import linkage

        _, axes = np.linalg.eigh(covariance)
        reduced = centred @ axes[:, ::-1][:, : self.n_dimensions]
        steps = linkage(reduced, "ward")
        n_samples = len(centred)
        heights = np.concatenate([np.zeros(n_samples), steps[:, 2]])
        above = np.zeros(2 * n_samples - 1, dtype=np.int64)
        below: list[IntArray] = [np.array([place]) for place in range(n_samples)]
        for number, (first, second) in enumerate(steps[:, :2].astype(np.int64)):
            above[[first, second]] = n_samples + number
            below.append(np.concatenate([below[first], below[second]]))
        most = self.max_share * n_samples
        chosen = [
            number
            for number in range(n_samples, 2 * n_samples - 2)
            if self.min_members <= len(below[number]) <= most
        ]
        members = np.zeros((len(chosen), n_samples), dtype=np.bool_)
        for place, number in enumerate(chosen):
            members[place, below[number]] = True
        own = np.maximum(heights[chosen], MIN_SPREAD)
        return members, heights[above[chosen]] / own - 1.0

    def _directions(
        self, centred: DoubleArray, covariance: DoubleArray, clusters: BoolArray
    ) -> DoubleArray:
        """Return unit vectors [m, d] that tell the members of each cluster from the rest (Fisher's discriminant, shrunken)."""
        counts = clusters.sum(axis=1, keepdims=True)
        # All samples have the mean zero: the mean of the rest lies opposite, so the cluster's own is enough.
        means = clusters.astype(np.float64) @ centred / counts
        diagonal = np.trace(covariance) / len(covariance)
        mixed = (1.0 - self.shrinkage) * covariance
        mixed[np.diag_indices_from(mixed)] += self.shrinkage * diagonal
        found = np.linalg.solve(mixed, means.T).T
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))

    def _is_new(self, inside: BoolArray, kept: list[Node]) -> bool:
        for node in kept:
            common = int(np.count_nonzero(inside & node.inside))
            either = int(np.count_nonzero(inside | node.inside))
            if common >= self.same_at * either:
                return False
        return True

    def _rule(self, of: ClassSamples, node: Node) -> LinearRule:
        return LinearRule(
            space=self.space,
            encoder_id=of.encoder_id,
            direction=tuple(node.direction.tolist()),
            threshold=node.threshold,
        )


def _best_cut(scores: DoubleArray, members: BoolArray) -> tuple[float, BoolArray]:
    """Return the score from which on samples are most nearly these members (Jaccard), and which those are."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(members[order])
    overlaps = hits / (members.sum() + np.arange(1, len(scores) + 1) - hits)
    ends = np.flatnonzero(ranked[:-1] > ranked[1:])
    if not len(ends):
        return float(ranked[-1]), np.ones(len(scores), dtype=np.bool_)
    best = int(ends[np.argmax(np.round(overlaps[ends], 9))])
    cut = float((ranked[best] + ranked[best + 1]) / 2)
    return cut, scores >= cut
