from weakspot.core.errors import StoreError
from weakspot.gate.check import CheckRequest, check, promise
from weakspot.gate.policy import parse_policy
from weakspot.gate.runs import baseline_of, ensure_run
from weakspot.run.ledger import Ledger


def test_promise__many_checks__says_how_many_false_alarms_to_expect():
    assert "so about" not in promise(3, 0.05)
    assert "3 pairs of a model and a baseline" in promise(3, 0.05)
    assert "so about 2 in 50 if nothing ever fell" in promise(50, 0.05)
    assert "not for all of them together" in promise(1, 0.05)


def test_note_check__folder_cannot_be_written__is_said_and_judged_all_the_same(
    table_project, monkeypatch
):
    project = table_project()
    baseline = baseline_of(project, ensure_run(project).record)
    policy = parse_policy({"regressions": {"max_drop": 0.0}}, where="test")

    def refuse(*_given, **_more):
        raise StoreError("The disk is read-only.")

    monkeypatch.setattr(Ledger, "note", refuse)
    result = check(project, CheckRequest(policy=policy, baseline=baseline))[0]
    assert result.is_kept
    assert "could not be entered in the ledger" in result.notes[-1]
    assert "The disk is read-only." in result.notes[-1]
