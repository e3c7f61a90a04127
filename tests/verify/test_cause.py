from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import Cause, Verdict
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.rules import ColumnRule, IdRule, LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.cause import CauseFinder, is_larger
from weakspot.verify.cause_signs import CueSigns, stratified_p
from weakspot.verify.holdout import HoldoutVerifier

TOP_1 = FailureCriterion()


def _world(green_apples_training, green_pears_training, *, n_training=20, wrong=1):
    """Twenty apples and twenty pears in training, some of them green, forty apples in evaluation of which twenty are green and fail."""
    greens = (
        [
            None if green_apples_training is None else place < green_apples_training
            for place in range(n_training)
        ]
        + [place < green_pears_training for place in range(n_training)]
        + [True] * 20
        + [False] * 20
    )
    labels = [0] * n_training + [1] * n_training + [0] * 40
    predictions = np.array([0] * n_training + [1] * n_training + [wrong] * 20 + [0] * 20)
    training = build.samples(
        labels,
        class_names=["apple", "pear", "melon"],
        predictions=predictions,
        splits=["train"] * (2 * n_training) + ["validation"] * 40,
        metadata={"is_green": greens},
        rows=np.arange(2 * n_training),
        name="training",
    )
    evaluation = SampleSet(
        dataset=training.dataset,
        rows=np.arange(2 * n_training, 2 * n_training + 40),
        name="evaluation",
    )
    rule = ColumnRule(column="is_green", values=(True,))
    found = FailureSlice(
        class_name="apple",
        rule=rule,
        method="hand",
        found_on=DataUse(name="given", n_samples=0, digest="given"),
    )
    return found, training, evaluation


GREEN_APPLES = _world(0, 0)[0]


def _cause(found, training, evaluation, **options):
    return CauseFinder(**options).cause(found, training, evaluation, TOP_1)


def test_cause__rare_in_training():
    finding = _cause(*_world(2, 5))
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
    finding = _cause(*_world(2, 18))
    assert finding.cause is Cause.SPURIOUS
    assert (finding.rival, finding.in_rival.value) == ("pear", 0.9)


def test_cause__a_cue_that_members_are_not_pulled_to_is_none():
    finding = _cause(*_world(2, 18, wrong=2))
    assert finding.dominant_prediction == "melon"
    assert finding.cause is Cause.RARE


def test_cause__more_common_than_in_training():
    # Twelve of 100 in training are not rare, but 20 of 40 in evaluation are far more.
    finding = _cause(*_world(12, 0, n_training=100))
    assert finding.cause is Cause.SHIFT
    silent = _cause(*_world(12, 0, n_training=100), shift_ratio=0.1)
    assert silent.cause is Cause.UNKNOWN
    assert silent.signs == ("Training may have fewer of them; there are too few samples to tell.",)


def test_cause__hard_although_common():
    # Failures that go to several classes are neither look-alike classes nor labels of one other class.
    found, training, evaluation = _world(10, 18)
    predictions = np.array(evaluation.dataset.predictions)
    predictions[40:60:2] = 2
    spread = replace(
        evaluation, dataset=evaluation.dataset.with_predictions(predictions=predictions)
    )
    assert _cause(found, training, spread).cause is Cause.HARD


def test_cause__without_embeddings_one_wrong_answer_may_be_look_alike_classes():
    finding = _cause(*_world(10, 18))
    assert finding.cause is Cause.UNKNOWN
    assert "Without embeddings" in finding.sentence


def test_cause__rare_everywhere_counts_as_rare():
    found, training, evaluation = _world(0, 0)
    assert _cause(found, training, evaluation, shift_ratio=0.0).cause is Cause.RARE


def test_cause__a_column_that_training_lacks_says_nothing_of_training():
    found, training, evaluation = _world(None, 0, n_training=20)

    finding = _cause(found, training, evaluation)

    assert finding.cause is Cause.UNKNOWN
    assert finding.in_training is None


def test_cause__a_listing_says_nothing_of_training():
    found, training, evaluation = _world(0, 0)
    listed = IdRule(sample_ids=tuple(evaluation.dataset.sample_ids(evaluation.rows[:20])))
    finding = _cause(found.model_copy(update={"rule": listed}), training, evaluation)
    assert (finding.cause, finding.share_training) == (Cause.UNKNOWN, None)


