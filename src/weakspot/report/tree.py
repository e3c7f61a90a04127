"""The tree of confirmed slices as rows, in the order that the reader chose; the first ten are enough to begin with."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weakspot.core.bounds import SliceOrder
from weakspot.core.evidence import ClassTree, Evidence, NodeKind, SliceNode
from weakspot.core.rules import single_rules
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.report.wording import count, percent
from weakspot.store.csv_tables import csv_text

MAX_FIRST = 10
BY_SIDE = ", "


@dataclass(frozen=True, kw_only=True)
class TreeRow:
    """A confirmed slice in its place.

    Args:
        slice_: the slice.
        evidence: what was measured.
        node: its place.
        depth: 0 for findings, 1 for what is inside or explained by them, and so on.
        parent: the row above, None for the topmost ones.
        n_explained: slices that it explains.
    """

    slice_: FailureSlice
    evidence: Evidence
    node: SliceNode
    depth: int = 0
    parent: "TreeRow | None" = None
    n_explained: int = 0

    @property
    def slice_id(self) -> str:
        return self.slice_.slice_id

    @property
    def is_explained(self) -> bool:
        return self.node.kind is NodeKind.EXPLAINED

    @property
    def words(self) -> str:
        """Return what is said of it beside the row above: only what it adds to the parent's values."""
        name = self.slice_.name
        words = self.slice_.title if name is None else name.contrast
        if self.parent is None or name is None:
            return words
        parts, rules = words.split(BY_SIDE), single_rules(self.slice_.rule)
        around = single_rules(self.parent.slice_.rule)
        added = [part for part, rule in zip(parts, rules, strict=False) if rule not in around]
        is_part = len(parts) == len(rules) and all(rule in rules for rule in around)
        return BY_SIDE.join(added) if is_part and added else words

    @property
    def sentence(self) -> str:
        """Return the row in words, for example `82 % of 63 wrong where at night`."""
        entry, name = self.evidence, self.slice_.name
        said = f" ({name.said_of})" if name is not None and name.said_of else ""
        start = f"{percent(entry.rate_inside)} of {entry.n_inside:,} wrong where {self.words}{said}"
        if self.node.kind is NodeKind.EXPLAINED:
            return f"{start} (explained by the above)"
        if self.node.kind is NodeKind.WORSE and self.node.n_others:
            others = percent(self.node.others_failed / self.node.n_others)
            return f"{start} (against {others} of the other {self.node.n_others:,} of these)"
        return f"{start} (against {percent(entry.rate_outside)} of the rest)"


def tree_rows(record: RunRecord, order: SliceOrder | str = SliceOrder.BOTH) -> tuple[TreeRow, ...]:
    """Return every confirmed slice that nobody dismissed, once: findings in the given order, each followed by what belongs to it.

    Slices of a run without a tree are findings, or explained as they say themselves.
    """
    published = {found.slice_id: (found, entry) for found, entry in record.published()}
    nodes = _nodes(record, published)
    children: dict[str | None, list[str]] = defaultdict(list)
    for slice_id, node in nodes.items():
        children[node.parent if node.parent in nodes else None].append(slice_id)
    rows: list[TreeRow] = []

    def add(slice_id: str, parent: TreeRow | None) -> None:
        found, entry = published[slice_id]
        below = children[slice_id]
        row = TreeRow(
            slice_=found,
            evidence=entry,
            node=nodes[slice_id],
            depth=0 if parent is None else parent.depth + 1,
            parent=parent,
            n_explained=sum(nodes[one].kind is NodeKind.EXPLAINED for one in below),
        )
        rows.append(row)
        for one in _order(below, nodes, published, order):
            add(one, row)

    for slice_id in _order(children[None], nodes, published, order):
        add(slice_id, None)
    return tuple(rows)


def _nodes(
    record: RunRecord, published: dict[str, tuple[FailureSlice, Evidence]]
) -> dict[str, SliceNode]:
    known = {node.slice_id: node for tree in record.trees for node in tree.nodes}
    facts = record.classifier
    found: dict[str, SliceNode] = {}
    for slice_id, (_, entry) in published.items():
        node = known.get(slice_id) or _flat_node(entry, 0 if facts is None else facts.n_failed)
        is_loose = node.parent is not None and node.parent not in published
        loose = {"kind": NodeKind.FINDING, "parent": None}
        found[slice_id] = node.model_copy(update=loose) if is_loose else node
    return found


