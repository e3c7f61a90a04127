"""Two classifiers on one page."""

import pytest

from weakspot.core.errors import DataError
from weakspot.core.run import no_stage_progress
from weakspot.web.services.compare import compare, comparison_file, other_models, two_models
from weakspot.web.services.images import is_visible


def test_two_models__other_is_right_on_apples__its_failures_are_shared(compared):
    other_models(compared)
    compare(compared.project, no_stage_progress, other="sturdier")
    found = two_models(compared, "sturdier")
    parts = {part.which: part for part in found.parts}
    assert found.own_failed.total == found.other_failed.total == 400
    assert parts["other"].n_samples == 0
    assert parts["both"].n_samples == found.other_failed.count
    assert parts["own"].n_samples == found.own_failed.count - found.other_failed.count
    assert found.p_value < 0.01
    alone = parts["own"]
    assert 0 < len(alone.images) <= alone.n_visible < alone.n_samples
    assert {image.label for image in alone.images} == {"apple"}
    assert {image.other_answer for image in alone.images} == {"apple"}
    assert all(image.is_failure for image in alone.images)
    assert all(is_visible(compared, image.row) for part in found.parts for image in part.images)
    assert [one.title for one in found.slices] == ["apple: green"]


def test_two_models__not_compared_or_unknown__says_what_to_do(compared):
    with pytest.raises(DataError, match="not compared yet"):
        two_models(compared, "sturdier")
    with pytest.raises(DataError, match="no such project"):
        two_models(compared, "/etc")


def test_two_models__file_that_cannot_be_read__as_if_not_compared(compared):
    other_models(compared)
    compare(compared.project, no_stage_progress, other="sturdier")
    comparison_file(compared.project.store, "sturdier").with_suffix(".npz").write_bytes(b"x")
    with pytest.raises(DataError, match="not compared yet"):
        two_models(compared, "sturdier")
