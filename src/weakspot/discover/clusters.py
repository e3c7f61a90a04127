"""Clusters of a class at every scale, made without predictions, so that all samples may say whether one fails more often."""

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, Fraction, PositiveFraction, check_bounds
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, with_embeddings
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
        if np.square(centred).sum() / len(centred) <= MIN_SPREAD:
            return []
        covariance = centred.T @ centred / len(centred)
        clusters, jumps = self._clusters(centred, covariance, min_members)
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


METHOD = "clusters"


@dataclass(frozen=True, kw_only=True)
class ClustersDiscoverer:
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

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.EMBEDDINGS,)

    @property
    def is_always_blind(self) -> bool:
        return True

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return the clusters of one class with how much each stands out; what the classifier said is not asked for."""
        _, nodes = self._nodes(samples, problem, seed)
        return tuple(
            BlindCandidate(
                found=self._slice(samples, problem, node, DataUse.nothing()), weight=node.weight
            )
            for node in nodes
        )

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the clusters in which failures of a class gather, and a note for every class without any."""
        del assistants
        found_on = DataUse.of(samples)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        n_considered = 0
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known, nodes = self._nodes(samples, problem, seed)
            n_without = len(problem.rows) - len(known.rows)
            note = obstacle(
                known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without
            )
            found = [] if note else self._failing(samples, known, nodes, found_on)
            n_considered += len(nodes)
            slices += found
            if not found:
                nothing = f"None of {len(nodes)} clusters fails more often than the rest."
                notes.append(ClassNote(class_name=problem.title, note=note or nothing))
        slices.sort(key=lambda item: -round(item.strength or 0.0, 9))
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _nodes(
        self, samples: SampleSet, problem: ClassProblem, seed: int
    ) -> tuple[ClassProblem, list[Node]]:
        known, raw = with_embeddings(samples, problem, self.space)
        tree = ClusterTree(
            n_dimensions=self.n_dimensions,
            shrinkage=self.shrinkage,
            max_share=self.max_share,
            max_nodes=self.max_clusters,
            same_at=self.same_at,
        )
        if len(raw) > self.max_samples:
            draws = generator(seed, METHOD, problem.title)
            raw = raw[np.sort(draws.permutation(len(raw))[: self.max_samples])]
        return known, tree.nodes(unit_rows(raw), min_members=self.min_members)

    def _failing(
        self, samples: SampleSet, known: ClassProblem, nodes: list[Node], found_on: DataUse
    ) -> list[FailureSlice]:
        ranked: list[tuple[float, int, FailureSlice]] = []
        for place, node in enumerate(nodes):
            found = self._slice(samples, known, node, found_on)
            inside = found.rule.members(samples, known.rows)
            strength = association(known.failed, inside)
            if known.failed[inside].sum() >= self.min_failures and strength > 0:
                update = {"strength": strength, "n_found": int(inside.sum())}
                ranked.append((-round(strength, 9), place, found.model_copy(update=update)))
        ranked.sort(key=lambda entry: entry[:2])
        return [found for _, _, found in ranked[: self.max_slices]]

    def _slice(
        self, samples: SampleSet, problem: ClassProblem, node: Node, found_on: DataUse
    ) -> FailureSlice:
        rule = LinearRule(
            space=self.space,
            encoder_id=samples.space(self.space).encoder_id,
            direction=tuple(node.direction.tolist()),
            threshold=node.threshold,
        )
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters=asdict(self),
            found_on=found_on,
            n_found=int(node.inside.sum()),
        )
