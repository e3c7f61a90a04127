"""Verdicts that are read off the ledger."""

import numpy as np
import pytest
from tests.run.test_ledger import _data

from weakspot.core.evidence import Verdict
from weakspot.core.questions import spending_share
from weakspot.run.ledger import AskedTest, Ledger
from weakspot.run.verdicts import CLASS_PART, Asking, judged, question_of, was_tested
from weakspot.store.project import ProjectStore
from weakspot.testing.examples import (
    CRITERION,
    confirmation_samples,
    discovery_samples,
    example_slices,
)
from weakspot.verify.holdout import HoldoutVerifier


@pytest.fixture(scope="module")
def measured():
    return HoldoutVerifier().verify(
        example_slices(),
        discovery=discovery_samples(),
        confirmation=confirmation_samples(),
        criterion=CRITERION,
    )


@pytest.fixture
def asking(tmp_path):
    ledger = Ledger(store=ProjectStore.create(tmp_path), data=_data(0, 100), correction="fwer")
    return Asking(ledger=ledger, source="test")


def _with(entry, **changes):
    return entry.model_copy(update=changes)


def test_judged__first_time__confirmed_at_its_share(measured, asking):
    ((good, bad),) = judged([measured], asking, min_gap=0.0)
    assert [good.verdict, bad.verdict] == ["confirmed", "not confirmed"]
    assert (good.batch, good.n_tested) == (1, 2)
    assert good.q_value > good.p_value


def test_judged__after_many_questions__needs_more(measured, asking):
    entry = _with(measured[0], p_value=0.01, weight=1.0, question="late", n_tested=1)
    for number in range(5):
        asking.ledger.ask([AskedTest(key=str(number), p_value=1.0)], source="test")
    ((late,),) = judged([[entry]], asking, min_gap=0.0)
    assert (late.verdict, late.batch) == (Verdict.NOT_CONFIRMED, 6)


def test_judged__confirmed_before__stays_confirmed(measured, asking):
    first = judged([measured], asking, min_gap=0.0)
    for number in range(20):
        asking.ledger.ask([AskedTest(key=str(number), p_value=1.0)], source="test")
    assert judged([measured], asking, min_gap=0.0) == first


def test_judged__gap_too_small_to_publish__is_asked_as_nothing(measured, asking):
    ((good, _),) = judged([measured], asking, min_gap=0.99)
    assert (good.verdict, good.q_value) == (Verdict.NOT_CONFIRMED, 1.0)


def test_judged__tested_in_place_of_a_confirmed_one_and_fails__the_confirmed_one_stands(
    measured, asking
):
    ((good, _),) = judged([measured], asking, min_gap=0.0)
    leader = _with(measured[1], slice_id="leader", question="leader", p_value=0.9, n_tested=1)
    same = _with(
        measured[0], verdict=Verdict.SAME, same_as="leader", p_value=1.0, q_value=1.0, batch=0
    )
    ((_, kept),) = judged([[leader, same]], asking, min_gap=0.0)
    assert kept == good
    never = _with(same, question="never asked")
    ((_, still),) = judged([[leader, never]], asking, min_gap=0.0)
    assert still == never


def test_judged__folds__divide_the_share(measured, asking):
    entry = _with(measured[0], p_value=0.002, weight=1.0, n_tested=1)
    folds = judged(
        [[_with(entry, question="a")], [_with(entry, question="b")]],
        asking,
        min_gap=0.0,
        parts=(0.5, 0.5, 1.0),
    )
    assert [fold[0].q_value for fold in folds] == pytest.approx([0.002 / 0.4] * 2)
    assert {fold[0].batch for fold in folds} == {1}


def test_question_of__verifier_without_names__by_slice_and_samples(measured):
    entry = _with(measured[0], question="")
    assert question_of(entry) == f"{entry.slice_id} {entry.measured_on.digest}"
    assert np.char.str_len(question_of(measured[0])) == 24


def test_was_tested__own_test_or_confirmed_in_another_fold(measured):
    assert was_tested(measured[0])
    assert not was_tested(_with(measured[0], verdict=Verdict.SAME, q_value=1.0))
    assert was_tested(_with(measured[0], verdict=Verdict.SAME, q_value=0.01))


def test_judged__tests_that_are_not_told__take_their_part_and_cost_nothing_again(measured, asking):
    entry = _with(measured[0], p_value=0.002, weight=1.0, n_tested=4)
    ((first,),) = judged([[entry]], asking, min_gap=0.0)
    assert first.q_value == pytest.approx(4 * 0.002 / 0.8)
    assert judged([[entry]], asking, min_gap=0.0) == ((first,),)
    assert asking.ledger.standing().n_batches == 1


def test_judged__questions_about_classes__have_a_part_of_their_own(measured, asking):
    alone = judged([measured], Asking(ledger=asking.ledger, source="test"), min_gap=0.0)
    fresh = Ledger(store=asking.ledger.store, data=_data(1000, 1100), correction="fwer")
    classes = (AskedTest(key="class a", p_value=1e-6), AskedTest(key="class b", p_value=1.0))
    beside = Asking(ledger=fresh, source="test", classes=classes)
    ((good, _),) = judged([measured], beside, min_gap=0.0)
    assert good.q_value == pytest.approx(alone[0][0].q_value / (1 - CLASS_PART))
    answers = fresh.recall(["class a", "class b"])
    assert answers["class a"].q_value == pytest.approx(2e-6 / (spending_share(1) * CLASS_PART))
    assert answers["class a"].batch == good.batch == 1


def test_judged__classes_asked_before__slices_have_it_all(measured, asking):
    classes = (AskedTest(key="class a", p_value=0.5),)
    asking = Asking(ledger=asking.ledger, source="test", classes=classes)
    judged([], asking, min_gap=0.0)
    judged([measured], asking, min_gap=0.0)
    assert asking.ledger._read().batches[1].parts == (1.0,)
