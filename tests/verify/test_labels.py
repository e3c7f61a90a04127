from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.evidence import Cause, Verdict
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.testing.planted import (
    ENCODER_ID,
    label_noise,
    phrase_embeddings,
    plant,
    rare,
    spurious,
)
from weakspot.verify.cause import CauseFinder
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.labels import (
    BLOCK_FAILURES,
    CHUNK_ROWS,
    LabelChecker,
    class_thresholds,
    confident_class,
    confidently_other,
    nearest_rows,
)

TOP_1 = FailureCriterion()


def _world(*, looks_like_pears, has_embeddings=True, has_probabilities=True):
    """Thirty apples and thirty pears in training; of forty evaluation apples ten are odd, fail, and look as said."""
    labels = [0] * 30 + [1] * 30 + [0] * 40 + [1] * 20
    is_odd = np.zeros(120, dtype=bool)
    is_odd[60:70] = True
    answers = np.where(is_odd, 1, labels)
    pear_like = np.array(labels) == 1
    pear_like[60:70] = looks_like_pears
    embeddings = np.stack([pear_like, ~pear_like, np.linspace(0.1, 0.2, 120)], axis=1).astype(
        np.float32
    )
    probabilities = np.full((120, 2), 0.1, dtype=np.float32)
    probabilities[np.arange(120), answers] = 0.9
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=labels,
        predictions=answers.astype(np.int64),
        probabilities=probabilities if has_probabilities else None,
        metadata={"is_odd": is_odd.tolist()},
    )
    spaces = (
        {"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)} if has_embeddings else {}
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(120), spaces=spaces)
    rule = ColumnRule(column="is_odd", values=(True,))
    found = FailureSlice(
        class_name="apple",
        rule=rule,
        method="hand",
        found_on=DataUse(name="given", n_samples=0, digest="given"),
    )
    return (
        found,
        samples.only(np.arange(60), name="training"),
        samples.only(np.arange(60, 120), name="evaluation"),
    )


def _checked(found, training, evaluation, checker=None):
    nobody = training.only(training.rows[:0])
    evidence = HoldoutVerifier().verify(
        [found], discovery=nobody, confirmation=evaluation, criterion=TOP_1
    )
    given = {"training": training, "evaluation": evaluation, "criterion": TOP_1}
    explained = CauseFinder().explain([found], evidence, **given)
    return (checker or LabelChecker()).check([found], explained, **given)[0]


def test_check__failures_that_everybody_calls_pears_are_wrong_labels():
    entry = _checked(*_world(looks_like_pears=True))
    assert entry.labels.is_flagged
    assert (entry.labels.n_suspect, entry.labels.share) == (10, 1.0)
    assert entry.labels.witnesses == ("probabilities", "neighbours", "training probe")
    assert entry.labels.sentence.startswith("Evidence points to wrong labels: 10 of 10 failures")
    assert "the probabilities agree" in entry.labels.sentence
    assert entry.cause.cause is Cause.LABELS
    # The figures stay; nothing speaks for the cause that was named before.
    assert entry.cause.signs == ()
    assert entry.cause.sentence.startswith("Such samples make up 0 %")
    assert "lie where training has" not in entry.cause.sentence
    assert entry.verdict is Verdict.CONFIRMED


def test_check__a_confident_classifier_alone_does_not_accuse_labels():
    entry = _checked(*_world(looks_like_pears=False))
    assert not entry.labels.is_flagged
    assert entry.labels.n_suspect == 0
    assert entry.labels.sentence == "The labels look right: 0 of 10 failures have a suspect label."
    assert entry.cause.cause is not Cause.LABELS


def test_check__without_embeddings_nothing_is_flagged():
    entry = _checked(*_world(looks_like_pears=True, has_embeddings=False))
    assert entry.labels.witnesses == ("probabilities",)
    assert not entry.labels.is_flagged
    assert "cannot be told from a blind spot" in entry.labels.sentence


def test_check__predictions_and_one_space_are_too_few_witnesses():
    entry = _checked(*_world(looks_like_pears=True, has_probabilities=False))
    assert entry.labels.witnesses == ("prediction", "neighbours", "training probe")
    assert (entry.labels.is_flagged, entry.labels.is_doubtful) == (False, True)
    assert entry.cause.cause is Cause.UNKNOWN
    assert "captions would tell" in entry.labels.sentence
    nobody = _checked(*_world(looks_like_pears=True, has_probabilities=False, has_embeddings=False))
    assert nobody.labels is None


def test_check__a_second_encoder_is_a_further_witness():
    found, training, evaluation = _world(looks_like_pears=True, has_probabilities=False)
    for agrees in (True, False):
        second = np.array(evaluation.space("clip").embeddings)
        if not agrees:
            second[60:70] = second[0]
        spaces = {
            **evaluation.spaces,
            "second": EmbeddingSpace(encoder_id="other", embeddings=second),
        }
        entry = _checked(
            found, replace(training, spaces=spaces), replace(evaluation, spaces=spaces)
        )
        assert "second encoder" in entry.labels.witnesses
        assert entry.labels.is_flagged is agrees


@pytest.mark.parametrize(
    ("caption", "flagged"), [("two pears", True), ("an apple", False), ("fruit", False)]
)
def test_check__captions_are_a_further_witness(caption, flagged):
    found, training, evaluation = _world(looks_like_pears=True, has_probabilities=False)
    given = {"training": training, "evaluation": evaluation, "criterion": TOP_1}
    evidence = HoldoutVerifier().verify(
        [found],
        discovery=training.only(training.rows[:0]),
        confirmation=evaluation,
        criterion=TOP_1,
    )
    (entry,) = LabelChecker().check(
        [found], evidence, **given, captions=lambda rows: [caption] * len(rows)
    )
    assert entry.labels.is_flagged is flagged


def test_check__failures_apart_from_the_other_class_are_no_wrong_labels():
    # They are on the pears' side of the boundary and their nearest neighbours are pears, but they are a kind of their own.
    found, training, evaluation = _world(looks_like_pears=True)
    embeddings = np.array(evaluation.space("clip").embeddings)
    embeddings[60:70, 2] += 1.5
    spaces = {"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)}
    entry = _checked(
        found,
        replace(training, spaces=spaces),
        replace(evaluation, spaces=spaces),
        LabelChecker(farthest=0.05),
    )
    assert not entry.labels.is_flagged


def test_check__missing_embeddings_and_few_neighbours():
    found, training, evaluation = _world(looks_like_pears=True)
    embeddings = np.array(evaluation.space("clip").embeddings)
    embeddings[60:65] = np.nan
    spaces = {"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)}
    entry = _checked(found, replace(training, spaces=spaces), replace(evaluation, spaces=spaces))
    assert entry.labels.n_suspect == 5
    few = _checked(found, training.only(training.rows[:4]), evaluation)
    assert few.labels.witnesses == ("probabilities",)


def test_check__flags_need_enough_suspects():
    assert not _checked(
        *_world(looks_like_pears=True), LabelChecker(min_suspect=11)
    ).labels.is_flagged


def test_check__only_confirmed_slices():
    found, training, evaluation = _world(looks_like_pears=True)
    nothing = found.model_copy(update={"rule": ColumnRule(column="is_odd", values=("never",))})
    assert _checked(nothing, training, evaluation).labels is None


def test_check__of_many_failures_an_even_part_is_asked():
    entry = _checked(*_world(looks_like_pears=True), checker=LabelChecker(max_failures=4))
    assert (entry.labels.inside.count, entry.labels.inside.total) == (4, 4)
    assert entry.labels.is_flagged


def _planted(problem, rules, *, seed=0):
    """Return whether labels are flagged, for every class whose slice is confirmed; rules are given by class."""
    world = plant(problem, 3_000, seed=seed)
    validation = world.samples(Split.VALIDATION)
    training = world.samples(Split.TRAIN, spaces=validation.spaces)
    discovery, confirmation = (
        validation.only(validation.rows[::2]),
        validation.only(validation.rows[1::2]),
    )
    slices = [
        FailureSlice(class_name=name, rule=rule, method="hand", found_on=DataUse.of(discovery))
        for name, rule in rules.items()
    ]
    evidence = HoldoutVerifier(alpha=0.1).verify(
        slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    checked = LabelChecker().check(
        slices, evidence, training=training, evaluation=confirmation, criterion=TOP_1
    )
    return [entry.labels.is_flagged for entry in checked if entry.verdict is Verdict.CONFIRMED]


def test_check__planted_worlds():
    names = ("disc", "square", "triangle", "star")
    kinds = phrase_embeddings(names)
    looks_like_another = {
        name: LinearRule(
            encoder_id=ENCODER_ID, direction=tuple((kinds.sum(axis=0) - 4 * kinds[place]).tolist())
        )
        for place, name in enumerate(names)
    }
    assert _planted(label_noise(0.1), looks_like_another) == [True] * 4
    assert _planted(rare(0.02), {"disc": ColumnRule(column="colour", values=("green",))}) == [False]
    background = {"disc": "grassy", "star": "plain"}
    cues = {
        name: ColumnRule(column="background", values=(value,)) for name, value in background.items()
    }
    assert _planted(spurious(0.95), cues, seed=1) == [False] * 2


def test_suspect_rows__are_those_that_were_counted():
    found, training, evaluation = _world(looks_like_pears=True)
    rows = LabelChecker().suspect_rows(
        found, training=training, evaluation=evaluation, criterion=TOP_1
    )
    assert rows.tolist() == list(range(60, 70))


def test_suspect_rows__nobody_is_accused_without_an_independent_witness():
    for given in ({"looks_like_pears": False}, {"looks_like_pears": True, "has_embeddings": False}):
        found, training, evaluation = _world(**given)
        assert not len(
            LabelChecker().suspect_rows(
                found, training=training, evaluation=evaluation, criterion=TOP_1
            )
        )
    nobody = evaluation.only(evaluation.rows[:0])
    assert not len(
        LabelChecker().suspect_rows(found, training=training, evaluation=nobody, criterion=TOP_1)
    )


def test_class_thresholds__of_a_class_that_nobody_carries():
    probabilities = np.array([[0.8, 0.2, 0.0], [0.4, 0.6, 0.0]])
    assert class_thresholds(np.array([0, 0]), probabilities).tolist() == pytest.approx(
        [0.6, 1.0, 1.0]
    )


def test_confident_class__several_or_none_reach_their_threshold():
    probabilities = np.array([[0.45, 0.5], [0.2, 0.3]])
    assert confident_class(probabilities, np.array([0.4, 0.4])).tolist() == [1, -1]


def test_confidently_other__multi_label_sides():
    # Usual probability of the label: 0.7 where it is given, 0.1 where it is not.
    probabilities = np.array([[0.9], [0.8], [0.4], [0.05], [0.05], [0.2]], dtype=np.float32)
    dataset = dataset_from_columns(
        class_names=["a"], label_lists=[[0], [0], [0], [], [], []], probabilities=probabilities
    )
    present, absent = class_problems(dataset, np.arange(6), TOP_1)
    assert confidently_other(dataset, np.arange(6), present, np.array([0, 2])).tolist() == [-1, -1]
    low = dataset.with_predictions(
        probabilities=np.array([[0.9], [0.9], [0.05], [0.05], [0.05], [0.8]], dtype=np.float32)
    )
    assert confidently_other(low, np.arange(6), present, np.array([2])).tolist() == [0]
    assert confidently_other(low, np.arange(6), absent, np.array([5, 3])).tolist() == [0, -1]


def test_nearest__the_same_as_sorting_everything():
    draws = np.random.default_rng(0)
    embeddings = draws.standard_normal((CHUNK_ROWS + 300, 3)).astype(np.float32)
    embeddings[7] = np.nan
    training = build.samples([0] * len(embeddings), class_names=["apple"], embeddings=embeddings)
    asked = unit_rows(draws.standard_normal((BLOCK_FAILURES + 5, 3)))
    best, found = nearest_rows(asked, training, training.rows, space="clip", n_nearest=4)
    similarities = np.nan_to_num(asked @ unit_rows(embeddings).T, nan=-np.inf)
    assert np.array_equal(found, np.argsort(-similarities, axis=1, kind="stable")[:, :4])
    assert best == pytest.approx(np.take_along_axis(similarities, found, axis=1))