def _table(*, works):
    """Sixty apples, pears and melons, no training: most pears are green, and green apples become pears; melons too if it works."""
    labels = np.repeat([0, 1, 2], 60)
    greens = np.concatenate([np.arange(60) < 12, np.arange(60) < 48, np.arange(60) < 20])
    answers = labels.copy()
    answers[:12] = 1
    answers[140:146] = 0
    if works:
        answers[120:132] = 1
    samples = build.samples(
        labels,
        class_names=["apple", "pear", "melon"],
        predictions=answers,
        splits=["validation"] * 180,
        metadata={"is_green": greens.tolist()},
        rows=np.arange(180),
    )
    return _cause(GREEN_APPLES, samples.only(samples.rows[:0]), samples)


def test_cause__a_table_without_training_rows_may_show_a_cue():
    finding = _table(works=True)
    assert (finding.cause, finding.rival) == (Cause.SPURIOUS, "pear")
    assert "third classes with this look are taken for pear in 12 of 20 cases" in finding.sentence
    silent = _table(works=False)
    assert silent.cause is Cause.UNKNOWN
    assert silent.sentence.endswith("training rows would tell.")


def _clouds(*, apart, kind_of_pears=0.3, kind_training=0.3, cue=False, seed=0):
    """Apples, pears and melons in a space; the odd ones lie along one axis, and odd apples become pears.

    Args:
        apart: distance of apples and pears; 0 for classes that look alike.
        kind_of_pears: share of odd pears in training.
        kind_training: share of odd apples in training.
        cue: whether odd melons become pears, too, and pears that are not odd fail.
        seed: of the noise.
    """
    draws = np.random.default_rng(seed)
    n_each = 200
    labels = np.tile(np.repeat([0, 1, 2], n_each), 2)
    is_training = np.arange(len(labels)) < 3 * n_each
    shares = np.where(is_training, np.array([kind_training, kind_of_pears, 0.3])[labels], 0.3)
    is_odd = draws.random(len(labels)) < shares
    embeddings = draws.standard_normal((len(labels), 8)) * 0.5
    embeddings[:, 0] += 6.0
    embeddings[:, 1] += apart * (labels == 1)
    embeddings[:, 2] += 4.0 * (labels == 2)
    embeddings[:, 3] += 4.0 * is_odd
    answers = labels.copy()
    answers[(labels == 0) & is_odd & (draws.random(len(labels)) < 0.7)] = 1
    if cue:
        answers[(labels == 2) & is_odd & (draws.random(len(labels)) < 0.6)] = 1
        answers[(labels == 1) & ~is_odd & (draws.random(len(labels)) < 0.4)] = 2
    if not apart:
        answers[(labels == 1) & (draws.random(len(labels)) < 0.4)] = 0
    samples = build.samples(
        labels,
        class_names=["apple", "pear", "melon"],
        predictions=answers,
        metadata={"is_green": is_odd.tolist()},
        embeddings=embeddings,
    )
    return samples.only(samples.rows[is_training]), samples.only(samples.rows[~is_training])


def _along(threshold=2.0):
    rule = LinearRule(
        encoder_id="toy",
        direction=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0),
        threshold=threshold,
        normalise=False,
    )
    found = GREEN_APPLES
    return found.model_copy(update={"rule": rule})


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"apart": 4.0}, Cause.HARD),
        ({"apart": 0.0}, Cause.CONFUSABLE),
        ({"apart": 4.0, "kind_training": 0.01}, Cause.RARE),
        ({"apart": 4.0, "kind_training": 0.02, "kind_of_pears": 0.9, "cue": True}, Cause.SPURIOUS),
    ],
)
def test_cause__of_a_direction(given, cause):
    for found in (_along(), GREEN_APPLES):
        finding = _cause(found, *_clouds(**given))
        assert finding.cause is cause
    if cause is Cause.CONFUSABLE:
        assert finding.either.value >= 0.5
        assert "lie where training has apple and pear alike" in finding.sentence


