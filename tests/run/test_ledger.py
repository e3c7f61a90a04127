"""The ledger: what was asked stays asked, costs once, and survives whatever happens to its file."""

import json
import multiprocessing

import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.questions import spending_share
from weakspot.run.ledger import LEDGER_FILE, AskedData, AskedTest, Ledger
from weakspot.store.project import ProjectStore


def _data(first, last, *, wrong=None, labels=0):
    names = [f"{number:04d}" for number in range(first, last)]
    answers = None if wrong is None else np.isin(np.arange(len(names)), [*wrong]).astype(np.int64)
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        splits=[Split.VALIDATION] * len(names),
        labels=[labels] * len(names),
        content_hashes=[f"{name} {answers}" for name in names],
        sample_ids=names,
        predictions=answers,
    )
    return AskedData.of(dataset, np.arange(len(names)))


@pytest.fixture
def store(tmp_path):
    return ProjectStore.create(tmp_path)


def _ledger(store, data=None, **changes):
    return Ledger(store=store, data=data or _data(0, 100), **changes)


def _ask(ledger, *p_values, prefix=""):
    tests = [AskedTest(key=f"{prefix}{p_value}", p_value=p_value) for p_value in p_values]
    return ledger.ask(tests, source="test")


def test_ask__first_batch__spends_its_share(store):
    small, large = _ask(_ledger(store), 0.01, 0.5)
    assert small.q_value == pytest.approx(0.02 / 0.8)
    assert (small.is_found, large.is_found) == (True, False)
    assert (small.batch, small.n_tested, small.share) == (1, 2, 0.8)


def test_ask__later_batch__needs_a_smaller_p(store):
    ledger = _ledger(store, correction="fwer")
    _ask(ledger, 0.9)
    (again,) = _ask(ledger, 0.01, prefix="second ")
    assert again.q_value == pytest.approx(0.01 / spending_share(2))
    assert not again.is_found


def test_ask__same_question_again__costs_nothing_and_keeps_its_answer(store):
    ledger = _ledger(store)
    (first,) = _ask(ledger, 0.02)
    written = (store.root / LEDGER_FILE).read_bytes()
    _, once_more = _ask(ledger, 0.02, 0.02)
    assert once_more == first
    assert (store.root / LEDGER_FILE).read_bytes() == written
    _ask(ledger, 1e-9, prefix="other ")
    assert ledger.recall(["0.02", "never"]) == {"0.02": first}


def test_ask__same_key_with_another_p__the_first_one_counts(store):
    ledger = _ledger(store)
    ledger.ask([AskedTest(key="one", p_value=0.6)], source="test")
    (answer,) = ledger.ask([AskedTest(key="one", p_value=1e-9)], source="test")
    assert answer.p_value == 0.6
    assert not answer.is_found


def test_ask__old_and_new_questions_together__only_new_ones_are_a_batch(store):
    ledger = _ledger(store, correction="fwer")
    _ask(ledger, 0.5, 0.6)
    answers = ledger.ask(
        [AskedTest(key="0.5", p_value=0.5), AskedTest(key="new", p_value=0.001)], source="test"
    )
    assert [(one.batch, one.n_tested) for one in answers] == [(1, 2), (2, 1)]


def test_ask__fresh_samples__have_the_full_level(store):
    _ask(_ledger(store), 0.9)
    (fresh,) = _ask(_ledger(store, _data(500, 600)), 0.9, prefix="x")
    assert fresh.batch == 1


@pytest.mark.parametrize("bounds", [(0, 101), (0, 1000), (40, 140)])
def test_ask__mostly_the_same_samples__are_not_fresh(store, bounds):
    _ask(_ledger(store), 0.9)
    (later,) = _ask(_ledger(store, _data(*bounds)), 0.9, prefix="x")
    assert later.batch == 2


def test_ask__few_samples_in_common__are_fresh(store):
    _ask(_ledger(store), 0.9)
    (later,) = _ask(_ledger(store, _data(80, 1000)), 0.9, prefix="x")
    assert later.batch == 1


def test_read__last_line_cut_off__is_as_if_never_asked(store):
    ledger = _ledger(store)
    (first,) = _ask(ledger, 0.02)
    path = store.root / LEDGER_FILE
    whole = path.read_bytes()
    _ask(ledger, 0.5)
    path.write_bytes(path.read_bytes()[:-9])
    assert ledger.standing().n_batches == 1
    _ask(ledger, 0.7)
    assert path.read_bytes().startswith(whole)
    assert [json.loads(line) for line in path.read_text().splitlines()]
    assert ledger.standing().n_batches == 2
    assert ledger.recall(["0.02"])["0.02"] == first