def _flat_node(entry: Evidence, n_failed: int) -> SliceNode:
    total = max(n_failed, 1)
    explained = entry.explained
    return SliceNode(
        slice_id=entry.slice_id,
        kind=NodeKind.FINDING if explained is None else NodeKind.EXPLAINED,
        parent=None if explained is None else explained.slice_id,
        coverage=entry.failures_inside / total,
        excess=max(0.0, entry.failures_inside - entry.n_inside * entry.rate_outside) / total,
    )


def _order(
    slice_ids: Iterable[str],
    nodes: dict[str, SliceNode],
    published: dict[str, tuple[FailureSlice, Evidence]],
    order: SliceOrder | str,
) -> list[str]:
    def key(slice_id: str) -> tuple[bool, float, str]:
        node, entry = nodes[slice_id], published[slice_id][1]
        figure = {
            SliceOrder.SEVERITY: entry.headline_gap,
            SliceOrder.COVERAGE: node.coverage,
            SliceOrder.BOTH: node.excess,
        }[SliceOrder(order)]
        return node.kind is NodeKind.EXPLAINED, -figure, slice_id

    return sorted(slice_ids, key=key)


def first_rows(rows: Sequence[TreeRow], most: int = MAX_FIRST) -> tuple[TreeRow, ...]:
    """Return the rows to begin with, at most so many: findings and worse parts, those of every depth before deeper ones.

    Findings come before what is inside them as long as half of the lines are left for that.
    """
    own = [row for row in rows if not row.is_explained]
    top = [row for row in own if row.depth == 0]
    inside = [row for row in own if row.depth > 0]
    n_top = max(most - len(inside), most // 2)
    chosen = {row.slice_id for row in top[:n_top]}
    for row in inside:
        is_shown = row.parent is not None and row.parent.slice_id in chosen
        if is_shown and len(chosen) < most:
            chosen.add(row.slice_id)
    for row in top[n_top:]:
        if len(chosen) < most:
            chosen.add(row.slice_id)
    return tuple(row for row in rows if row.slice_id in chosen)


def left_sentence(tree: ClassTree) -> str:
    """Return how many failures of a class are in no finding.

    >>> left_sentence(ClassTree(class_name="apple", n_failed=200, n_left=30))
    'apple: 30 of 200 failures (15 %) are in no finding.'
    """
    share = percent(tree.n_left / tree.n_failed) if tree.n_failed else "0 %"
    return f"{tree.class_name}: {tree.n_left:,} of {tree.n_failed:,} failures ({share}) are in no finding."


def more_sentence(rows: Sequence[TreeRow], shown: Sequence[TreeRow]) -> str:
    """Return how many confirmed slices are not among those shown, and how many of them others explain; empty if all are."""
    hidden = len(rows) - len(shown)
    if not hidden:
        return ""
    n_explained = sum(row.is_explained for row in rows)
    n_explained -= sum(row.is_explained for row in shown)
    explained = f", {n_explained:,} of them explained by those above" if n_explained else ""
    return f"{count(hidden, 'confirmed slice')} more{explained}"


COLUMNS = (
    "place",
    "depth",
    "kind",
    "parent",
    "class",
    "slice",
    "wrong",
    "samples",
    "rate",
    "rest_rate",
    "gap",
    "p_value",
    "q_value",
    "share_of_all_failures",
    "excess_share",
    "method",
    "slice_id",
)


def render_csv(rows: Sequence[TreeRow]) -> str:
    """Return all confirmed slices as a table, one a line, in the order of the tree."""
    return csv_text(
        COLUMNS,
        (
            [
                place,
                row.depth,
                row.node.kind.value,
                row.node.parent or "",
                row.slice_.class_name,
                row.slice_.title,
                row.evidence.failures_inside,
                row.evidence.n_inside,
                f"{row.evidence.rate_inside:.6g}",
                f"{row.evidence.rate_outside:.6g}",
                f"{row.evidence.headline_gap:.6g}",
                f"{row.evidence.p_value:.4g}",
                f"{row.evidence.q_value:.4g}",
                f"{row.node.coverage:.6g}",
                f"{row.node.excess:.6g}",
                row.slice_.method,
                row.slice_id,
            ]
            for place, row in enumerate(rows, start=1)
        ),
    )
