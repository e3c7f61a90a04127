import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.failures import (
    FailureCriterion,
    LabelHierarchy,
    Side,
    best_f1_thresholds,
    class_problems,
    describe_criterion,
    predicted_labels,
    top_classes,
)

# Four birds and fish; every row says what the classifier gave to robin, crow, trout, pike.
PROBABILITIES = np.array(
    [
        [0.7, 0.1, 0.1, 0.1],  # robin: right
        [0.3, 0.4, 0.2, 0.1],  # robin: second place, behind a bird
        [0.1, 0.1, 0.5, 0.3],  # crow: two fish in front
        [0.1, 0.1, 0.2, 0.6],  # trout: second place, behind a fish
    ],
    dtype=np.float32,
)
LABELS = [0, 0, 1, 2]
TREE = LabelHierarchy(parents={"robin": "bird", "crow": "bird", "trout": "fish", "pike": "fish"})


@pytest.fixture
def birds():
    return dataset_from_columns(
        class_names=["robin", "crow", "trout", "pike"], labels=LABELS, probabilities=PROBABILITIES
    )


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (FailureCriterion(), [False, True, True, True]),
        (FailureCriterion(kind="top-k", k=1), [False, True, True, True]),
        (FailureCriterion(kind="top-k", k=2), [False, False, True, False]),
        (FailureCriterion(kind="top-k", k=99), [False, False, False, False]),
        (FailureCriterion(kind="parent", k=1, hierarchy=TREE), [False, False, True, False]),
        (FailureCriterion(kind="parent", k=2, hierarchy=TREE), [False, False, True, False]),
        (FailureCriterion(kind="parent", k=3, hierarchy=TREE), [False, False, False, False]),
        (FailureCriterion(kind="parent"), [False, True, True, True]),
        (FailureCriterion(kind="low-confidence", threshold=0.2), [False, False, True, False]),
        (FailureCriterion(kind="low-confidence", threshold=0.5), [False, True, True, True]),
        (FailureCriterion(kind="target", target="pike"), [False, False, False, True]),
        (FailureCriterion(kind="target", target="crow"), [False, True, False, False]),
    ],
)
def test_failed__every_kind(birds, criterion, expected):
    # Top three of the crow are trout, pike and robin (the tie goes to the lower number), so k = 3 has a bird in it.
    assert criterion.failed(birds, np.arange(4)).tolist() == expected
    assert criterion.failed(birds, np.array([2, 0])).tolist() == [expected[2], expected[0]]


def test_failed__given_predictions_win_over_probabilities(birds):
    told = birds.with_predictions(predictions=np.array([0, 0, 0, 0]), probabilities=PROBABILITIES)
    assert FailureCriterion().failed(told, np.arange(4)).tolist() == [False, False, True, True]


@pytest.mark.parametrize("kind", ["top-k", "parent", "low-confidence"])
def test_failed__probabilities_are_asked_for(kind):
    told = dataset_from_columns(class_names=["a", "b"], labels=[0], predictions=np.array([1]))
    with pytest.raises(DataError, match=f"Probabilities are needed for the failure kind '{kind}'"):
        FailureCriterion(kind=kind).failed(told, np.array([0]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, r"failure\.k"),
        ({"threshold": 0.0}, r"failure\.threshold"),
        ({"threshold": 1.1}, r"failure\.threshold"),
        ({"kind": "target"}, r"failure\.target"),
    ],
)
def test_failure_criterion__refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        FailureCriterion(**wrong)


def test_failed__unknown_target(birds):
    with pytest.raises(DataError, match="no class 'owl'"):
        FailureCriterion(kind="target", target="owl").failed(birds, np.arange(4))


def test_class_problems__single_label(birds):
    problems = class_problems(birds, np.arange(4), FailureCriterion())
    assert tuple(problem.title for problem in problems) == ("robin", "crow", "trout")
    robin = problems[0]
    assert robin.rows.tolist() == [0, 1]
    assert (robin.n_failed, robin.n_right, robin.side) == (1, 1, None)
    np.testing.assert_allclose(robin.confidence, [0.7, 0.3])


