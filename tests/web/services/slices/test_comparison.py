import pytest

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import no_stage_progress
from weakspot.web.services.compare import compare, other_models, slice_comparison
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
