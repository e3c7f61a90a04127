import csv
import io
from dataclasses import replace

import pytest
from tests.build import evidence_of, slice_of

from weakspot.core.bounds import SliceOrder
from weakspot.core.evidence import (
    ClassTree,
    Explanation,
    NodeKind,
    SliceNode,
    Verdict,
)
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.run import ClassifierFacts, Decision, DecisionKind, RunRecord
from weakspot.core.slices import DataUse
from weakspot.report.document import build_document, render_html, render_json, render_markdown
from weakspot.report.tree import first_rows, more_sentence, render_csv, tree_rows

USE = DataUse(name="half", n_samples=2_000, digest="d")


def _slice(*columns):
    rules = tuple(ColumnRule(column=column, values=("yes",)) for column in columns)
    rule = rules[0] if len(rules) == 1 else AllOfRule(rules=rules)
    return slice_of(rule, contrast=", ".join(columns), method="attributes")


def _evidence(found, failures, n_inside, **more):
    counts = {"inside": (failures, n_inside), "outside": (20, 1_000)}
    return evidence_of(found, Verdict.CONFIRMED, **counts, q_value=1e-8, **more)


RED, NIGHT, CUT, WET = _slice("red"), _slice("red", "night"), _slice("cut"), _slice("wet")


@pytest.fixture
def record():
    """Red apples fail, at night more so; cut ones fail most, and wet ones because they are red."""
    explained = Explanation(
        slice_id=RED.slice_id, shared_failures=0.9, n_inside=10, failures_inside=1, n_outside=900, failures_outside=15,
        shared_by_all=0.95, n_both=60, failures_both=34, n_beside=440, failures_beside=240,
    )  # fmt: skip
    nodes = (
        SliceNode(slice_id=RED.slice_id, coverage=0.7, excess=0.6),
        SliceNode(
            slice_id=NIGHT.slice_id, kind=NodeKind.WORSE, parent=RED.slice_id, coverage=0.12, excess=0.11, share_inside=1.0,
            others_failed=228, n_others=437, p_value=1e-6,
        ),
        SliceNode(slice_id=CUT.slice_id, coverage=0.1, excess=0.1),
        SliceNode(slice_id=WET.slice_id, kind=NodeKind.EXPLAINED, parent=RED.slice_id, coverage=0.1, excess=0.08),
    )  # fmt: skip
    return RunRecord(
        run_id="r",
        command="c",
        started="2026-01-01T00:00:00Z",
        seed=0,
        classifier=ClassifierFacts(
            n_samples=2_000, n_failed=400, per_class={"apple": (2_000, 400)}
        ),
        slices=(WET, CUT, NIGHT, RED),
        evidence=(
            _evidence(WET, 35, 70, explained=explained),
            _evidence(CUT, 45, 50),
            _evidence(NIGHT, 52, 63),
            _evidence(RED, 280, 500),
        ),
        trees=(ClassTree(class_name="apple", n_failed=400, n_left=30, nodes=nodes),),
    )


def _shown(rows):
    return [(row.depth, row.slice_.title) for row in rows]


def test_tree_rows__every_order_keeps_the_tree(record):
    both = [(0, "apple: red"), (1, "apple: red, night"), (1, "apple: wet"), (0, "apple: cut")]
    assert _shown(tree_rows(record)) == both
    assert _shown(tree_rows(record, SliceOrder.COVERAGE)) == both
    assert _shown(tree_rows(record, "severity")) == [both[3], *both[:3]]


def test_tree_rows__sentences_say_what_is_added(record):
    red, night, wet, cut = tree_rows(record)
    assert red.sentence == "56 % of 500 wrong where red (against 2 % of the rest)"
    assert night.sentence == "83 % of 63 wrong where night (against 52 % of the other 437 of these)"
    assert wet.sentence == "50 % of 70 wrong where wet (explained by the above)"
    assert (red.n_explained, cut.n_explained) == (1, 0)


def test_tree_rows__a_dismissed_finding_sets_its_parts_free(record):
    decision = Decision(
        slice_id=RED.slice_id, kind=DecisionKind.DISMISSED, by="Ada", time="2026-01-01T00:00:00Z"
    )
    rows = tree_rows(record.model_copy(update={"decisions": (decision,)}))
    assert _shown(rows) == [(0, "apple: red, night"), (0, "apple: cut"), (0, "apple: wet")]
    assert rows[0].words == "red, night"


def test_tree_rows__runs_of_earlier_versions_have_no_tree(record):
    rows = tree_rows(record.model_copy(update={"trees": ()}))
    flat = [(0, "apple: red"), (1, "apple: wet"), (0, "apple: red, night"), (0, "apple: cut")]
    assert _shown(rows) == flat
    assert rows[0].node.coverage == pytest.approx(280 / 400)


def test_first_rows__at_most_ten_and_what_is_explained_only_on_demand(record):
    rows = tree_rows(record)
    assert [row.slice_.title for row in first_rows(rows)] == [
        "apple: red",
        "apple: red, night",
        "apple: cut",
    ]
    assert more_sentence(rows, first_rows(rows)) == (
        "1 confirmed slice more, 1 of them explained by those above"
    )
    assert more_sentence(rows, rows) == ""
    many = [_slice(f"c{number}") for number in range(30)]
    flat = record.model_copy(
        update={
            "slices": (*record.slices, *many),
            "evidence": (*record.evidence, *(_evidence(one, 9, 60) for one in many)),
        }
    )
    first = first_rows(tree_rows(flat))
    assert len(first) == 10
    assert {RED.slice_id, NIGHT.slice_id, CUT.slice_id} <= {row.slice_id for row in first}


def test_render_csv__every_confirmed_slice_is_a_line(record):
    lines = list(csv.DictReader(io.StringIO(render_csv(tree_rows(record)))))
    assert [line["slice"] for line in lines] == [
        "apple: red",
        "apple: red, night",
        "apple: wet",
        "apple: cut",
    ]
    assert (
        lines[1]
        | {"parent": RED.slice_id, "kind": "worse", "wrong": "52", "samples": "63", "depth": "1"}
        == lines[1]
    )
    assert float(lines[0]["share_of_all_failures"]) == 0.7


def test_render_csv__no_spreadsheet_runs_the_name_of_a_class(record):
    formula = RED.model_copy(update={"class_name": "=1+1"})
    (row, *_) = tree_rows(record)
    assert ",'=1+1," in render_csv([replace(row, slice_=formula)]).splitlines()[1]


def test_build_document__the_tree_is_in_every_format(record):
    document = build_document(record)
    assert document.left == ("apple: 30 of 400 failures (8 %) are in no finding.",)
    assert "that fit “red”" in document.headline
    assert "83 % of 63 wrong where night" in render_markdown(document)
    page = render_html(document)
    assert (
        page.index("wrong where red") < page.index("wrong where night") < page.index('id="glance"')
    )
    assert "<details><summary>1 confirmed slice more" in page
    content = render_json(document)
    assert '"is_shown_first": true' in content
    assert '"kind": "worse"' in content


def test_build_document__many_explained_slices_have_no_sections(record):
    many = [_slice(f"c{number}") for number in range(30)]
    why = record.evidence[0].explained
    crowded = record.model_copy(
        update={
            "slices": (*record.slices, *many),
            "evidence": (*record.evidence, *(_evidence(one, 9, 60, explained=why) for one in many)),
        }
    )
    document = build_document(crowded)
    assert len(document.findings) == 34
    assert len(document.sections) == 20
    assert len(document.first) == 3
