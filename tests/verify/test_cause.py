from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Cause, Verdict
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.cause import CauseFinder
from weakspot.verify.holdout import HoldoutVerifier

TOP_1 = FailureCriterion()


def _world(*, green_apples_training, green_pears_training, n_training=20, wrong=1):
    """Twenty apples and twenty pears in training, forty apples in evaluation of which twenty are green and fail."""
    greens = (
        [place < green_apples_training for place in range(n_training)]
        + [place < green_pears_training for place in range(n_training)]
        + [True] * 20
        + [False] * 20
    )
    labels = [0] * n_training + [1] * n_training + [0] * 40
    predictions = np.array([0] * n_training + [1] * n_training + [wrong] * 20 + [0] * 20)
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "melon"],
        labels=labels,
        predictions=predictions,
        splits=["train"] * (2 * n_training) + ["validation"] * 40,
        metadata={"is_green": greens},
    )
    training = SampleSet(dataset=dataset, rows=np.arange(2 * n_training), name="training")
    evaluation = SampleSet(dataset=dataset, rows=np.arange(2 * n_training, 2 * n_training + 40), name="evaluation")
    rule = ColumnRule(column="is_green", values=(True,))
    found = FailureSlice(class_name="apple", rule=rule, method="hand", found_on=DataUse(name="given", n_samples=0, digest="given"))
    return found, training, evaluation


def test_cause__rare_in_training():
    finding = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=5), TOP_1)
    assert finding.cause is Cause.RARE
    assert (finding.share_training, finding.share_evaluation) == (0.1, 0.5)
    assert (finding.dominant_prediction, finding.dominant_share) == ("pear", 1.0)
    assert (finding.in_training.count, finding.in_training.total) == (2, 20)
    assert (finding.rival, finding.in_rival.count) == ("pear", 5)
    assert finding.sentence == (
        "Such samples make up 10 % (2 of 20, interval 3–30 %) of apple in training and 50 % (20 of 40, interval 35–65 %) in "
        "evaluation. The same look is found on 25 % (5 of 20, interval 11–47 %) of the training samples of pear."
    )


def test_cause__cue_of_another_class():
    finding = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=18), TOP_1)
    assert finding.cause is Cause.SPURIOUS
    assert (finding.rival, finding.in_rival.value) == ("pear", 0.9)


def test_cause__a_cue_that_members_are_not_pulled_to_is_none():
    finding = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=18, wrong=2), TOP_1)
    assert finding.dominant_prediction == "melon"
    assert finding.cause is Cause.RARE


def test_cause__more_common_than_in_training():
    # Twelve of 100 in training are not rare, but 20 of 40 in evaluation are far more.
    finding = CauseFinder().cause(*_world(green_apples_training=12, green_pears_training=0, n_training=100), TOP_1)
    assert finding.cause is Cause.SHIFT
    assert CauseFinder(shift_ratio=0.1).cause(
        *_world(green_apples_training=12, green_pears_training=0, n_training=100), TOP_1
    ).cause is Cause.HARD  # fmt: skip


def test_cause__hard_although_common():
    finding = CauseFinder().cause(*_world(green_apples_training=10, green_pears_training=18), TOP_1)
    assert finding.cause is Cause.HARD


def test_cause__rare_everywhere_counts_as_rare():
    found, training, evaluation = _world(green_apples_training=0, green_pears_training=0)
    assert CauseFinder(shift_ratio=0.0).cause(found, training, evaluation, TOP_1).cause is Cause.RARE
    assert CauseFinder(shift_ratio=0.0, rare_share=0.0).cause(found, training, evaluation, TOP_1).cause is Cause.HARD


def test_cause__where_failures_go():
    pull = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=5), TOP_1).pull
    assert (pull.answer, pull.is_real) == ("pear", True)
    assert (pull.inside.count, pull.inside.total, pull.outside.count, pull.outside.total) == (20, 20, 0, 20)
    assert pull.sentence == (
        "“apple: unnamed (hand)” become pear: 100 % (20 of 20, interval 84–100 %), against 0 % (0 of 20, interval 0–16 %) of the "
        "other apple samples. 20 of the 20 failures inside are taken for pear."
    )


def test_cause__a_wrong_answer_that_does_not_stand_out():
    # Inside, failures go to pear and melon by halves, as they do outside.
    found, training, evaluation = _world(green_apples_training=2, green_pears_training=5)
    predictions = evaluation.dataset.predictions.copy()
    predictions[40:80] = [1, 2] * 10 + [1, 2] * 4 + [0] * 12
    changed = replace(evaluation, dataset=evaluation.dataset.with_outcomes(predictions=predictions))
    finding = CauseFinder().cause(found, training, changed, TOP_1)
    assert finding.pull.is_real is False
    assert finding.pull.sentence == (
        "No wrong answer stands out: the most frequent is pear, with 10 of 20 failures inside and 4 of 8 outside."
    )
    assert finding.in_rival is None


