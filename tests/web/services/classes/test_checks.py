import json

import pytest

from weakspot.core.errors import DataError
from weakspot.core.evidence import Verdict
from weakspot.core.questions import spending_share
from weakspot.core.run import DecisionKind
from weakspot.run.ledger import LEDGER_FILE
from weakspot.web.services.classes import phrase_score
from weakspot.web.services.phrase_checks import accept_phrase, check_phrase, phrase_slice
from weakspot.web.services.slice_editing import (
    change_run,
    decision,
    evidence_of,
    prove,
    slice_of,
    with_slices,
)


def batches_of(workspace):
    path = workspace.project.folder / LEDGER_FILE
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line["batch"] for line in lines if "batch" in line]


def check(workspace, phrase="green", *, threshold=None, by="ann"):
    return check_phrase(workspace, "disc", phrase, threshold=threshold, by=by)


def accept(workspace, phrase="green", *, threshold=None, by="ann", reason=""):
    return accept_phrase(workspace, "disc", phrase, threshold=threshold, by=by, reason=reason)


def test_check__same_question_twice__is_one_look_with_the_same_answer(world_workspace):
    first = check(world_workspace)
    best = phrase_score(world_workspace, "disc", "green").threshold
    second = check(world_workspace, threshold=best, by="ben")
    assert first == second
    assert (first.n_looks, len(batches_of(world_workspace))) == (1, 1)
    assert "1 question" in first.left
    assert first.p_after_looks < 0.01
    assert first.confirmation.inside.value > first.confirmation.outside.value + 0.2
    other = check(world_workspace, threshold=best + 0.05)
    assert other.n_looks == 2
    assert [batch["by"] for batch in batches_of(world_workspace)] == ["ann", "ann"]
    assert {batch["source"] for batch in batches_of(world_workspace)} == {"hypothesis"}


def test_accept__project_without_runs__starts_one_with_a_proven_slice(world_workspace):
    checked = check(world_workspace)
    found = accept(world_workspace, reason="they look like pears")
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
    assert found.evidence.q_value == checked.p_after_looks
    assert len(batches_of(world_workspace)) == 1, "it was checked before, so accepting asks nothing"
    assert "green" in found.sentences[0]


def test_accept__twice__changes_nothing(world_workspace):
    first = accept(world_workspace)
    again = accept(world_workspace, " green ", threshold=first.threshold, by="ben")
    record = world_workspace.record()
    assert (again.slice_id, again.run_id) == (first.slice_id, first.run_id)
    assert again.evidence == first.evidence
    assert len(record.slices) == len(record.decisions) == len(batches_of(world_workspace)) == 1


def test_accept__dismissed_before__is_restored(world_workspace):
    found = accept(world_workspace)
    dismissal = decision(found.slice_id, DecisionKind.DISMISSED, by="ben", reason="no")
    change_run(
        world_workspace,
        lambda record: record.model_copy(update={"decisions": (*record.decisions, dismissal)}),
    )
    assert world_workspace.record().dismissed()
    accept(world_workspace)
    assert not world_workspace.record().dismissed()


def test_accept__own_threshold__is_another_question_and_its_own_slice(world_workspace):
    best = accept(world_workspace)
    narrower = accept(world_workspace, threshold=best.threshold + 0.15)
    assert narrower.slice_id != best.slice_id
    assert narrower.threshold == best.threshold + 0.15
    assert len(batches_of(world_workspace)) == 2


def test_accept__nearly_the_same_members__is_tested_once(world_workspace):
    best = accept(world_workspace)
    control = accept(world_workspace, threshold=best.threshold + 1e-4)
    verdicts = {entry.slice_id: entry for entry in world_workspace.record().evidence}
    found = {verdicts[one.slice_id].verdict for one in (best, control)}
    assert found == {Verdict.CONFIRMED, Verdict.SAME}
    same = next(entry for entry in verdicts.values() if entry.verdict is Verdict.SAME)
    assert same.same_as in verdicts


def test_accept__after_many_questions__pays_for_all_of_them(world_workspace):
    words = ["dark", "striped", "large", "on grass", "two", "blue", "small", "checked"]
    for word in words:
        check(world_workspace, word)
    n_batches, n_found = len(batches_of(world_workspace)), world_workspace.ledger.standing().n_found
    late = accept(world_workspace).evidence
    assert late.batch == n_batches + 1
    paid = late.p_value / (spending_share(late.batch) * (n_found + 1))
    assert late.q_value == pytest.approx(max(late.p_value, min(1.0, paid)))


def test_accept__before_many_questions__keeps_its_answer(world_workspace):
    first = accept(world_workspace).evidence
    for word in ("dark", "striped", "large"):
        check(world_workspace, word)
    record = prove(world_workspace, world_workspace.record())
    assert record.evidence == (first,)


def test_accept__cross_fit__folds_divide_what_a_batch_may_spend(open_world):
    workspace = open_world(scheme="cross-fit")
    found = accept(workspace)
    assert found.evidence.q_value == pytest.approx(2 * found.evidence.p_value / spending_share(1))


def test_accept__nothing_to_accept__is_refused(world_workspace):
    for threshold in (-1.5, 1.5):
        with pytest.raises(DataError, match="some samples"):
            accept(world_workspace, threshold=threshold)
    assert world_workspace.record() is None


def test_accept__run_of_other_samples__starts_a_new_run(world_workspace):
    first = accept(world_workspace)
    old = world_workspace.record().slices[0]
    gone = old.found_on.model_copy(update={"digest": "gone"})
    changed = {"slices": (old.model_copy(update={"found_on": gone}),), "evidence": ()}
    change_run(world_workspace, lambda record: record.model_copy(update=changed))
    again = accept(world_workspace)
    assert again.run_id != first.run_id
    assert evidence_of(world_workspace.record(), again.slice_id).verdict is Verdict.CONFIRMED


def test_with_slices__taken_out_again__still_counts_as_a_question(world_workspace):
    best = phrase_score(world_workspace, "disc", "dark").threshold
    dark = phrase_slice(world_workspace, "disc", "dark", best, is_own=False)
    with_slices(world_workspace, [dark], by="ann")
    change_run(
        world_workspace,
        lambda record: prove(world_workspace, record.model_copy(update={"slices": ()})),
    )
    found = accept(world_workspace)
    assert found.evidence.batch == 2
    with pytest.raises(DataError, match="no slice"):
        slice_of(world_workspace.record(), dark.slice_id)
