import numpy as np
import pytest
from pydantic import TypeAdapter
from tests import build

from weakspot.core.arrays import BLOCK_ROWS
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.record import PackedArray
from weakspot.core.rules import (
    AllOfRule,
    AnyOfRule,
    BallRule,
    ColumnRule,
    IdRule,
    LinearRule,
    MembershipRule,
    MixtureRule,
    NearestRule,
    PredictionRule,
    Rule,
    rule_class,
    single_rules,
)
from weakspot.core.samples import SampleSet

EMBEDDINGS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [np.nan, np.nan]], dtype=np.float32)
PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]], dtype=np.float32)
ROWS = np.arange(4)


def _samples(*, encoder_id="toy", labels=(0, 0, 1, -1), probabilities=PROBABILITIES):
    return build.samples(
        list(labels),
        class_names=["cat", "dog"],
        probabilities=probabilities,
        metadata={"site": ["a", "a", "b", "b"]},
        embeddings=EMBEDDINGS,
        encoder_id=encoder_id,
        rows=ROWS,
    )


def _nearest(**changes):
    settings = {
        "encoder_id": "toy",
        "prototypes": PackedArray.of(np.array([[1.0, 0.0], [0.0, 1.0]])),
        "chosen": 0,
        **changes,
    }
    return NearestRule(**settings)


def _ball(**changes):
    return BallRule(
        **{
            "encoder_id": "toy",
            "centre": PackedArray.of(np.array([1.0, 0.0])),
            "threshold": -1.0,
            **changes,
        }
    )


def _mixture(**changes):
    settings = {
        "encoder_id": "toy",
        "centre": PackedArray.of(np.array([0.5, 0.5])),
        "projection": PackedArray.of(np.array([[1.0, -1.0]])),
        "means": PackedArray.of(np.array([[1.0], [-1.0]])),
        "variances": PackedArray.of(np.array([[0.5], [0.5]])),
        "log_weights": (float(np.log(0.75)), float(np.log(0.25))),
        "chosen": 0,
        "threshold": 0.0,
    }
    return MixtureRule(**{**settings, **changes})


def test_nearest_rule__scores_are_margins_of_unit_embeddings():
    scores = _nearest().scores(_samples(), ROWS)
    # Unit vectors: (1, 0), (0, 1), (0.6, 0.8); the last row has none.
    assert scores[:3] == pytest.approx([1.0, -1.0, -0.2], abs=1e-6)
    assert np.isnan(scores[3])
    assert _nearest().members(_samples(), ROWS).tolist() == [True, False, False, False]
    assert _nearest(threshold=-0.3).members(_samples(), ROWS).tolist() == [True, False, True, False]


def test_nearest_rule__offsets_take_away_what_attracts_everything():
    rule = _nearest(offsets=(0.0, 0.5))
    assert rule.scores(_samples(), ROWS[:3]) == pytest.approx([1.5, -0.5, 0.3], abs=1e-6)


def test_nearest_rule__among_three_the_best_other_counts():
    prototypes = PackedArray.of(np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]]))
    rule = _nearest(prototypes=prototypes)
    assert rule.scores(_samples(), ROWS[:3]) == pytest.approx([-0.4, -0.2, 0.2], abs=1e-6)


def test_ball_rule__score_is_minus_the_squared_distance():
    scores = _ball().scores(_samples(), ROWS)
    assert scores[:3] == pytest.approx([0.0, -2.0, -0.8], abs=1e-6)
    assert np.isnan(scores[3])
    assert _ball().members(_samples(), ROWS).tolist() == [True, False, True, False]


def test_ball_rule__embeddings_as_they_are():
    assert _ball(normalise=False).scores(_samples(), ROWS[:3]) == pytest.approx(
        [0.0, -5.0, -20.0], abs=1e-5
    )


def test_mixture_rule__score_is_the_log_odds_by_hand():
    # Projected: (1, 0) -> 1, (0, 1) -> -1, (0.6, 0.8) -> -0.2. Equal variances 0.5: log-odds = log 3 + 4 x.
    scores = _mixture().scores(_samples(), ROWS)
    assert scores[:3] == pytest.approx(
        [np.log(3) + 4.0, np.log(3) - 4.0, np.log(3) - 0.8], abs=1e-5
    )
    assert np.isnan(scores[3])
    assert _mixture().members(_samples(), ROWS).tolist() == [True, False, True, False]
    other = _mixture(chosen=1)
    assert other.scores(_samples(), ROWS[:3]) == pytest.approx(-scores[:3], abs=1e-5)


