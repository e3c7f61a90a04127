from dataclasses import replace

import numpy as np
import pytest
from preflight.worlds import HEALTHY, ORDERS, disordered_answers, healthy_answers

from weakspot.core.run import CheckState
from weakspot.run.preflight.classifier import LabelledAnswers, check_class_order, named_outputs


def _answers(confusion, names="abcdef", *, training=()):
    """Return answers with so many samples of every true class (rows) taken for every class (columns)."""
    pairs = [
        (label, predicted)
        for label, row in enumerate(confusion)
        for predicted, number in enumerate(row)
        for _ in range(number)
    ]
    labels, predictions = np.array(pairs).T
    is_training = np.zeros(len(pairs), dtype=np.bool_)
    is_training[list(training)] = True
    return LabelledAnswers(
        class_names=tuple(names[: len(confusion)]),
        labels=labels,
        predictions=predictions,
        is_training=is_training,
    )


def _checked(confusion, **options):
    answers = _answers(confusion, **options)
    return check_class_order(answers, answers.class_names)


def test_check_class_order__shifted_by_one():
    check, order = _checked([[0, 18, 2], [1, 0, 19], [20, 0, 0]])
    assert check.state is CheckState.PROBLEM
    assert check.sentence == (
        "The class names are in the wrong order: 0 % right as named, 95 % if every output means the class before it (60 samples)."
    )
    assert named_outputs(order, ("a", "b", "c"), ("a", "b", "c")) == ("c", "a", "b")


def test_check_class_order__any_other_order_is_tried_on_the_other_half():
    confusion = np.zeros((5, 5), dtype=int)
    for label, called in enumerate((2, 0, 4, 1, 3)):
        confusion[label, called] = 16
    check, order = _checked(confusion.tolist())
    assert check.state is CheckState.PROBLEM
    assert "(40 samples that this was not chosen on)" in check.sentence
    assert order.meant.tolist() == [1, 3, 0, 4, 2]


def test_check_class_order__training_decides__although_a_class_fails_in_evaluation():
    # Every output means the class before it; in evaluation the first class is taken for another, whose output bears its name.
    training = _answers([[0, 15, 0], [0, 0, 15], [15, 0, 0]])
    evaluated = _answers([[30, 0, 0], [0, 0, 30], [30, 0, 0]])
    answers = LabelledAnswers(
        class_names=("a", "b", "c"),
        labels=np.concatenate([training.labels, evaluated.labels]),
        predictions=np.concatenate([training.predictions, evaluated.predictions]),
        is_training=np.arange(135) < 45,
    )
    check, order = check_class_order(answers, answers.class_names)
    assert check.state is CheckState.PROBLEM
    assert named_outputs(order, ("a", "b", "c"), ("a", "b", "c")) == ("c", "a", "b")
    alone = answers.only(~answers.is_training)
    assert check_class_order(alone, alone.class_names)[0].state is not CheckState.PROBLEM


@pytest.mark.parametrize(
    "confusion",
    [
        [[2, 50, 0, 0], [1, 12, 0, 0], [0, 0, 40, 0], [0, 0, 0, 40]],  # a whole class fails
        [[0, 0, 1], [0, 0, 0], [0, 59, 0]],  # one that fails says nothing of the others
        [[60, 140, 0], [140, 60, 0], [0, 0, 200]],  # two look alike
    ],
)
def test_check_class_order__failures_that_are_no_wrong_order(confusion):
    check, order = _checked(confusion)
    assert (check.state, order) == (CheckState.OK, None)


def test_check_class_order__two_of_many_that_are_exchanged_are_worth_a_look():
    exchanged = [
        [1, 39, 0, 0, 0],
        [38, 2, 0, 0, 0],
        [0, 0, 40, 0, 0],
        [0, 0, 0, 40, 0],
        [0, 0, 0, 0, 40],
    ]
    check, order = _checked(exchanged)
    assert (check.state, order) == (CheckState.NOTICE, None)
    assert check.short == "a, b look exchanged"


def test_check_class_order__evaluation_of_another_kind_is_no_wrong_order():
    # In training the names are right; only evaluation is turned round.
    right, turned = _answers([[30, 0], [0, 30]]), _answers([[0, 120], [120, 0]])
    answers = replace(
        right,
        labels=np.concatenate([right.labels, turned.labels]),
        predictions=np.concatenate([right.predictions, turned.predictions]),
        is_training=np.arange(300) < 60,
    )
    check, order = check_class_order(answers, ("a", "b"))
    assert check.state is not CheckState.PROBLEM
    assert order is None


def test_check_class_order__numbers_in_the_order_of_letters():
    names = tuple(str(number) for number in range(12))
    called = [sorted(names).index(name) for name in names]
    confusion = np.zeros((12, 12), dtype=int)
    outputs = sorted(names)
    for code in range(12):
        # Output j is called outputs[j], and means j.
        confusion[code, names.index(outputs[code])] = 6
    check, order = check_class_order(_answers(confusion.tolist(), names), outputs)
    assert "in the order of their numbers" in check.sentence
    assert named_outputs(order, outputs, names) == names
    assert called != list(range(12))


def test_check_class_order__too_few_samples_say_nothing():
    assert _checked([[0, 5], [6, 0]]) == (None, None)


@pytest.mark.parametrize("kind", HEALTHY)
def test_check_class_order__healthy_classifiers(kind):
    found = [healthy_answers(kind, seed) for seed in range(20)]
    states = [check_class_order(one, one.class_names)[0] for one in found]
    assert sum(check is not None and check.state is CheckState.PROBLEM for check in states) <= 1


@pytest.mark.parametrize("kind", ORDERS)
def test_check_class_order__planted_orders(kind):
    found = [disordered_answers(kind, seed) for seed in range(20)]
    states = [check_class_order(answers, outputs)[0].state for answers, _, outputs in found]
    assert states.count(CheckState.PROBLEM) >= 12