def test_read__line_that_cannot_be_read__counts_as_asked_and_changes_no_earlier_answer(store):
    ledger = _ledger(store)
    (first,) = _ask(ledger, 0.02)
    with (store.root / LEDGER_FILE).open("a") as stream:
        stream.write("{broken\n")
    (later,) = _ask(ledger, 0.5)
    assert later.batch == 3
    assert ledger.recall(["0.02"])["0.02"] == first


def test_ask__families__divide_what_the_batch_may_spend(store):
    tests = [AskedTest(key=str(number), p_value=0.004, family=number) for number in (0, 1)]
    answers = _ledger(store, correction="fwer").ask(tests, source="test", parts=(0.5, 0.5))
    assert [one.q_value for one in answers] == pytest.approx([0.004 / 0.4] * 2)
    assert [one.share for one in answers] == [0.4, 0.4]


def test_standing__in_plain_words(store):
    ledger = _ledger(store)
    assert ledger.standing().sentence == (
        "Nothing was asked of these 100 samples yet; the first batch of questions may spend 80 % of the error rate of 5 %, "
        "so a single question is a finding at p ≤ 0.04."
    )
    _ask(ledger, 0.5, 0.6)
    _ask(ledger, 0.7)
    standing = ledger.standing()
    assert standing.largest_p == pytest.approx(0.05 * spending_share(3))
    assert standing.sentence == (
        "2 batches of questions (3 in all) were asked of these 100 samples; the next may spend 2.7 % of the error rate of 5 %, "
        "so a single question is a finding at p ≤ 0.0014. The same question again is free; fresh samples restore the full level."
    )


def test_ask__another_classifier__has_an_error_rate_of_its_own(store):
    draws = np.random.default_rng(0)
    datas = [_data(0, 100, wrong=draws.permutation(100)[:20].tolist()) for _ in range(50)]
    for number, data in enumerate(datas):
        (first,) = _ask(_ledger(store, data), 0.01, prefix=f"{number} ")
        assert (first.batch, first.is_found) == (1, True)
    standing = _ledger(store, datas[0]).standing()
    assert (standing.n_batches, standing.n_other_classifiers) == (1, 49)
    assert "each has an error rate of its own" in standing.sentence


@pytest.mark.parametrize("changed", [{"labels": 1}, {"wrong": range(1, 20)}, {"wrong": None}])
def test_ask__same_classifier_with_other_labels_or_a_prediction_more_or_less__is_the_same(
    store, changed
):
    _ask(_ledger(store, _data(0, 100, wrong=range(20))), 0.9)
    (later,) = _ask(_ledger(store, _data(0, 100, **{"wrong": range(20), **changed})), 0.8)
    assert later.batch == 2


def test_note__comparison__is_counted_once_and_spends_nothing(store):
    tests = [AskedTest(key=f"drop {number}", p_value=0.001) for number in range(3)]
    ledger = _ledger(store)
    assert [ledger.note(tests, source="check") for _ in range(2)] == [1, 1]
    assert ledger.note([AskedTest(key="other", p_value=1.0)], source="check") == 2
    standing = ledger.standing()
    assert (standing.n_batches, standing.n_questions, standing.n_checks) == (0, 0, 2)
    assert "2 comparisons of two classifiers on them promise for themselves only." in (
        standing.sentence
    )
    (first,) = _ask(ledger, 0.01)
    assert (first.batch, first.is_found) == (1, True)
    assert _ledger(store, _data(0, 100, wrong=range(50))).standing().n_checks == 2
    assert _ledger(store, _data(500, 600)).standing().n_checks == 0


def test_standing__next_question_at_its_p__is_just_found(store):
    ledger = _ledger(store)
    _ask(ledger, 1e-9, 0.4)
    (answer,) = _ask(ledger, ledger.standing().largest_p * 0.999)
    assert answer.is_found


def _ask_often(folder, name):
    ledger = _ledger(ProjectStore.open(folder))
    for number in range(5):
        ledger.ask([AskedTest(key=f"{name} {number}", p_value=0.5)], source="test")


def test_ask__several_processes__lose_nothing(store):
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_ask_often, args=(store.root, f"worker {number}"))
        for number in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert (_ledger(store).standing().n_questions, _ledger(store).standing().n_batches) == (10, 10)