def test_mixture_rule__unequal_variances_count_their_width():
    rule = _mixture(
        variances=PackedArray.of(np.array([[0.5], [2.0]])), log_weights=(np.log(0.5), np.log(0.5))
    )
    # At -0.2: (x - 1)^2 / 1 = 1.44 and (x + 1)^2 / 4 = 0.16; the wider one pays log(2) for its width.
    assert rule.scores(_samples(), ROWS[2:3]) == pytest.approx(
        [-1.44 + 0.16 + np.log(2.0)], abs=1e-5
    )


def test_mixture_rule__order_is_kept_where_posteriors_are_all_but_one():
    rule = _mixture(
        variances=PackedArray.of(np.array([[0.01], [0.01]])),
        means=PackedArray.of(np.array([[1.0], [-3.0]])),
    )
    scores = rule.scores(_samples(), ROWS[:3])
    assert np.all(1.0 / (1.0 + np.exp(-scores[[0, 2]])) == 1.0)
    assert scores[0] > scores[2] + 100


def test_mixture_rule__three_components_are_weighed_together():
    means = PackedArray.of(np.array([[1.0], [-1.0], [-1.0]]))
    variances = PackedArray.of(np.full((3, 1), 0.5))
    rule = _mixture(
        means=means, variances=variances, log_weights=(np.log(0.5), np.log(0.25), np.log(0.25))
    )
    assert rule.scores(_samples(), ROWS[:2]) == pytest.approx([4.0, -4.0], abs=1e-5)


def test_mixture_rule__a_single_component_says_nothing():
    one = {name: PackedArray.of(np.array([[1.0]])) for name in ("means", "variances")}
    scores = _mixture(**one, log_weights=(0.0,)).scores(_samples(), ROWS)
    assert scores[:3].tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(scores[3])


@pytest.mark.parametrize("rule", [_nearest(), _ball(), _mixture()])
def test_embedding_rules__refuse_embeddings_of_another_encoder(rule):
    assert not rule.reads_predictions
    with pytest.raises(DataError, match="another encoder"):
        rule.scores(_samples(encoder_id="other"), ROWS)
    own = rule.scores(_samples(), ROWS)
    integers = _samples(encoder_id=f"{rule.encoder_id}+int8@0123abcd")
    np.testing.assert_array_equal(rule.scores(integers, ROWS), own)


def test_prediction_rule__doubt_and_loss():
    doubt = PredictionRule(measure="doubt", threshold=0.35)
    assert doubt.scores(_samples(), ROWS) == pytest.approx([0.1, 0.4, 0.5, 0.2], abs=1e-6)
    assert doubt.members(_samples(), ROWS).tolist() == [False, True, True, False]
    loss = PredictionRule(measure="loss", threshold=0.5)
    scores = loss.scores(_samples(), ROWS)
    assert scores[:3] == pytest.approx([0.1053605, 0.9162907, 0.6931472], abs=1e-5)
    assert np.isnan(scores[3])
    assert loss.members(_samples(), ROWS).tolist() == [False, True, True, False]
    assert doubt.reads_predictions
    assert loss.reads_predictions


def test_prediction_rule__a_truth_without_probability_has_a_finite_loss():
    certain = np.array([[0.0, 1.0]] * 4, dtype=np.float32)
    scores = PredictionRule(measure="loss", threshold=0.5).scores(
        _samples(probabilities=certain), ROWS[:2]
    )
    assert scores == pytest.approx([27.631, 27.631], abs=1e-3)


def test_prediction_rule__needs_probabilities_of_a_single_label_task():
    rule = PredictionRule(measure="doubt", threshold=0.5)
    with pytest.raises(DataError, match="single-label"):
        rule.scores(_samples(probabilities=None), ROWS)
    several = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0], [0, 1], [], [1]], probabilities=PROBABILITIES
    )
    with pytest.raises(DataError, match="single-label"):
        rule.members(SampleSet(dataset=several, rows=ROWS), ROWS)


