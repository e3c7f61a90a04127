"""Two things beside each other: a slice on two classifiers, two classifiers, and two slices of a run."""

import pytest

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import no_stage_progress
from weakspot.web.services.compare import (
    compare,
    comparison_file,
    other_models,
    slice_comparison,
    slice_pair,
    two_models,
)
from weakspot.web.services.images import is_visible
from weakspot.web.services.slices import slice_table
from weakspot.web.services.work import do_work


def _green(workspace):
    return next(line for line in slice_table(workspace).slices if line.words == "green")


def test_compare__with_another_project__measures_the_slice_on_both(compared):
    (other,) = other_models(compared).others
    assert (other.name, other.n_samples) == ("sturdier", None)
    result = compare(compared.project, no_stage_progress, other="sturdier")
    assert result == {"other": "sturdier", "n_samples": 400, "n_slices": 1}
    found, line = (
        slice_comparison(compared, _green(compared).slice_id, "sturdier"),
        _green(compared),
    )
    assert (found.own.inside.count, found.own.inside.total) == (
        line.inside.count,
        line.inside.total,
    )
    assert (found.own.holds, found.other.holds, found.other.inside.count) == (True, False, 0)
    assert (found.both_fail, found.only_own_fails, found.only_other_fails) == (
        0,
        line.inside.count,
        0,
    )
    assert found.neither_fails == found.n_members - found.only_own_fails
    assert found.interval.low <= found.difference <= found.interval.high
    assert "sturdier is not shown to fail" in found.sentence
    (other,) = other_models(compared).others
    assert other.n_samples == 400
    assert other.slice_ids == [line.slice_id]
    assert other.failure_rate > other.other_rate


def test_slice_comparison__before_or_without_one__says_what_to_do(compared):
    green = _green(compared).slice_id
    with pytest.raises(DataError, match="not compared yet"):
        slice_comparison(compared, green, "sturdier")
    with pytest.raises(DataError, match="no such project"):
        slice_comparison(compared, green, "../sturdier")
    other_models(compared)
    compare(compared.project, no_stage_progress, other="sturdier")
    shelf = next(line for line in slice_table(compared).slices if line.words == "on a shelf")
    with pytest.raises(DataError, match="took no part"):
        slice_comparison(compared, shelf.slice_id, "sturdier")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [({}, ConfigError), ({"other": 3}, ConfigError), ({"other": "/etc"}, DataError)],
)
def test_compare__with_what_was_not_given_to_the_server__is_refused(compared, arguments, kind):
    other_models(compared)
    with pytest.raises(kind):
        do_work("compare", compared.project, arguments, no_stage_progress)


def test_other_models__of_a_project_that_is_served_alone__are_none(sliced):
    assert other_models(sliced).others == []


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


def _pair(workspace, first, second):
    record = workspace.record()
    by_words = {found.names[0].contrast: found for found in record.slices}
    return slice_pair(workspace, record, by_words[first], by_words[second])


def test_slice_pair__overlapping__every_member_is_in_one_part(sliced):
    found = _pair(sliced, "green", "on a shelf")
    both, first, second = found.parts
    dataset, rows = sliced.samples.dataset, sliced.problem("apple").rows
    colours = dataset.metadata("colour").to_pylist()
    places = dataset.metadata("place").to_pylist()
    green = {row for row in rows.tolist() if colours[row] == "green"}
    shelf = {row for row in rows.tolist() if places[row] == "shelf"}
    assert both.failed.total == len(green & shelf)
    assert first.failed.total == len(green - shelf)
    assert second.failed.total == len(shelf - green)
    assert found.overlap == len(green & shelf) / len(green | shelf)
    assert {image.row for image in both.images} <= green & shelf
    assert all(is_visible(sliced, image.row) for part in found.parts for image in part.images)
    assert found.first.words == "green"
    assert f"share {both.failed.total} images" in found.sentence


def test_slice_pair__what_sets_them_apart__largest_difference_first(sliced):
    found = _pair(sliced, "green", "on a shelf")
    assert {one.column for one in found.values[:2]} <= {"colour", "place"}
    gaps = [abs(one.first.value - one.second.value) for one in found.values]
    assert gaps == sorted(gaps, reverse=True)


def test_slice_pair__failures_come_first(sliced):
    images = _pair(sliced, "green", "on a shelf").parts[1].images
    failed = [image.is_failure for image in images]
    assert failed == sorted(failed, reverse=True)


def test_slice_pair__itself__the_same_images(sliced):
    found = _pair(sliced, "green", "green")
    assert (found.overlap, found.sentence) == (1.0, "They hold the same images.")
