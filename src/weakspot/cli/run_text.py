"""Runs, as the terminal shows them: candidates, findings, summaries of stages."""

from collections.abc import Iterator, Sequence

from weakspot.cli.repair_text import repair_lines
from weakspot.core.evidence import Cause, Evidence, Verdict
from weakspot.core.ordering import SliceOrder
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.pipeline.ingestion import IngestResult
from weakspot.pipeline.method_choice import CHOICE_STAGE
from weakspot.pipeline.preparation import EmbedResult
from weakspot.report.findings import methods_of, n_tested
from weakspot.report.tree import TreeRow, first_rows, left_sentence, more_sentence, tree_rows
from weakspot.report.wording import (
    effect_sentence,
    exact_p,
    explanation_sentence,
    groups_sentence,
    measurement_words,
    nearest_sentence,
    percent,
    title_with_method,
)

MOST_REFUSED = 12
MOST_DETAILED = 3
GROUPS_STAGE = "groups"


def candidates(record: RunRecord) -> str:
    """Return what was found on the discovery half, with the warning that nothing is confirmed."""
    lines = [
        *_classifier_line(record),
        *_stage_lines(record, CHOICE_STAGE),
        f"{len(record.slices)} candidate slices, none confirmed yet (next: weakspot verify):",
    ]
    lines += [
        f"  {slice_.title}  (strength {_number(slice_.strength)}, {slice_.n_found} members)"
        for slice_ in record.slices
    ]
    return "\n".join([*lines, *_notes(record)])


def findings(
    record: RunRecord,
    *,
    order: SliceOrder = SliceOrder.BOTH,
    has_all: bool = False,
) -> str:
    """Return the confirmed slices, how many others were tested, and of how many candidates they were chosen.

    Args:
        record: the run.
        order: by what slices are ordered.
        has_all: whether all confirmed slices are shown, not only those to begin with.
    """
    rows = tree_rows(record, order)
    n_explained = sum(row.is_explained for row in rows)
    explained = f", {n_explained} of them explained by a stronger one" if n_explained else ""
    head = f"{len(rows)} of {n_tested(record)} tested slices confirmed{explained}:"
    lines = [
        *_classifier_line(record),
        *_stage_lines(record, CHOICE_STAGE),
        *_stage_lines(record, GROUPS_STAGE),
        *_methods(record),
        head,
    ]
    shown = rows if has_all else first_rows(rows)
    if len(rows) > 1:
        lines += _tree(record, rows, shown)
    for row in shown if has_all else shown[:MOST_DETAILED]:
        lines += (
            [_explain(row.slice_, row.evidence, record)]
            if row.is_explained
            else list(_finding(row.slice_, row.evidence, record))
        )
    # Folds find the same slice again; each copy stands with the slice it equals, under "also found as".
    refused = [
        entry
        for entry in record.evidence
        if entry.verdict is not Verdict.CONFIRMED and entry.same_as is None
    ]
    lines += [
        _refused(entry, record)
        for entry in sorted(refused, key=lambda entry: (entry.q_value, entry.p_value))[
            :MOST_REFUSED
        ]
    ]
    if len(refused) > MOST_REFUSED:
        lines.append(f"  not published: {len(refused) - MOST_REFUSED} more, see the report")
    return "\n".join([*lines, *_notes(record)])


def _tree(record: RunRecord, rows: Sequence[TreeRow], shown: Sequence[TreeRow]) -> Iterator[str]:
    for row in shown:
        arrow = "-> " if row.depth else ""
        yield f"  {'  ' * row.depth}{arrow}{row.slice_.class_name}: {row.sentence}"
    if more := more_sentence(rows, shown):
        yield f"  {more}: --all shows them"
    for tree in record.trees:
        yield f"  {left_sentence(tree)}"


def _methods(record: RunRecord) -> Iterator[str]:
    for one in methods_of(record):
        note = f" {one.note}" if one.note else ""
        looked_at = f"{one.method}: {one.n_considered:,} candidates looked at"
        yield f"{looked_at}, {one.n_found:,} put forward, {one.n_tested:,} passed the screen.{note}"


def _explain(slice_: FailureSlice, evidence: Evidence, record: RunRecord) -> str:
    if evidence.explained is None:
        return ""
    why = explanation_sentence(
        evidence.explained, record.slice_by_id(evidence.explained.slice_id).title
    )
    return f"  no finding of its own: {slice_.title}  (by {slice_.method}). {why}"


def _refused(entry: Evidence, record: RunRecord) -> str:
    slice_ = record.slice_by_id(entry.slice_id)
    why = f", {exact_p(entry.q_value, name='q')}" if entry.verdict is Verdict.NOT_CONFIRMED else ""
    return f"  not published: {slice_.title} ({slice_.method}; {entry.verdict}{why})"


