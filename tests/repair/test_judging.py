"""Repairs in the ledger: the first keeps its power, the same again is free, and many of them pay."""

import numpy as np
import pytest
from tests.run.test_ledger import _data

from weakspot.core.evidence import Interval
from weakspot.core.questions import spending_share
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairPlan, RepairResult
from weakspot.core.slices import DataUse
from weakspot.core.statistics import mcnemar_p
from weakspot.repair.stage import judged_repairs
from weakspot.run.ledger import Ledger
from weakspot.store.project import ProjectStore

KINDS = (GroupKind.OVERALL, GroupKind.SLICE, GroupKind.CLASS, GroupKind.FORMERLY_WRONG)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(store=ProjectStore.create(tmp_path), data=_data(0, 100), correction="fwer")


def _changes(name, p_value):
    return tuple(
        GroupChange(
            group=kind.value,
            kind=kind,
            n_samples=50,
            right_before=20,
            right_after=30,
            gained=10,
            lost=0,
            interval_before=Interval(low=0.0, high=1.0),
            interval_after=Interval(low=0.0, high=1.0),
            p_value=p_value,
            question=f"{name} {kind.value}" if kind in KINDS[:2] else "",
        )
        for kind in KINDS
    )


def _result(*arms):
    return RepairResult(
        plan=RepairPlan(slice_ids=("s",), repairer="one"),
        measured_on=DataUse(name="test", n_samples=50, digest="d"),
        arms=tuple(
            RepairArm(
                arm=name,
                is_baseline=name.startswith("baseline"),
                note="",
                n_trained=1,
                changes=_changes(name, p_value),
            )
            for name, p_value in arms
        ),
    )


def _q_values(result, place=0):
    return [change.q_value for change in result.arms[place].changes]


def test_judged_repairs__first_one__keeps_nearly_its_power_whatever_baselines_stand_beside(ledger):
    arms = [("one", 0.02), *((f"baseline {number}", 0.5) for number in range(4))]
    (judged,) = judged_repairs([_result(*arms)], ledger)
    expected = 0.02 / spending_share(1)
    assert _q_values(judged) == pytest.approx([expected, expected, expected, None])
    assert judged.arms[0].changes[0].chance == pytest.approx(expected)
    assert "1 batch of questions (10 in all)" in judged.notes[-1]


def test_judged_repairs__same_again__is_free(ledger):
    first = judged_repairs([_result(("one", 0.02))], ledger)
    assert judged_repairs([_result(("one", 0.02))], ledger) == first
    assert ledger.standing().n_batches == 1


def test_judged_repairs__repeated_with_other_settings__each_pays_more(ledger):
    for number in range(3):
        (judged,) = judged_repairs([_result((f"try {number}", 0.02))], ledger)
        share = spending_share(number + 1)
        assert _q_values(judged)[:3] == pytest.approx([min(1.0, 0.02 / share)] * 3)


def test_judged_repairs__several_strategies__are_corrected_together_and_classes_with_them(ledger):
    results = [_result(("one", 0.001), ("baseline", 0.9)), _result(("two", 0.5))]
    judged = judged_repairs(results, ledger)
    expected = 2 * 0.001 / spending_share(1)
    assert _q_values(judged[0])[:3] == pytest.approx([expected] * 3)
    assert _q_values(judged[1])[:2] == pytest.approx([0.5 / spending_share(1)] * 2)


def test_judged_repairs__nothing_changes_twenty_repairs__any_false_change_is_rare(tmp_path):
    random = np.random.default_rng(3)
    n_false = 0
    for number in range(60):
        store = ProjectStore.create(tmp_path / str(number))
        own = Ledger(store=store, data=_data(0, 100), correction="fwer")
        gained = random.binomial(20, 0.5, 20)
        found = [
            judged_repairs([_result((f"try {place}", mcnemar_p(int(one), 20 - int(one))))], own)
            for place, one in enumerate(gained)
        ]
        n_false += any(_q_values(judged[0])[0] <= 0.05 for judged in found)
    assert n_false <= 6