def test_cause__a_minority_answer_counts_if_it_is_the_slice_that_gets_it():
    # Inside, 9 of 20 failures become pear; outside, none of 12.
    found, training, evaluation = _world(green_apples_training=2, green_pears_training=5)
    predictions = evaluation.dataset.predictions.copy()
    predictions[40:80] = [1] * 9 + [2] * 8 + [3] * 3 + [2] * 12 + [0] * 8
    dataset = replace(evaluation.dataset, class_names=("apple", "pear", "melon", "plum")).with_outcomes(predictions=predictions)
    pull = CauseFinder().cause(found, replace(training, dataset=dataset), replace(evaluation, dataset=dataset), TOP_1).pull
    assert (pull.answer, pull.is_real, pull.among_failures.value) == ("pear", True, 0.45)


def test_cause__unknown_without_training_samples():
    found, training, evaluation = _world(green_apples_training=2, green_pears_training=5)
    finding = CauseFinder().cause(found, training.only(training.rows[:5]), evaluation, TOP_1)
    assert finding.cause is Cause.UNKNOWN
    assert finding.share_training is None
    assert finding.sentence.startswith("Too few training samples of apple")


def test_explain__only_confirmed_slices_get_a_cause():
    found, training, evaluation = _world(green_apples_training=2, green_pears_training=5)
    nothing = FailureSlice(
        class_name="apple", rule=ColumnRule(column="is_green", values=("never",)), method="hand", found_on=found.found_on
    )
    evidence = HoldoutVerifier().verify([found, nothing], discovery=training, confirmation=evaluation, criterion=TOP_1)
    explained = CauseFinder().explain([found, nothing], evidence, training=training, evaluation=evaluation, criterion=TOP_1)
    assert [entry.verdict for entry in explained] == [Verdict.CONFIRMED, Verdict.TOO_FEW]
    assert explained[0].cause.cause is Cause.RARE
    assert explained[1].cause is None
    assert explained[0].p_value == evidence[0].p_value


def test_cause__multi_label_slices_have_no_dominant_answer():
    greens = [True] * 2 + [False] * 18 + [True] * 10 + [False] * 10
    said = np.array([[True]] * 20 + [[False]] * 10 + [[True]] * 10)
    dataset = dataset_from_columns(
        class_names=["apple"], label_lists=[[0]] * 40, predicted_matrix=said, metadata={"is_green": greens}
    )
    found, _, _ = _world(green_apples_training=2, green_pears_training=0)
    present = found.model_copy(update={"side": "present"})
    samples = SampleSet(dataset=dataset, rows=np.arange(40))
    finding = CauseFinder().cause(present, samples.only(np.arange(20)), samples.only(np.arange(20, 40)), TOP_1)
    assert finding.cause is Cause.RARE
    assert finding.dominant_prediction is None


def test_cause__multi_label_cue_of_the_label_that_is_wrongly_given():
    # In training 9 of 10 samples with the label are green and 1 of 10 without; green ones without it get it in evaluation.
    greens = [True] * 9 + [False] * 10 + [True] + [True] * 10 + [False] * 10
    said = np.array([[True]] * 10 + [[False]] * 10 + [[True]] * 10 + [[False]] * 10)
    dataset = dataset_from_columns(
        class_names=["apple"], label_lists=[[0]] * 10 + [[]] * 30, predicted_matrix=said, metadata={"is_green": greens}
    )
    found, _, _ = _world(green_apples_training=2, green_pears_training=0)
    samples = SampleSet(dataset=dataset, rows=np.arange(40))
    halves = samples.only(np.arange(20)), samples.only(np.arange(20, 40))
    finding = CauseFinder().cause(found.model_copy(update={"side": Side.ABSENT}), *halves, TOP_1)
    assert finding.cause is Cause.SPURIOUS
    assert (finding.rival, finding.in_rival.value, finding.share_training) == ("apple", 0.9, 0.1)
    assert "of samples without apple in training" in finding.sentence
    assert CauseFinder(cue_share=0.95).cause(found.model_copy(update={"side": Side.ABSENT}), *halves, TOP_1).cause is Cause.RARE


def test_cause_finder__refuses_bad_settings():
    with pytest.raises(ConfigError, match="cue_share"):
        CauseFinder(cue_share=2.0)