def test_cause__a_direction_on_which_another_class_lies_is_no_cue():
    # All pears lie far along the direction, which says nothing of what works as a cue.
    training, evaluation = _clouds(apart=4.0, kind_of_pears=0.3)
    embeddings = np.array(training.space("clip").embeddings)
    embeddings[training.dataset.labels == 1, 3] += 5.0
    spaces = {"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)}
    finding = _cause(_along(), replace(training, spaces=spaces), replace(evaluation, spaces=spaces))
    assert finding.in_rival.value == 1.0
    assert finding.cause is Cause.HARD


def test_cause__where_failures_go():
    confused_with = _cause(*_world(2, 5)).confused_with
    assert (confused_with.answer, confused_with.is_real) == ("pear", True)
    assert (
        confused_with.inside.count,
        confused_with.inside.total,
        confused_with.outside.count,
        confused_with.outside.total,
    ) == (20, 20, 0, 20)
    assert confused_with.sentence == (
        "“apple: unnamed (hand)” become pear: 100 % (20 of 20, interval 84–100 %), against 0 % (0 of 20, interval 0–16 %) of the "
        "other apple samples. 20 of the 20 failures inside are taken for pear."
    )


def test_cause__a_wrong_answer_that_does_not_stand_out():
    # Inside, failures go to pear and melon by halves, as they do outside.
    found, training, evaluation = _world(2, 5)
    predictions = evaluation.dataset.predictions.copy()
    predictions[40:80] = [1, 2] * 10 + [1, 2] * 4 + [0] * 12
    changed = replace(
        evaluation, dataset=evaluation.dataset.with_predictions(predictions=predictions)
    )
    finding = _cause(found, training, changed)
    assert finding.confused_with.is_real is False
    assert finding.confused_with.sentence == (
        "No wrong answer stands out: the most frequent is pear, with 10 of 20 failures inside and 4 of 8 outside."
    )
    assert finding.in_rival is None


def test_cause__a_minority_answer_counts_if_it_is_the_slice_that_gets_it():
    # Inside, 9 of 20 failures become pear; outside, none of 12.
    found, training, evaluation = _world(2, 5)
    predictions = evaluation.dataset.predictions.copy()
    predictions[40:80] = [1] * 9 + [2] * 8 + [3] * 3 + [2] * 12 + [0] * 8
    dataset = replace(
        evaluation.dataset, class_names=("apple", "pear", "melon", "plum")
    ).with_predictions(predictions=predictions)
    confused_with = _cause(
        found, replace(training, dataset=dataset), replace(evaluation, dataset=dataset)
    ).confused_with
    assert (confused_with.answer, confused_with.is_real, confused_with.among_failures.value) == (
        "pear",
        True,
        0.45,
    )


def test_cause__unknown_without_training_samples():
    found, training, evaluation = _world(2, 5)
    finding = _cause(found, training.only(training.rows[:5]), evaluation)
    assert finding.cause is Cause.UNKNOWN
    assert finding.share_training is None
    assert finding.sentence.startswith("Too few training samples of apple")


def test_explain__only_confirmed_slices_get_a_cause():
    found, training, evaluation = _world(2, 5)
    nothing = FailureSlice(
        class_name="apple",
        rule=ColumnRule(column="is_green", values=("never",)),
        method="hand",
        found_on=found.found_on,
    )
    evidence = HoldoutVerifier().verify(
        [found, nothing], discovery=training, confirmation=evaluation, criterion=TOP_1
    )
    explained = CauseFinder().explain(
        [found, nothing], evidence, training=training, evaluation=evaluation, criterion=TOP_1
    )
    assert [entry.verdict for entry in explained] == [Verdict.CONFIRMED, Verdict.TOO_FEW]
    assert explained[0].cause.cause is Cause.RARE
    assert explained[1].cause is None
    assert explained[0].p_value == evidence[0].p_value


def test_cause__multi_label_cue_of_the_label_that_is_wrongly_given():
    # In training 9 of 10 samples with the label are green and 1 of 10 without; green ones without it get it in evaluation.
    greens = [True] * 9 + [False] * 10 + [True] + [True] * 10 + [False] * 10
    said = np.array([[True]] * 10 + [[False]] * 10 + [[True]] * 10 + [[False]] * 10)
    dataset = dataset_from_columns(
        class_names=["apple"],
        label_lists=[[0]] * 10 + [[]] * 30,
        predicted_matrix=said,
        metadata={"is_green": greens},
    )
    found, _, _ = _world(2, 0)
    samples = SampleSet(dataset=dataset, rows=np.arange(40))
    halves = samples.only(np.arange(20)), samples.only(np.arange(20, 40))
    finding = _cause(found.model_copy(update={"side": Side.ABSENT}), *halves)
    assert finding.cause is Cause.SPURIOUS
    assert (finding.rival, finding.in_rival.value, finding.share_training) == ("apple", 0.9, 0.1)
    assert "of samples without apple in training" in finding.sentence
    assert (
        _cause(found.model_copy(update={"side": Side.ABSENT}), *halves, cue_share=0.95).cause
        is Cause.RARE
    )


def _objects(seed, *, is_told, kind=0.3, per_object=5):
    """Apples seen several times, as many odd ones in training as in evaluation; odd ones fail, a third of all others too."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(80), per_object)
    is_training = objects < 40
    is_odd = (draws.random(80) < kind)[objects]
    answers = (draws.random(80) < 1 / 3)[objects] * draws.integers(1, 3, 80)[objects]
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "melon"],
        labels=[0] * len(objects),
        predictions=answers,
        metadata={"is_green": is_odd.tolist()},
        groups=[f"object {one}" for one in objects] if is_told else None,
    )
    rows = np.arange(len(objects))
    training = SampleSet(dataset=dataset, rows=rows[is_training], name="training")
    evaluation = SampleSet(dataset=dataset, rows=rows[~is_training], name="evaluation")
    return training, evaluation


def test_cause__objects_seen_several_times_make_no_shift_and_no_wrong_answer():
    found = GREEN_APPLES
    seen = {True: np.zeros(2), False: np.zeros(2)}
    for seed in range(60):
        for is_told in (True, False):
            training, evaluation = _objects(seed, is_told=is_told)
            finding = _cause(found, training, evaluation)
            worth = (0.2, 0.2) if is_told else (1.0, 1.0)
            shares = finding.in_evaluation, finding.in_training
            seen[is_told] += [
                is_larger(*shares, largest_p=0.05, worth=worth),
                finding.confused_with is not None and finding.confused_with.is_real,
            ]
    assert (seen[False] >= [10, 8]).all()
    assert (seen[True] <= [4, 5]).all()


def test_cause__intervals_and_least_numbers_count_objects():
    training, evaluation = _objects(0, is_told=True)
    images = _objects(0, is_told=False)
    found = GREEN_APPLES
    told, single = (_cause(found, *given) for given in ((training, evaluation), images))
    assert told.in_training.value == single.in_training.value
    for name in ("in_training", "in_evaluation"):
        first, second = (getattr(one, name).interval for one in (told, single))
        assert first.high - first.low > 1.8 * (second.high - second.low)
    # Forty images of eight objects are fewer than ten samples.
    few = training.only(training.rows[:40])
    assert _cause(found, few, evaluation).in_training is None
    assert _cause(found, images[0].only(few.rows), images[1]).in_training


def test_stratified_p__groups_count_once():
    hits = np.array([True] * 8 + [False] * 8)
    strata = np.arange(16) % 2
    alone = stratified_p(hits, hits, strata)
    assert stratified_p(hits, hits, strata, np.arange(16)) == pytest.approx(alone)
    often = [np.repeat(one, 4) for one in (hits, hits, strata, np.arange(16))]
    assert stratified_p(*often) == pytest.approx(alone)
    assert stratified_p(*often[:3]) < alone / 100
    assert stratified_p(hits, hits, strata, np.zeros(16, dtype=np.int64)) == 1.0


def test_score_signs__training_samples_of_one_object_are_one_sign():
    signs = CueSigns(
        rival=(0, 0, 0, 0),
        thirds=(0, 0, 0, 0),
        thirds_p=1.0,
        direction_p=1.0,
        training=(20, 5),
        rival_p=1.0,
    )
    assert signs.training_p < 0.01
    assert replace(signs, worth=0.2).training_p > 0.1
