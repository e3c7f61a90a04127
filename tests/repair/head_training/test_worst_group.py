import numpy as np
import pytest
from tests.build import trained

from weakspot.core.errors import DataError
from weakspot.repair.training.objective import GroupObjectives

SHARES = np.array([0.1, 0.1, 0.2, 0.2, 0.4])
LOSSES = np.array([1.0, 3.0, 0.5, 1.5, 2.0])
GROUP_OBJECTIVE = (np.array([0, 1]), np.array([2, 3]))


def test_worst__counts_a_contest_by_its_worst_group_and_all_its_weight():
    assert GroupObjectives((GROUP_OBJECTIVE,), SHARES).worst(LOSSES) == pytest.approx(
        0.4 * 2.0 + 0.6 * 2.0
    )
    assert GroupObjectives((GROUP_OBJECTIVE,), SHARES).worst(
        np.array([1.0, 1.0, 0.5, 3.5, 2.0])
    ) == pytest.approx(0.8 + 0.6 * 2.0)


def test_softened__warm_maximum_shares_between_groups():
    value, counts = GroupObjectives((GROUP_OBJECTIVE,), SHARES).softened(
        np.array([1.0, 1.0, 1.0, 1.0, 2.0]), (0.5,)
    )
    assert value == pytest.approx(0.8 + 0.6 * (1.0 + 0.5 * np.log(2)))
    assert counts == pytest.approx([0.15, 0.15, 0.15, 0.15, 0.4])


def test_contests__groups_that_count_nothing_take_no_part():
    shares = np.array([0.0, 0.0, 0.25, 0.25, 0.5])
    assert GroupObjectives((GROUP_OBJECTIVE,), shares).worst(LOSSES) == pytest.approx(
        1.0 + 0.5 * 1.0
    )
    assert not GroupObjectives(((np.array([0, 1]),),), shares)


def _minority(make_features, *, seed=0):
    """Three classes; a tenth of the first two looks turned round, so that both kinds cannot be served alike."""
    features, codes = make_features(400, 6, 3, apart=0.8, seed=seed)
    is_turned = np.random.default_rng(seed).random(400) < 0.1
    features[is_turned] = 2.0 - features[is_turned]
    group_objectives = tuple(
        (np.flatnonzero((codes == code) & is_turned), np.flatnonzero((codes == code) & ~is_turned))
        for code in (0, 1)
    )
    return features, codes, group_objectives


@pytest.mark.parametrize("penalty", [1e-4, 1e-2])
def test_train__worst_groups_end_within_one_percent_of_a_slow_reference(
    make_features, reference, penalty
):
    features, codes, group_objectives = _minority(make_features)
    weights = np.where(np.arange(400) % 3 == 0, 4.0, 1.0)
    found = trained(
        features, codes, weights, trainer={"penalty": penalty}, group_objectives=group_objectives
    )
    slow = reference(features, np.eye(3, dtype=bool)[codes], weights, penalty=penalty).lowest_worst(
        group_objectives
    )
    assert slow * (1 - 1e-6) <= found.loss <= slow * 1.003


def test_train__multi_label_contests_reach_the_reference(make_features, reference):
    features, codes, group_objectives = _minority(make_features, seed=1)
    targets = np.eye(3, dtype=bool)[codes]
    contested = {"trainer": {"penalty": 1e-3}, "group_objectives": group_objectives}
    found = trained(features, targets, **contested, is_multi_label=True)
    slow = reference(features, targets, np.ones(400), penalty=1e-3, is_softmax=False).lowest_worst(
        group_objectives
    )
    assert slow * (1 - 1e-6) <= found.loss <= slow * 1.003


def test_train__groups_of_a_contest_end_alike_where_plain_training_leaves_one_behind(make_features):
    features, codes, group_objectives = _minority(make_features)
    settings = {"penalty": 1e-3}
    found = trained(features, codes, trainer=settings, group_objectives=group_objectives)
    plain = trained(features, codes, trainer=settings).head
    lost = -np.log(plain.probabilities(features)[np.arange(400), codes])
    for (few, others), (minority, rest) in zip(group_objectives, found.group_losses, strict=True):
        assert lost[few].mean() > lost[others].mean() + 0.5
        assert abs(minority - rest) < 0.02
        assert minority < lost[few].mean()


def test_train__sgd_raises_the_worst_group_too(make_features):
    features, codes, group_objectives = _minority(make_features)
    slow = {"penalty": 5e-4, "solver": "sgd", "learning_rate": 0.02, "n_epochs": 400}
    found, exact = (
        trained(features, codes, trainer=settings, group_objectives=group_objectives).loss
        for settings in (slow, {"penalty": 5e-4})
    )
    assert found == pytest.approx(exact, rel=0.05)


def test_train__group_losses_keep_the_places_of_groups(make_features):
    features, codes, group_objectives = _minority(make_features)
    weights = np.ones(400)
    weights[group_objectives[0][1]] = 0.0
    found = trained(features, codes, weights, group_objectives=group_objectives)
    assert np.isnan(found.group_losses[0][1])
    assert np.isfinite(found.group_losses[0][0])
    assert len(found.group_losses) == 2


@pytest.mark.parametrize(
    ("groups", "words"),
    [((np.array([1, 2]), np.array([2])), "two groups"), ((np.array([30]),), "not trained on")],
)
def test_train__refuses_contests_that_overlap_or_reach_too_far(make_features, groups, words):
    with pytest.raises(DataError, match=words):
        trained(*make_features(30, 4, 3), group_objectives=(groups,))
