"""The README's first command: real photographs, real classifier, real embedded default."""

import pytest

from weakspot.core.repairs import GroupKind


@pytest.fixture(scope="module")
def result(demo_result):
    return demo_result


def _slice_accuracy(result, arm_name):
    arm = next(arm for arm in result.record.repairs[0].arms if arm.arm == arm_name)
    return next(change.accuracy_after for change in arm.changes if change.kind is GroupKind.SLICE)


@pytest.mark.network
def test_run_demo__top_finding_names_the_hidden_kind(result):
    found, evidence = next(
        pair for pair in result.record.published() if pair[0].class_name == "apple"
    )
    assert "green" in found.names[0].contrast
    assert evidence.q_value < 0.01
    assert evidence.cause.cause == "rare in training"


@pytest.mark.network
def test_run_demo__members_are_of_the_hidden_kind(result):
    assert result.n_members >= 20
    assert result.hidden_share >= 0.8
    assert "Granny-Smith" in result.truth_sentence


@pytest.mark.network
def test_run_demo__repair_beats_its_baselines_on_the_slice(result):
    repaired = _slice_accuracy(result, "slice-balanced")
    assert repaired > _slice_accuracy(result, "plain")
    assert repaired > _slice_accuracy(result, "random")


@pytest.mark.network
def test_run_demo__needs_no_witness_for_its_words(result):
    assert result.record.settings["witnesses"]["on"] == "none"


@pytest.mark.network
def test_run_demo__report_is_one_small_file_without_links(result):
    text = result.report.read_text(encoding="utf-8")
    assert result.report.stat().st_size < 10_000_000
    assert text.count("data:image/jpeg;base64,") >= 10
    assert 'src="http' not in text
