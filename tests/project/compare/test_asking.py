import pytest
from tests.project.compare.test_across import _predictions
from tests.run.test_ledger import _data

from weakspot.core.questions import spending_share
from weakspot.project.comparison import (
    differences,
    judged_slices,
    measured_slices,
    note_differences,
)
from weakspot.run.ledger import AskedTest, Ledger
from weakspot.store.project import ProjectStore

NAMED = _predictions(questions={"weak": "on weak", "strong": "on strong"})


@pytest.fixture
def ledgers(tmp_path):
    store = ProjectStore.create(tmp_path)
    datas = {"weak": _data(0, 100, wrong=range(30)), "strong": _data(0, 100, wrong=range(50, 60))}
    return {("weak", name): Ledger(store=store, data=data) for name, data in datas.items()}


def test_judged_slices__each_classifier_has_its_account(ledgers):
    found = measured_slices([NAMED])
    weak, strong = judged_slices(found, [NAMED], ledgers)
    assert (weak.holds, strong.holds) == (True, False)
    assert weak.q_value == pytest.approx(weak.p_value / spending_share(1))
    assert [ledger.standing().n_batches for ledger in ledgers.values()] == [1, 1]


def test_judged_slices__asked_before__keeps_its_answer(ledgers):
    ledgers["weak", "weak"].ask([AskedTest(key="on weak", p_value=1.0)], source="verify")
    weak, _ = judged_slices(measured_slices([NAMED]), [NAMED], ledgers)
    assert (weak.q_value, weak.holds) == (1.0, False)


def test_judged_slices__too_few_samples__is_not_asked(ledgers):
    small = NAMED.model_copy(update={"inside": (True,) * 2 + (False,) * 38})
    assert not any(one.holds for one in judged_slices(measured_slices([small]), [small], ledgers))
    assert ledgers["weak", "weak"].standing().n_batches == 0


def test_note_differences__counted_once_and_spends_nothing(ledgers):
    for _ in range(2):
        note_differences(differences([NAMED]), [NAMED], ledgers)
    standing = ledgers["weak", "weak"].standing()
    assert (standing.n_checks, standing.n_batches) == (1, 0)
