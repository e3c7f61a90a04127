import pytest

from weakspot_lab.bench.pages import plots, table
from weakspot_lab.bench.scores import MethodScore, NameVerdict, TruthScore, table_rows


def _score(**changes):
    given = {"method": "directions", "source": "planted", "kind": "rare", "number": 0}
    return MethodScore(**{**given, **changes})


def _truth(precision, *, is_confirmed=True, name=None):
    return TruthScore(
        precision_at_10=precision,
        precision_at_25=0.5,
        is_found=True,
        is_confirmed=is_confirmed,
        name=name,
    )


def test_table_rows__means_over_worlds_and_truths():
    right = NameVerdict(is_exact=True, is_synonym=True, is_same_attribute=True)
    scores = [
        _score(
            truths=(_truth(1.0, name=right), _truth(0.5, is_confirmed=False)),
            n_confirmed=4,
            n_false=1,
            seconds=2.0,
        ),
        _score(number=1, truths=(_truth(0.9, name=NameVerdict()),), seconds=1.0, megabytes=7.0),
        _score(method="loss"),
    ]
    first, second = table_rows(scores)
    assert (first.n_worlds, first.precision_at_10, first.confirmed) == (
        2,
        pytest.approx(0.8),
        pytest.approx(2 / 3),
    )
    assert (first.name_exact, first.false_share, first.worlds_with_false) == (0.5, 0.125, 0.5)
    assert (first.seconds, first.megabytes) == (1.5, 7.0)
    assert second.precision_at_10 is None


def test_table__one_line_a_method_and_empty_cells_where_nothing_was_measured():
    rows = table_rows(
        [_score(truths=(_truth(1.0),)), _score(method="loss", note="There are no probabilities.")]
    )
    lines = table(rows).splitlines()
    assert lines[0] == "## planted: rare (1 world)"
    assert next(line for line in lines if line.startswith("| directions")).startswith(
        "| directions | 1.00 | 0.50 | 1.00 | 1.00 |  |"
    )
    assert "loss: There are no probabilities." in lines


def test_plots__named_by_source_and_measure():
    drawings = plots(
        table_rows([_score(truths=(_truth(1.0),)), _score(kind="null", n_confirmed=1, n_false=1)])
    )
    assert set(drawings) == {
        "planted-precision_at_10.svg",
        "planted-confirmed.svg",
        "planted-false_share.svg",
    }
    assert "null" not in drawings["planted-precision_at_10.svg"]
    assert "null" in drawings["planted-false_share.svg"]


def test_table_rows__false_findings_stay_open_where_nobody_can_know():
    (row,) = table_rows([_score(n_confirmed=2, n_false=None)])
    assert (row.false_share, row.worlds_with_false) == (None, None)
