"""Comparing as work: what it keeps."""

from weakspot.core.run import no_stage_progress
from weakspot.web.services.compare import compare, comparison_file, other_models


def test_compare__done__figures_and_failures_are_kept(compared):
    other_models(compared)
    compare(compared.project, no_stage_progress, other="sturdier")
    kept = comparison_file(compared.project.store, "sturdier")
    assert kept.exists()
    assert kept.with_suffix(".npz").exists()
