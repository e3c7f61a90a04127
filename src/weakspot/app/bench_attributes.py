"""Attributes for benchmark problems: told from words by the problem's own encoder, never from the hidden truth."""

from dataclasses import replace

from weakspot.app.attributing import told_from_words, with_attribute_columns
from weakspot.app.config import Settings
from weakspot.assign.columns import AssignedColumn, with_free_names
from weakspot.benchmark.problem import BenchProblem


def with_attributes(problem: BenchProblem, settings: Settings) -> BenchProblem:
    """Return the problem with the built-in attributes as metadata columns; the same problem without a text side."""
    samples = problem.samples
    found = told_from_words(samples, problem.assistants, settings, notes=[])
    named = with_free_names([one for one in found if isinstance(one, AssignedColumn)], samples.dataset.metadata_names)
    columns = {one.attribute.column: one.column for one in named if one.column is not None}
    dataset = with_attribute_columns(samples.dataset, columns, list(columns), told=list(columns))
    return replace(
        problem,
        samples=replace(samples, dataset=dataset),
        discovery=replace(problem.discovery, dataset=dataset),
        confirmation=replace(problem.confirmation, dataset=dataset),
        fresh=None if problem.fresh is None else replace(problem.fresh, dataset=dataset),
    )
