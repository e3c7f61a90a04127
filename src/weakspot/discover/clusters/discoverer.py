"""Clusters of a class at every scale, made without predictions, so that all samples may say whether one of them fails more often.

Ward's tree after Ward, *Hierarchical Grouping to Optimize an Objective Function* (1963). `docs/decisions/020-auto.md` says why
clusters that know nothing of failures find more than slices that are fitted to them.
"""

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.blind import BlindCandidate
from weakspot.core.bounds import Bounds, Count, Fraction, PositiveFraction, check_bounds
from weakspot.core.class_embeddings import obstacle, with_embeddings
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association
from weakspot.discover.clusters.tree import ClusterTree, Node

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
        assistants: Assistants = NOBODY,
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