def test_class_problems__unlabelled_rows_and_unknown_predictions_are_left_out():
    told = dataset_from_columns(
        class_names=["a", "b"], labels=[0, -1, 0, 1], predictions=np.array([0, 0, -1, 0])
    )
    problems = class_problems(told, np.arange(4), FailureCriterion())
    assert [problem.rows.tolist() for problem in problems] == [[0], [3]]
    assert np.isnan(problems[0].confidence).all()


def test_class_problems__nothing_known_of_the_classifier():
    with pytest.raises(DataError, match="Nothing is known of what the classifier said"):
        class_problems(
            dataset_from_columns(class_names=["a"], labels=[0]), np.array([0]), FailureCriterion()
        )


@pytest.fixture
def scans():
    # Columns: effusion, mass. Row 0 has both, row 1 has mass, row 2 has none, row 3 is unlabelled.
    return dataset_from_columns(
        class_names=["effusion", "mass"],
        label_lists=[[0, 1], [1], [], None],
        probabilities=np.array([[0.9, 0.2], [0.6, 0.7], [0.1, 0.4], [0.9, 0.9]], dtype=np.float32),
    )


def test_class_problems__multi_label_has_two_sides_a_label(scans):
    problems = {
        problem.title: problem
        for problem in class_problems(scans, np.arange(4), FailureCriterion())
    }
    assert list(problems) == ["effusion", "no effusion", "mass", "no mass"]
    assert problems["effusion"].rows.tolist() == [0]
    assert problems["effusion"].failed.tolist() == [False]
    assert problems["no effusion"].rows.tolist() == [1, 2]
    assert problems["no effusion"].failed.tolist() == [True, False]
    np.testing.assert_allclose(problems["no effusion"].confidence, [0.4, 0.9], atol=1e-6)
    assert problems["mass"].failed.tolist() == [True, False]
    assert problems["no effusion"].side is Side.ABSENT


def test_class_problems__multi_label_thresholds_and_low_confidence(scans):
    lowered = scans.with_predictions(
        probabilities=scans.probabilities, thresholds=np.array([0.95, 0.15], dtype=np.float32)
    )
    problems = {
        problem.title: problem
        for problem in class_problems(lowered, np.arange(4), FailureCriterion())
    }
    assert problems["effusion"].failed.tolist() == [True]
    assert problems["no mass"].failed.tolist() == [True]
    strict = FailureCriterion(kind="low-confidence", threshold=0.75)
    problems = {problem.title: problem for problem in class_problems(scans, np.arange(4), strict)}
    assert problems["mass"].failed.tolist() == [True, True]
    assert problems["effusion"].failed.tolist() == [False]


def test_class_problems__multi_label_target_looks_at_those_that_lack_it(scans):
    problems = class_problems(
        scans, np.arange(4), FailureCriterion(kind="target", target="effusion")
    )
    assert tuple(problem.title for problem in problems) == ("no effusion",)
    assert problems[0].failed.tolist() == [True, False]


def test_predicted_labels__given_as_a_matrix():
    told = dataset_from_columns(
        class_names=["a"], label_lists=[[0], []], predicted_matrix=np.array([[False], [True]])
    )
    assert predicted_labels(told, np.array([1, 0])).tolist() == [[True], [False]]
    problems = class_problems(told, np.arange(2), FailureCriterion())
    assert [problem.failed.tolist() for problem in problems] == [[True], [True]]


def test_top_classes__ties_go_to_the_lower_number():
    found = top_classes(
        np.array([[0.2, 0.5, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]], dtype=np.float32), 2
    )
    assert found.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("scores", "truth", "threshold"),
    [
        # Cut at 0.8: one hit of one, F1 = 2 / (1 + 2) = 0.67. At 0.6: 1 hit of 2, 0.5. At 0.3: 2 hits of 3, F1 = 4 / 5 = 0.8.
        ([0.8, 0.6, 0.3, 0.1], [True, False, True, False], 0.3),
        # At 0.9: F1 = 2 / 3. At 0.5, where two samples tie: 2 hits of 3, F1 = 4 / 5. A cut between tied samples cannot be made.
        ([0.9, 0.5, 0.5], [True, True, False], 0.5),
        # The first of two equally good cuts.
        ([0.9, 0.2], [True, True], 0.2),
        ([0.9, 0.2], [False, False], 0.5),
        ([0.4], [True], 0.4),
    ],
)
def test_best_f1_thresholds__by_hand(scores, truth, threshold):
    found = best_f1_thresholds(
        np.array(scores, dtype=np.float32)[:, None], np.array(truth)[:, None]
    )
    np.testing.assert_allclose(found, [threshold], atol=1e-6)


