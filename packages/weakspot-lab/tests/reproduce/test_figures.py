import math

import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.figures import (
    Measured,
    PaperFigure,
    compare_figure,
    compare_figures,
    effect_of,
    read_figures,
)
from weakspot_lab.reproduce.protocol import papers

HIGHER = PaperFigure(key="a", where="Table 1", what="worst group", value=70.0)
LOWER = PaperFigure(key="b", where="Table 1", what="gap", value=10.0, better="lower")


def _why(figure, **measured):
    return compare_figure(figure, Measured(**measured), is_stand_in=True).why


@pytest.mark.parametrize("paper", papers())
def test_read_figures__every_paper_is_complete(paper):
    stated = read_figures(paper)
    assert stated.paper == paper
    assert stated.title
    assert sum(one.is_headline for one in stated.figures) >= 5
    for one in stated.figures:
        assert one.key
        assert one.where
        assert one.what
        assert one.unit in ("%", "points", "ratio", "correlation", "share", "count")


def test_read_figures__no_such_paper():
    with pytest.raises(DataError, match="cannot be read"):
        read_figures("nothing")


@pytest.mark.parametrize(
    ("figure", "value", "beside", "ends", "effect"),
    [
        (HIGHER, 70, 60, (None, None), "yes"),
        (HIGHER, 70, 60, (4, 16), "yes"),
        (HIGHER, 70, 60, (-4, 24), "unclear"),
        (HIGHER, 60, 60, (None, None), "no"),
        (HIGHER, 50, 60, (-14, -6), "no"),
        (LOWER, 10, 20, (-14, -6), "yes"),
        (LOWER, 10, 20, (-24, 4), "unclear"),
        (LOWER, 20, 10, (None, None), "no"),
    ],
)
def test_effect_of__follows_the_better_direction(figure, value, beside, ends, effect):
    measured = Measured(value=value, beside=beside, gain_low=ends[0], gain_high=ends[1])
    assert effect_of(figure, measured) == effect


def test_compare_figure__why_follows_the_outcome():
    given = {
        "beside": 60.0,
        "beside_name": "confidences",
        "if_higher": "the cue is exact",
        "if_lower": "the encoder is small",
        "if_absent": "the head never failed",
    }
    assert _why(HIGHER, value=72.0, **given) == (
        "The paper's effect appears: 12.0 points higher than confidences; about the paper's figure."
    )
    assert _why(HIGHER, value=90.0, **given) == (
        "The paper's effect appears: 30.0 points higher than confidences; "
        "higher than in the paper, because the cue is exact."
    )
    assert _why(HIGHER, value=50.0, **given) == (
        "The paper's effect does not appear: 10.0 points lower than confidences, because the head never failed; "
        "lower than in the paper, because the encoder is small."
    )
    assert "not beyond chance" in _why(HIGHER, value=62.0, gain_low=-1.0, gain_high=5.0, **given)
    assert _why(HIGHER, value=60.0, beside=60.0, beside_name="chance").startswith(
        "The paper's effect does not appear: the same as chance"
    )


def test_compare_figure__without_a_reason_it_gives_none():
    assert _why(HIGHER, value=90.0) == "Higher than in the paper, on another problem."
    assert compare_figure(HIGHER, Measured(value=90.0), is_stand_in=False).why == (
        "Higher than in the paper."
    )


@pytest.mark.parametrize("value", [None, math.nan])
def test_compare_figure__nothing_measured(value):
    found = compare_figure(HIGHER, Measured(value=value, note="No failures."), is_stand_in=True)
    assert (found.measured.value, found.difference, found.why) == (None, None, "No failures.")


def test_compare_figures__what_was_forgotten_is_said():
    found = compare_figures([HIGHER, LOWER], {"a": Measured(value=71.0)}, is_stand_in=True)
    assert found[0].difference == pytest.approx(1.0)
    assert found[1].why == "Not measured here."
