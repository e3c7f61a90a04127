import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Cause, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.cause import CauseFinder
from weakspot.verify.holdout import HoldoutVerifier

TOP_1 = FailureCriterion()


def _world(*, green_apples_training, green_pears_training, n_classes=3, wrong=1):
    """Twenty apples and twenty pears in training, forty apples in evaluation of which twenty are green and fail."""
    greens = (
        [place < green_apples_training for place in range(20)]
        + [place < green_pears_training for place in range(20)]
        + [True] * 20
        + [False] * 20
    )
    labels = [0] * 20 + [1] * 20 + [0] * 40
    predictions = np.array([0] * 20 + [1] * 20 + [wrong] * 20 + [0] * 20)
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "melon"][:n_classes],
        labels=labels,
        predictions=predictions,
        splits=["train"] * 40 + ["validation"] * 40,
        metadata={"is_green": greens},
    )
    training = SampleSet(dataset=dataset, rows=np.arange(40), name="training")
    evaluation = SampleSet(dataset=dataset, rows=np.arange(40, 80), name="evaluation")
    rule = ColumnRule(column="is_green", values=(True,))
    found = FailureSlice(class_name="apple", rule=rule, method="hand", found_on=DataUse(name="given", n_samples=0, digest="given"))
    return found, training, evaluation


def test_cause__rare_in_training():
    finding = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=5), TOP_1)
    assert finding.cause is Cause.RARE
    assert (finding.share_training, finding.share_evaluation) == (0.1, 0.5)
    assert (finding.dominant_prediction, finding.dominant_share) == ("pear", 1.0)
    assert finding.sentence == (
        "Such samples make up 10 % of apple in training and 50 % in evaluation. 100 % of the failures are taken for pear. "
        "The same look is found on 25 % of the training samples of pear."
    )


def test_cause__cue_of_another_class():
    finding = CauseFinder().cause(*_world(green_apples_training=2, green_pears_training=18), TOP_1)
    assert finding.cause is Cause.SPURIOUS


def test_cause__hard_although_common():
    finding = CauseFinder().cause(*_world(green_apples_training=10, green_pears_training=18), TOP_1)
    assert finding.cause is Cause.HARD


def test_cause__rare_everywhere_counts_as_rare():
    found, training, evaluation = _world(green_apples_training=0, green_pears_training=0)
    assert CauseFinder(rare_ratio=0.0).cause(found, training, evaluation, TOP_1).cause is Cause.RARE
    assert CauseFinder(rare_ratio=0.0, rare_share=0.0).cause(found, training, evaluation, TOP_1).cause is Cause.HARD


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


def test_cause_finder__refuses_bad_settings():
    with pytest.raises(ConfigError, match="cue_share"):
        CauseFinder(cue_share=2.0)
