import pytest

from weakspot.cli import results
from weakspot.core.dataset import Task
from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    ConfusedWith,
    Evidence,
    Interval,
    LabelFinding,
    Measurement,
    Share,
    Verdict,
    effect_size,
)
from weakspot.core.rules import ColumnRule
from weakspot.core.run import MethodRecord, RunRecord
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.run.ingestion import IngestResult

USE = DataUse(name="half", n_samples=51, digest="d")


def _slice(column, method, contrast):
    name = SliceName(
        phrase=f"a {contrast} apple",
        contrast=contrast,
        score=1.0,
        describer="hand",
        is_doubtful=contrast == "old",
    )
    return FailureSlice(
        class_name="apple",
        rule=ColumnRule(column=column, values=(True,)),
        method=method,
        found_on=USE,
        names=(name,),
    )


def _evidence(found, verdict, **more):
    return Evidence(
        slice_id=found.slice_id, verifier="holdout", measured_on=USE, n_inside=22, failures_inside=16, n_outside=29,
        failures_outside=1, rate_inside=16 / 22, rate_outside=1 / 29, interval_inside=Interval(low=0.52, high=0.87),
        interval_outside=Interval(low=0.01, high=0.17), gap=0.69, p_value=0.001, q_value=0.002, n_tested=2, verdict=verdict, **more,
    )  # fmt: skip


@pytest.fixture
def record():
    green, again, old = (
        _slice("green", "directions", "green"),
        _slice("g", "attributes", "green"),
        _slice("old", "keywords", "old"),
    )
    share = Share.of(16, 22)
    confused_with = ConfusedWith(
        answer="pear", inside=share, outside=share, among_failures=share, among_other_failures=share, p_value=0.001, is_real=True,
        sentence="apple: green become pear.",
    )  # fmt: skip
    labels = LabelFinding(
        n_suspect=4,
        share=0.25,
        inside=Share.of(4, 16),
        outside=share,
        witnesses=(),
        is_flagged=True,
        sentence="Four look wrong.",
    )
    proven = _evidence(
        green,
        Verdict.CONFIRMED,
        cause=CauseFinding(
            cause=Cause.SHIFT, sentence="More of them.", confused_with=confused_with
        ),
        labels=labels,
        effect=effect_size((16, 22, 1, 29)),
        elsewhere=(
            Measurement(measured_on=USE, inside=Share.of(6, 10), outside=Share.of(3, 30), gap=0.5),
        ),
    )
    return RunRecord(
        run_id="r",
        command="c",
        started="2026-01-01T00:00:00Z",
        seed=0,
        slices=(green, again, old),
        evidence=(
            proven,
            _evidence(again, Verdict.SAME, same_as=green.slice_id).model_copy(
                update={"q_value": 1.0}
            ),
            _evidence(old, Verdict.NOT_CONFIRMED).model_copy(update={"q_value": 0.25}),
        ),
        methods=(
            MethodRecord(
                method="attributes", n_considered=1_200, n_found=30, n_tested=2, note="No answerer."
            ),
        ),
    )


def test_findings__everything_that_was_looked_into(record):
    lines = results.findings(record).splitlines()
    assert (
        lines[0]
        == "attributes: 1,200 candidates looked at, 30 put forward, 2 passed the screen. No answerer."
    )
    assert lines[1] == "1 of 2 tested slices confirmed:"
    assert lines[2] == "  apple: green  (by directions)"
    assert "    check the labels: Four look wrong." in lines
    assert "    why: evidence points to: wrong labels. More of them." in lines
    assert "    taken for: apple: green become pear." in lines
    assert "    also found as: apple: green (attributes)" in lines
    assert any(line.startswith("    how much: Members fail 21.1 times as often") for line in lines)
    assert any(line.startswith("    elsewhere, half: fails on 60 % of 10 inside") for line in lines)
    assert lines[-1] == "  not published: apple: old (keywords; not confirmed, q = 0.25)"


def test_findings__a_fold_that_finds_the_same_again_is_not_told(record):
    green, _, old = record.slices
    again = green.model_copy(update={"fold": 1})
    copied = _evidence(again, Verdict.SAME, same_as=green.slice_id)
    told = record.model_copy(
        update={
            "slices": (green, again, old),
            "evidence": (record.evidence[0], copied, record.evidence[2]),
        }
    )
    assert again.slice_id != green.slice_id
    assert "also found as" not in results.findings(told)
    assert "same as" not in results.findings(told)


def test_findings__a_long_list_is_cut(record):
    old = record.evidence[2]
    lines = results.findings(record.model_copy(update={"evidence": (old,) * 15})).splitlines()
    assert sum("apple: old" in line for line in lines) == 12
    assert lines[-1] == "  not published: 3 more, see the report"


def test_findings__doubtful_names_are_marked(record):
    confirmed = record.evidence[2].model_copy(update={"verdict": Verdict.CONFIRMED})
    shown = results.findings(record.model_copy(update={"evidence": (confirmed,)}))
    assert "in words: a old apple (doubtful: a second check)" in shown


def test_candidates__warn_that_nothing_is_confirmed(record):
    assert "3 candidate slices, none confirmed yet" in results.candidates(record)


def test_ingest_lines__bursts_are_said():
    summary = IngestResult(
        source="folder: photos",
        n_samples=40,
        n_unlabelled=0,
        class_names=("cat",),
        task=Task.SINGLE_LABEL,
        per_split={"test": 40},
        quarantined={},
        n_duplicated=0,
        n_across_splits=0,
        n_conflicting=0,
        has_predictions=False,
        burst_note="40 images come in bursts.",
    )
    assert "  40 images come in bursts." in results.ingest_lines(summary)


def test_findings__several_slices_begin_with_the_tree(record):
    from weakspot.core.evidence import ClassTree, NodeKind, SliceNode

    green, _, old = record.slices
    inside = record.evidence[2].model_copy(
        update={"verdict": Verdict.CONFIRMED, "n_inside": 9, "rate_inside": 8 / 9}
    )
    nodes = (
        SliceNode(slice_id=green.slice_id, excess=0.5),
        SliceNode(
            slice_id=old.slice_id,
            kind=NodeKind.WORSE,
            parent=green.slice_id,
            others_failed=8,
            n_others=16,
        ),
    )
    trees = (ClassTree(class_name="apple", n_failed=17, n_left=1, nodes=nodes),)
    two = record.model_copy(update={"evidence": (record.evidence[0], inside), "trees": trees})
    lines = results.findings(two).splitlines()
    start = lines.index("2 of 2 tested slices confirmed:")
    assert lines[start + 1 : start + 4] == [
        "  apple: 73 % of 22 wrong where green (against 3 % of the rest)",
        "    -> apple: 89 % of 9 wrong where old (against 50 % of the other 16 of these)",
        "  apple: 1 of 17 failures (6 %) are in no finding.",
    ]
    explained = SliceNode(slice_id=old.slice_id, kind=NodeKind.EXPLAINED, parent=green.slice_id)
    tree = ClassTree(class_name="apple", nodes=(nodes[0], explained))
    hidden = two.model_copy(update={"trees": (tree,)})
    assert "-> apple" not in results.findings(hidden)
    assert (
        "1 confirmed slice more, 1 of them explained by those above: --all shows them"
        in results.findings(hidden)
    )
    assert "-> apple: 89 % of 9 wrong where old (explained by the above)" in results.findings(
        hidden, has_all=True
    )