def _finding(slice_: FailureSlice, evidence: Evidence, record: RunRecord) -> Iterator[str]:
    inside, outside = evidence.interval_inside, evidence.interval_outside
    yield f"  {slice_.title}  (by {slice_.method})"
    sure = [name for name in slice_.names if not name.is_unsure]
    if sure:
        yield f"    in words: {', '.join(name.phrase + _doubt(name) for name in sure[:3])}"
    if slice_.nearest_words:
        yield f"    {nearest_sentence(slice_)}"
    yield (
        f"    wrong on {percent(evidence.rate_inside)} of {evidence.n_inside} "
        f"(interval {percent(inside.low)} to {percent(inside.high)}), "
        f"against {percent(evidence.rate_outside)} of the other {evidence.n_outside} "
        f"({percent(outside.low)} to {percent(outside.high)}); {exact_p(evidence.p_value)}, {exact_p(evidence.q_value, name='q')}"
    )
    if groups := groups_sentence(evidence):
        yield f"    groups:{groups}"
    if evidence.effect is not None:
        yield f"    how much: {effect_sentence(evidence)}"
    yield from _reasons(evidence)
    for measured in evidence.elsewhere:
        yield f"    elsewhere, {measurement_words(measured)}"
    copies = [
        title_with_method(record.slice_by_id(entry.slice_id))
        for entry in record.evidence
        if entry.same_as == slice_.slice_id
    ]
    same = [one for one in dict.fromkeys(copies) if one != title_with_method(slice_)]
    if same:
        yield f"    also found as: {', '.join(same)}"


def _reasons(evidence: Evidence) -> Iterator[str]:
    cause, labels = evidence.cause, evidence.labels
    if labels is not None and labels.is_flagged:
        yield f"    check the labels: {labels.sentence}"
    if cause is not None and cause.sentence:
        named = evidence.named_cause
        is_known = named is not Cause.UNKNOWN
        yield f"    why: {'evidence points to: ' if is_known else ''}{named}. {cause.sentence}"
    if cause is not None and cause.confused_with is not None and cause.confused_with.is_real:
        yield f"    taken for: {cause.confused_with.sentence}"


def _doubt(name: SliceName) -> str:
    said = f" ({name.said_of})" if name.said_of else ""
    return said + (f" (doubtful: {name.witness or 'a second check'})" if name.is_doubtful else "")


def whole_run(
    record: RunRecord, *, order: SliceOrder = SliceOrder.BOTH, has_all: bool = False
) -> str:
    """Return findings and repairs of a run."""
    return f"{findings(record, order=order, has_all=has_all)}\n{repair_lines(record)}"


def _classifier_line(record: RunRecord) -> list[str]:
    facts = record.classifier
    if facts is None:
        return []
    rate = percent(facts.n_failed / facts.n_samples) if facts.n_samples else "0 %"
    return [
        f"The classifier fails on {facts.n_failed} of {facts.n_samples} samples looked at ({rate}); failure: {record.criterion}."
    ]


def _stage_lines(record: RunRecord, name: str) -> list[str]:
    """Return what a stage said the last time: what methods use, or which images are near-identical."""
    return [stage.summary for stage in record.stages if stage.stage == name][-1:]


def _notes(record: RunRecord) -> list[str]:
    return [f"  note on {note.class_name}: {note.note}" for note in record.notes]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def ingest_lines(summary: IngestResult) -> list[str]:
    splits = ", ".join(f"{count} {name}" for name, count in summary.per_split.items() if count)
    lines = [
        f"{summary.n_samples} samples of {len(summary.class_names)} classes ({splits}) from {summary.source}."
    ]
    if summary.n_unlabelled:
        lines.append(f"  {summary.n_unlabelled} of them have no label.")
    if summary.n_quarantined:
        reasons = ", ".join(f"{count} {reason}" for reason, count in summary.quarantined.items())
        lines.append(f"  {summary.n_quarantined} samples are in quarantine: {reasons}.")
    if summary.n_duplicated:
        lines.append(
            f"  {summary.n_duplicated} images occur more than once, {summary.n_across_splits} of them in different splits "
            f"and {summary.n_conflicting} with different labels."
        )
    if summary.n_groups:
        across = (
            f" {summary.n_groups_across_splits} groups are in several splits."
            if summary.n_groups_across_splits
            else ""
        )
        lines.append(
            f"  {summary.n_in_groups} images belong to {summary.n_groups} groups, which are counted, not their images.{across}"
        )
    notes = (summary.group_note, summary.burst_note, summary.source_note)
    lines += [f"  {note}" for note in notes if note]
    if summary.n_reused:
        changed = (
            f", {summary.n_changed} of them because they may have changed"
            if summary.n_changed
            else ""
        )
        lines.append(
            f"  {summary.n_read} images were read{changed}; {summary.n_reused} have not changed since last time."
        )
    if summary.changed_meanwhile:
        lines.append(
            "  The source changed while it was read. Run again: only what changed is read."
        )
    return lines


def embed_lines(summary: EmbedResult) -> list[str]:
    lines = [
        f"{summary.n_embeddings} embeddings, {summary.n_new_embeddings} of them new. {summary.reason}"
    ]
    if summary.classifier_id:
        lines.append(
            f"{summary.n_predictions} predictions of {summary.classifier_id}, {summary.n_new_predictions} of them new."
        )
    if summary.n_unreadable:
        lines.append(
            f"{summary.n_unreadable} images could not be read; they are tried again next time."
        )
    return lines
