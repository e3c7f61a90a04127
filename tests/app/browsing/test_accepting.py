import pytest

from weakspot.app.browsing.accepting import accept_phrase, phrase_slice
from weakspot.app.browsing.phrase_checks import check_phrase
from weakspot.app.browsing.phrases import phrase_score
from weakspot.app.browsing.steering import (
    changed_run,
    decision,
    evidence_of,
    proven,
    question_of,
    slice_of,
    with_slices,
)
from weakspot.app.looks import LookLog
from weakspot.core.decisions import DecisionKind
from weakspot.core.errors import DataError
from weakspot.core.evidence import Verdict


def looks_of(workspace):
    return LookLog(workspace.project.store).at(workspace.confirmation_digest)


def test_check__same_question_twice__is_one_look_with_the_same_answer(world_workspace):
    first = check_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    best = phrase_score(world_workspace, "disc", "green").threshold
    second = check_phrase(world_workspace, "disc", "green", threshold=best, by="ben")
    assert first == second
    assert (first.n_looks, len(looks_of(world_workspace))) == (1, 1)
    assert first.p_after_looks < 0.01
    assert first.confirmation.inside.value > first.confirmation.outside.value + 0.2
    other = check_phrase(world_workspace, "disc", "green", threshold=best + 0.05, by="ann")
    assert other.n_looks == 2
    assert [look.by for look in looks_of(world_workspace)] == ["ben", "ann"]


def test_accept__project_without_runs__starts_one_with_a_proven_slice(world_workspace):
    checked = check_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    found = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann", reason="they look like pears")
    record = world_workspace.record()
    assert found.verdict is Verdict.CONFIRMED
    assert record.run_id == found.run_id
    assert record.classifier.per_class.keys() == world_workspace.problems.keys()
    assert [(one.kind, one.by, one.reason) for one in record.decisions] == [
        (DecisionKind.ACCEPTED, "ann", "they look like pears")
    ]  # fmt: skip
    assert record.findings()[0].slice_id == found.slice_id
    inside = checked.confirmation.inside
    assert (found.evidence.failures_inside, found.evidence.n_inside) == (inside.count, inside.total)
    assert found.evidence.p_value == pytest.approx(checked.p_value)
    assert found.evidence.n_tested == 1
    assert "green" in found.sentences[0]


def test_accept__twice__changes_nothing(world_workspace):
    first = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    again = accept_phrase(world_workspace, "disc", " green ", threshold=first.threshold, by="ben")
    record = world_workspace.record()
    assert (again.slice_id, again.run_id) == (first.slice_id, first.run_id)
    assert again.evidence == first.evidence
    assert (len(record.slices), len(record.decisions), len(looks_of(world_workspace))) == (1, 1, 1)


def test_accept__dismissed_before__is_restored(world_workspace):
    found = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    dismissal = decision(found.slice_id, DecisionKind.DISMISSED, by="ben", reason="no")
    changed_run(world_workspace, lambda record: record.model_copy(update={"decisions": (*record.decisions, dismissal)}))
    assert world_workspace.record().dismissed()
    accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    assert not world_workspace.record().dismissed()


def test_accept__own_threshold__is_another_question_and_its_own_slice(world_workspace):
    best = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    narrower = accept_phrase(world_workspace, "disc", "green", threshold=best.threshold + 0.15, by="ann")
    assert narrower.slice_id != best.slice_id
    assert narrower.threshold == best.threshold + 0.15
    assert len({look.question for look in looks_of(world_workspace)}) == 2


def test_accept__nearly_the_same_members__is_tested_once(world_workspace):
    best = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    twin = accept_phrase(world_workspace, "disc", "green", threshold=best.threshold + 1e-4, by="ann")
    verdicts = {entry.slice_id: entry for entry in world_workspace.record().evidence}
    assert {verdicts[best.slice_id].verdict, verdicts[twin.slice_id].verdict} == {Verdict.CONFIRMED, Verdict.SAME}
    same = next(entry for entry in verdicts.values() if entry.verdict is Verdict.SAME)
    assert same.same_as in verdicts
    leader = verdicts[same.same_as]
    assert leader.n_tested == 2, "the other of the two was asked as well, and counts as a question"


def test_accept__after_many_questions__pays_for_all_of_them(world_workspace):
    alone = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann").evidence
    words = ["dark", "striped", "large", "on grass", "two", "blue", "small", "checked"]
    for word in words:
        check_phrase(world_workspace, "disc", word, threshold=None, by="ann")
    record = proven(world_workspace, world_workspace.record())
    (after,) = record.evidence
    assert after.n_tested == 1 + len(words)
    assert after.q_value == pytest.approx(min(1.0, alone.p_value * (1 + len(words))))
    assert proven(world_workspace, record).evidence == record.evidence


def test_accept__cross_fit__questions_concern_the_first_turn_only(open_world):
    workspace = open_world(scheme="cross-fit")
    found = accept_phrase(workspace, "disc", "green", threshold=None, by="ann")
    assert found.evidence.q_value == pytest.approx(2 * found.evidence.p_value)
    check_phrase(workspace, "disc", "dark", threshold=None, by="ann")
    (after,) = proven(workspace, workspace.record()).evidence
    assert after.q_value == pytest.approx(4 * found.evidence.p_value)


def test_accept__nothing_to_accept__is_refused(world_workspace):
    for threshold in (-1.5, 1.5):
        with pytest.raises(DataError, match="some samples"):
            accept_phrase(world_workspace, "disc", "green", threshold=threshold, by="ann")
    assert world_workspace.record() is None


def test_accept__run_of_other_samples__starts_a_new_run(world_workspace):
    first = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    old = world_workspace.record().slices[0]
    elsewhere = old.model_copy(update={"found_on": old.found_on.model_copy(update={"digest": "gone"})})
    changed_run(world_workspace, lambda record: record.model_copy(update={"slices": (elsewhere,), "evidence": ()}))
    again = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    assert again.run_id != first.run_id
    assert evidence_of(world_workspace.record(), again.slice_id).verdict is Verdict.CONFIRMED


def test_with_slices__taken_out_again__still_counts_as_a_question(world_workspace):
    dark = phrase_slice(world_workspace, "disc", "dark", phrase_score(world_workspace, "disc", "dark").threshold, is_own=False)
    with_slices(world_workspace, [dark], by="ann")
    changed_run(world_workspace, lambda record: proven(world_workspace, record.model_copy(update={"slices": ()})))
    found = accept_phrase(world_workspace, "disc", "green", threshold=None, by="ann")
    assert found.evidence.n_tested == 2
    assert question_of(dark) == ("disc", "dark", None)
    with pytest.raises(DataError, match="no slice"):
        slice_of(world_workspace.record(), dark.slice_id)
