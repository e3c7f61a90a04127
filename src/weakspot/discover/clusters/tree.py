"""The clusters of one class at every scale: nodes of a tree, each with a linear rule for unseen samples."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray

LEAST_SPREAD = 1e-9
LARGEST_JUMP = 1.0
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
class ClusterTree:
    """Ward's tree over the principal components of embeddings; `ClustersDiscoverer` says what the fields mean."""

    n_dimensions: int
    shrinkage: float
    max_share: float
    max_nodes: int
    same_at: float

    def nodes(self, embeddings: FloatArray, *, min_members: int) -> list[Node]:
        """Return the clusters of unit vectors [n, d] with enough members, those that stand out most first.

        Args:
            embeddings: of the samples of one class.
            min_members: least number of members.
        """
        values = np.asarray(embeddings, dtype=np.float64)
        if len(values) < 2 * min_members:
            return []
        centred = values - values.mean(axis=0)
        if np.square(centred).sum() / len(centred) <= LEAST_SPREAD:
            return []
        covariance = centred.T @ centred / len(centred)
        clusters, jumps = self._clusters(centred, covariance, min_members)
        if not len(clusters):
            return []
        directions = self._directions(centred, covariance, clusters)
        scores = centred @ directions.T
        offsets = directions @ values.mean(axis=0)
        weights = np.minimum(jumps, LARGEST_JUMP) ** 2
        kept: list[Node] = []
        for place in np.lexsort((np.arange(len(jumps)), -weights)):
            cut, inside = _best_cut(scores[:, place], clusters[place])
            n_inside = int(inside.sum())
            if min_members <= n_inside <= len(values) - min_members and self._is_new(inside, kept):
                kept.append(
                    Node(
                        direction=directions[place],
                        threshold=cut + float(offsets[place]),
                        inside=inside,
                        weight=float(weights[place]),
                    )
                )
            if len(kept) == self.max_nodes:
                break
        return _shared(kept)

    def _clusters(
        self, centred: DoubleArray, covariance: DoubleArray, min_members: int
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
            if min_members <= len(below[number]) <= most
        ]
        members = np.zeros((len(chosen), n_samples), dtype=np.bool_)
        for place, number in enumerate(chosen):
            members[place, below[number]] = True
        own = np.maximum(heights[chosen], LEAST_SPREAD)
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


def _shared(nodes: list[Node]) -> list[Node]:
    """Return nodes whose weights have mean one; a part is equal for all, so that none goes without."""
    if not nodes:
        return []
    raw = np.array([node.weight for node in nodes])
    mean = float(raw.mean()) or 1.0
    return [
        Node(
            direction=node.direction,
            threshold=node.threshold,
            inside=node.inside,
            weight=EQUAL_PART + (1.0 - EQUAL_PART) * node.weight / mean,
        )
        for node in nodes
    ]