def test_best_f1_thresholds__every_label_by_itself():
    scores = np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
    found = best_f1_thresholds(scores, np.array([[True, True], [False, False]]))
    np.testing.assert_allclose(found, [0.9, 0.1], atol=1e-6)


def test_describe_criterion__every_kind():
    assert describe_criterion(FailureCriterion()) == "the predicted label is not the true one"
    assert (
        describe_criterion(FailureCriterion(kind="top-k", k=5))
        == "the true label is not among the 5 likeliest"
    )
    assert "shares the true label's parent" in describe_criterion(FailureCriterion(kind="parent"))
    assert describe_criterion(FailureCriterion(kind="low-confidence", threshold=0.3)).endswith(
        "below 0.3"
    )
    assert (
        describe_criterion(FailureCriterion(kind="target", target="cat"))
        == "the sample is taken for 'cat'"
    )


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_failed__top_k_agrees_with_sorting_also_for_ties_and_missing_numbers(k):
    random = np.random.default_rng(k)
    # Probabilities in steps of 0.1, so that many are equal; some are missing.
    probabilities = (random.integers(0, 4, size=(400, 6)) / 10).astype(np.float32)
    probabilities[random.random((400, 6)) < 0.05] = np.nan
    labels = random.integers(0, 6, size=400)
    dataset = dataset_from_columns(
        class_names=list("abcdef"), labels=labels, probabilities=probabilities
    )
    likeliest = top_classes(probabilities, k)
    expected = [label not in row for label, row in zip(labels, likeliest, strict=True)]
    assert FailureCriterion(kind="top-k", k=k).failed(dataset, np.arange(400)).tolist() == expected


def test_class_problems__groups_of_every_class_and_of_some_of_its_rows():
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0, 0, 0, 0, 1, 1],
        predictions=np.zeros(6, dtype=np.int64),
        groups=["x", "x", "y", None, "x", "z"],
    )
    first, second = class_problems(dataset, np.arange(6), FailureCriterion())
    assert first.groups.tolist() == [0, 0, 1, 2]
    assert second.groups is None
    assert first.only(np.array([3, 1, 0])).groups.tolist() == [1, 0, 0]
    assert first.only(np.array([3, 1])).groups is None
    assert first.only(np.array([3, 1])).rows.tolist() == [3, 1]


def test_worth__groups_count_once():
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0] * 6,
        predictions=np.array([0] * 6),
        groups=["x", "x", "x", "y", "y", "y"],
    )
    (told,) = class_problems(dataset, np.arange(6), FailureCriterion())
    (alone,) = class_problems(dataset, np.array([0, 3]), FailureCriterion())
    assert told.worth == pytest.approx(1 / 3)
    assert alone.worth == 1.0


def test_parent_codes__siblings_share_a_number():
    tree = LabelHierarchy(parents={"robin": "bird", "crow": "bird", "oak": "tree"})
    assert tree.parent_codes(("robin", "oak", "crow", "trout")).tolist() == [0, 1, 0, 2]


def test_parent_codes__a_class_that_is_the_parent_of_another():
    tree = LabelHierarchy(parents={"robin": "bird"})
    assert tree.parent_codes(("robin", "bird")).tolist() == [0, 0]


@pytest.mark.parametrize(
    "parents", [{"a": "b", "b": "a"}, {"a": "a"}, {"a": "b", "b": "c", "c": "b"}]
)
def test_label_hierarchy__circles_are_refused(parents):
    with pytest.raises(DataError, match="runs in a circle.*label 'a'"):
        LabelHierarchy(parents=parents)