def test_all_of_rule__members_satisfy_every_rule():
    at_a = ColumnRule(column="site", values=("a",))
    both = AllOfRule(rules=(_ball(), at_a))
    assert both.scores(_samples(), ROWS).tolist() == [2.0, 1.0, 1.0, 0.0]
    assert both.members(_samples(), ROWS).tolist() == [True, False, False, False]
    assert not both.reads_predictions
    assert AllOfRule(rules=(_ball(), _nearest(threshold=-0.3), _mixture())).members(
        _samples(), ROWS
    ).tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert AllOfRule(
        rules=(at_a, PredictionRule(measure="doubt", threshold=0.35))
    ).reads_predictions


def test_any_of_rule__members_satisfy_at_least_one_rule():
    at_a, at_b = ColumnRule(column="site", values=("a",)), ColumnRule(column="site", values=("b",))
    either = AnyOfRule(rules=(_ball(), at_a))
    assert either.scores(_samples(), ROWS).tolist() == [2.0, 1.0, 1.0, 0.0]
    assert either.members(_samples(), ROWS).tolist() == [True, True, True, False]
    assert either.columns == frozenset({"site"})
    assert not either.reads_predictions
    nested = AnyOfRule(rules=(AllOfRule(rules=(_ball(), at_a)), at_b))
    assert nested.members(_samples(), ROWS).tolist() == [True, False, True, True]
    assert AnyOfRule(
        rules=(at_a, PredictionRule(measure="doubt", threshold=0.35))
    ).reads_predictions


@pytest.mark.parametrize(
    "rule",
    [
        LinearRule(encoder_id="toy", direction=(1.0, 2.0), centre=(0.1, 0.2)),
        _nearest(),
        _ball(),
        _mixture(),
    ],
)
def test_scores__of_many_rows_are_those_of_few(rule):
    n_rows = BLOCK_ROWS + 7
    embeddings = np.random.default_rng(0).standard_normal((n_rows, 2)).astype(np.float32)
    samples = build.samples([0] * n_rows, class_names=["cat"], embeddings=embeddings)
    asked = np.array([n_rows - 1, 0, BLOCK_ROWS, BLOCK_ROWS - 1])
    assert rule.scores(samples, samples.rows)[asked] == pytest.approx(
        rule.scores(samples, asked), abs=1e-6
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ColumnRule(column="size", low=2.0), "Samples whose “size” is at least 2."),
        (
            ColumnRule(column="size", low=2.0, high=4.5),
            "Samples whose “size” is at least 2 and below 4.5.",
        ),
        (
            ColumnRule(column="n", values=tuple(range(8))),
            "Samples whose “n” is 0 or 1 or 2 or 3 or 4 or 5 or one of 2 others.",
        ),
        (
            PredictionRule(measure="loss", threshold=1),
            "Samples whose true label got little probability.",
        ),
        (IdRule(sample_ids=("a",)), "Samples that were listed one by one."),
        (
            AnyOfRule(
                rules=(
                    AllOfRule(rules=(ColumnRule(column="a", values=(1,)), IdRule(sample_ids=()))),
                    IdRule(sample_ids=()),
                )
            ),
            "Samples whose “a” is 1. And: Samples that were listed one by one. Or: Samples that were listed one by one.",
        ),
    ],
)
def test_sentence__of_every_kind(rule, words):
    assert rule.sentence == words


def test_rule_class__a_missing_package_is_named():
    with pytest.raises(DataError, match=r"kind 'cones/cone'.*Install the package 'cones'"):
        TypeAdapter(MembershipRule).validate_python({"kind": "cones/cone", "angle": 1})
    with pytest.raises(DataError, match=r"kind 'magic'.*Use one of \['all-of'"):
        rule_class("magic")


def test_rule__a_kind_without_words_of_its_own_is_named():
    assert Rule(kind="cones/cone").sentence == "Samples that a rule of the kind cones/cone takes."


def test_single_rules__down_to_those_that_are_made_of_no_others():
    one, other = IdRule(sample_ids=("a",)), IdRule(sample_ids=("b",))
    assert single_rules(one) == (one,)
    assert single_rules(AnyOfRule(rules=(AllOfRule(rules=(one, other)), other))) == (
        one,
        other,
        other,
    )
