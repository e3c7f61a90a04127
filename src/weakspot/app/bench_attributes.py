"""Attributes for benchmark problems: told from words by the problem's own encoder, never from the hidden truth."""

from dataclasses import replace

from weakspot.app.attribute_words import planned_attributes
from weakspot.app.config import Settings
from weakspot.assign.columns import AssignedColumn, with_free_names
from weakspot.assign.representatives import LARGEST_SAMPLE, spread_rows
from weakspot.assign.word_columns import word_columns
from weakspot.benchmark.problem import BenchProblem
from weakspot.core.attributes import mark_attributes, mark_told_by_words

JOINT = "joint"


def with_attributes(problem: BenchProblem, settings: Settings) -> BenchProblem:
    """Return the problem with the built-in attributes as metadata columns; the same problem without a text side."""
    samples, embed_texts = problem.samples, problem.assistants.embed_texts
    if embed_texts is None or JOINT not in samples.spaces:
        return problem
    reference = samples.rows if samples.reference_rows is None else samples.reference_rows
    rows = spread_rows(reference, LARGEST_SAMPLE)
    plans = planned_attributes(samples, replace(problem.assistants, captions=None), settings, rows)
    found = word_columns(
        plans.attributes, embed_texts=embed_texts, vectors=samples.space(JOINT).vectors, reference=samples.vectors(JOINT, rows)
    )
    named = with_free_names([one for one in found if isinstance(one, AssignedColumn)], samples.dataset.metadata_names)
    columns = {one.attribute.column: one.column for one in named if one.column is not None}
    dataset = samples.dataset.with_metadata(columns)
    dataset = replace(dataset, table=mark_told_by_words(mark_attributes(dataset.table, list(columns)), list(columns)))
    return replace(
        problem,
        samples=replace(samples, dataset=dataset),
        discovery=replace(problem.discovery, dataset=dataset),
        confirmation=replace(problem.confirmation, dataset=dataset),
        fresh=None if problem.fresh is None else replace(problem.fresh, dataset=dataset),
    )
