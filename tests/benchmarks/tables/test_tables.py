"""The planted tables in small: the truth is as planned, the judgement is right, and a run goes on where it stopped."""

import argparse
import json

import numpy as np
from tables import ours, peers
from tables.__main__ import known_answers, table_of, wanted
from tables.worlds import TablePlan, make_table

SMALL = TablePlan(n_rows=4_000, n_classes=2, n_columns=10, inside=(100, 0.95), beside=(100, 0.9))


def test_make_table__slices_are_as_planned():
    table = make_table(SMALL, 3)
    sizes = {name: int(table.members(name).sum()) for name in table.planted}
    assert sizes == {"broad": 440, "inside": 100, "beside": 100}
    assert not (table.members("inside") & ~table.members("broad")).any()
    assert (
        table.failed[table.members("inside")].mean()
        > table.failed[table.members("broad")].mean()
        > 0.5
    )
    assert np.array_equal(make_table(SMALL, 3).failed, table.failed)
    assert not make_table(TablePlan(n_rows=200, is_null=True), 3).planted


def test_ask__broad_and_severe_slices_are_findings_and_nothing_is_false():
    answer = ours.ask(make_table(SMALL, 3))
    assert (
        answer.confirmed == answer.findings == answer.first_lines == ("beside", "broad", "inside")
    )
    assert answer.n_first <= 10
    assert answer.n_false == 0


def test_ask__nothing_planted_nothing_confirmed():
    plan = TablePlan(n_rows=600, n_classes=2, n_columns=6, rest_rate=0.2, is_null=True)
    confirmed = [ours.ask(make_table(plan, seed)).n_confirmed for seed in range(3)]
    assert sum(number > 0 for number in confirmed) <= 1


def test_recalled__only_the_first_ten_count():
    table = make_table(SMALL, 3)
    (broad,) = table.planted["broad"]
    other = next(column for column in range(10) if column != broad)
    pattern, wrong = ((broad, True),), ((other, False),)
    listed = {
        "first": [wrong, pattern],
        "late": [wrong] * 10 + [pattern],
        "absent": [((broad, False),)],
    }
    assert peers.recalled(table, listed) == {"first": ["broad"], "late": [], "absent": []}


def test_wanted__what_is_answered_is_not_asked_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(
        json.dumps({"kind": "null", "seed": 1001, "ours": {"n_confirmed": 1}}) + "\n{cut off"
    )
    known = known_answers(path)
    given = argparse.Namespace(planted=1, null=3, first_seed=1000)
    assert list(wanted(given, known)) == [("planted", 1000), ("null", 1000), ("null", 1002)]
    assert "Null tables with any confirmed slice: 1 of 1." in table_of(known)
