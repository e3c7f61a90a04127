import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion, LabelHierarchy, Side
from weakspot.core.repairs import GroupKind, RepairArm
from weakspot.core.rules import LinearRule, PredictionRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.repair.measure import measure_arm, untouched

TOP_1 = FailureCriterion()


def _test_set():
    """Six apples (three green) and four pears; before, two green apples and one pear are wrong."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 4,
        predictions=np.array([1, 1, 0, 0, 0, 0, 1, 1, 1, 0]),
        metadata={"green": [True] * 3 + [False] * 7},
    )
    return SampleSet(dataset=dataset, rows=np.arange(10), name="test")


def _arm(predicted, slices=(), samples=None, criterion=TOP_1, *, done=(), **options):
    """Measure an arm that says the first or second class, or gives probabilities; `done` is what is known of it before."""
    answers = np.asarray(predicted)
    probabilities = answers if answers.ndim > 1 else np.eye(2, dtype=np.float32)[answers]
    facts = {"arm": "slice-balanced", "is_baseline": False, "note": "n", "n_trained": 5}
    return measure_arm(
        RepairArm(**{**facts, "changes": (), **dict(done)}),
        probabilities,
        slices,
        _test_set() if samples is None else samples,
        criterion,
        **options,
    )


def _counts(change):
    names = ("n_samples", "right_before", "right_after", "gained", "lost")
    return tuple(getattr(change, name) for name in names)


def test_measure_arm__counts_every_group(make_slice):
    # After: both green apples are right, one other apple and the wrong pear stay as listed, one right pear is lost.
    arm = _arm([0, 0, 0, 1, 0, 0, 1, 1, 0, 0], [make_slice()])
    table = {(change.kind, change.group): change for change in arm.changes}
    found = table[GroupKind.SLICE, "apple: unnamed (hand)"]
    assert _counts(found) == (3, 1, 3, 2, 0)
    rest = table[GroupKind.COMPLEMENT, "apple: the rest"]
    assert _counts(rest) == (3, 3, 2, 0, 1)
    pears = table[GroupKind.CLASS, "pear"]
    assert _counts(pears)[:3] == (4, 3, 2)
    overall = table[GroupKind.OVERALL, "overall"]
    assert _counts(overall) == (10, 7, 7, 2, 2)
    assert overall.p_value == 1.0
    assert found.p_value == pytest.approx(0.5)
    assert found.interval_after.low == pytest.approx(0.438503, abs=1e-6)
    assert arm.got_worse == ("apple: the rest", "pear")
    assert (arm.arm, arm.is_baseline, arm.n_trained) == ("slice-balanced", False, 5)


def test_measure_arm__clean_accuracy_and_resolved_failures(make_slice):
    # Seven were right before and two of them are lost; three were wrong and two of them are gained.
    arm = _arm([0, 0, 0, 1, 0, 0, 1, 1, 0, 0], [make_slice()])
    clean = arm.change_of(GroupKind.FORMERLY_RIGHT)
    assert _counts(clean) == (7, 7, 5, 0, 2)
    resolved = arm.change_of(GroupKind.FORMERLY_WRONG)
    assert _counts(resolved) == (3, 0, 2, 2, 0)
    # They were chosen by their result, so that they can move one way only is no finding.
    assert (clean.p_value, resolved.p_value) == (1.0, 1.0)
    assert "formerly right" not in arm.got_worse
    assert [change.kind.value for change in arm.changes] == [
        "overall",
        "formerly right",
        "formerly wrong",
        "slice",
        "rest of the class",
        "class",
        "class",
    ]


def test_measure_arm__empty_groups_stay_and_are_never_worse(make_slice):
    empty = make_slice(rule=make_slice().rule.model_copy(update={"values": ("purple",)}))
    elsewhere = make_slice(class_name="plum")
    arm = _arm([0] * 6 + [1] * 4, [empty, elsewhere])
    groups = [one for one in arm.changes if one.kind is GroupKind.SLICE]
    assert [one.n_samples for one in groups] == [0, 0]
    assert [(one.interval_after.low, one.interval_after.high, one.p_value) for one in groups] == [
        (0.0, 1.0, 1.0)
    ] * 2
    assert [one.n_samples for one in arm.changes if one.kind is GroupKind.COMPLEMENT] == [6, 0]
    assert arm.got_worse == ()


def test_measure_arm__labels_score_but_never_route(make_slice):
    """With other labels, the same samples are members and the same answers are given; only the score differs."""
    samples = _test_set()
    slices = [make_slice(), make_slice(class_name="pear")]
    predicted = [0, 0, 0, 1, 0, 0, 1, 1, 0, 0]
    columns = {"green": [True] * 3 + [False] * 7}
    before = samples.dataset.predictions
    for labels in ([0] * 6 + [1] * 4, [1] * 6 + [0] * 4, [0, 1] * 5):
        dataset = dataset_from_columns(
            class_names=["apple", "pear"], labels=labels, predictions=before, metadata=columns
        )
        arm = _arm(predicted, slices, SampleSet(dataset=dataset, rows=np.arange(10)), TOP_1)
        inside = [one for one in arm.changes if one.kind is GroupKind.SLICE]
        # Rows 0 to 2 are green, whatever their label says.
        assert sum(one.n_samples for one in inside) == 3
        assert sum(one.right_after for one in inside) == sum(
            predicted[row] == labels[row] for row in (0, 1, 2)
        )
        overall = arm.change_of(GroupKind.OVERALL)
        assert overall.right_after == sum(
            said == truth for said, truth in zip(predicted, labels, strict=True)
        )
        assert overall.right_before == sum(
            said == truth for said, truth in zip(before, labels, strict=True)
        )


def test_measure_arm__membership_that_cannot_be_told_is_on_neither_side(make_slice):
    samples = _test_set()
    embeddings = np.array([[1.0], [1.0], [np.nan], *[[-1.0]] * 7], dtype=np.float32)
    space = EmbeddingSpace(encoder_id="hand", embeddings=embeddings)
    known = SampleSet(dataset=samples.dataset, rows=samples.rows, spaces={"clip": space})
    far_along = make_slice(rule=LinearRule(encoder_id="hand", direction=(1.0,), normalise=False))
    arm = _arm([0] * 10, [far_along], known, TOP_1)
    assert arm.change_of(GroupKind.SLICE).n_samples == 2
    assert arm.change_of(GroupKind.COMPLEMENT).n_samples == 3
    assert arm.change_of(GroupKind.CLASS, "apple").n_samples == 6


@pytest.mark.parametrize(
    ("criterion", "before", "after"),
    [
        (FailureCriterion(), 1, 2),
        (FailureCriterion(kind="top-k", k=2), 2, 3),
        (
            FailureCriterion(
                kind="parent", hierarchy=LabelHierarchy(parents={"apple": "fruit", "pear": "fruit"})
            ),
            2,
            2,
        ),
        (FailureCriterion(kind="low-confidence", threshold=0.4), 2, 2),
        (FailureCriterion(kind="target", target="brick"), 2, 2),
    ],
)
def test_measure_arm__every_kind_of_failure(criterion, before, after):
    # Three apples. Before: right; taken for a pear with the apple second; taken for a brick with the apple last.
    probabilities = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.1, 0.4, 0.5]], dtype=np.float32)
    repaired = np.array([[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.3, 0.2, 0.5]], dtype=np.float32)
    dataset = dataset_from_columns(
        class_names=["apple", "pear", "brick"], labels=[0, 0, 0], probabilities=probabilities
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3))
    overall = _arm(repaired, [], samples, criterion).changes[0]
    assert _counts(overall)[:3] == (3, before, after)


def test_measure_arm__multi_label_counts_decisions(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        label_lists=[[0], [0, 1], []],
        predicted_matrix=np.array([[True, False], [False, True], [True, False]]),
        metadata={"green": [True, True, True]},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3), name="test")
    probabilities = np.array([[0.9, 0.1], [0.9, 0.9], [0.1, 0.1]], dtype=np.float32)
    arm = _arm(probabilities, [make_slice(side=Side.PRESENT)], samples)
    table = {(change.kind, change.group): change for change in arm.changes}
    assert _counts(table[GroupKind.OVERALL, "overall"])[:3] == (6, 4, 6)
    assert table[GroupKind.CLASS, "apple"].gained == 1
    assert table[GroupKind.CLASS, "no apple"].gained == 1


def test_measure_arm__refuses_answers_for_other_samples(make_slice):
    samples = _test_set()
    with pytest.raises(DataError, match="one row of probabilities"):
        _arm([0, 1], [make_slice()], samples, TOP_1)
    with pytest.raises(DataError, match="one column for every class"):
        _arm(np.ones((10, 3), dtype=np.float32), [make_slice()], samples, TOP_1)
    other = samples, np.ones((9, 2), dtype=np.float32)
    with pytest.raises(DataError, match="one row of probabilities"):
        _arm([0] * 10, [make_slice()], samples, TOP_1, elsewhere=[other])


def test_measure_arm__refuses_answers_that_are_no_numbers(make_slice):
    probabilities = np.full((10, 2), 0.5, dtype=np.float32)
    probabilities[[2, 4]] = np.nan
    with pytest.raises(DataError, match="2 measured samples have no usable probabilities"):
        _arm(probabilities, [make_slice()])


def test_measure_arm__refuses_samples_without_label_or_prediction(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], labels=[0, -1], predictions=np.array([0, 0])
    )
    with pytest.raises(DataError, match="no label"):
        _arm([0, 0], [], SampleSet(dataset=dataset, rows=np.arange(2)), TOP_1)


def test_measure_arm__refuses_slices_of_former_failures(make_slice):
    circular = make_slice(rule=PredictionRule(measure="loss", threshold=1.0))
    with pytest.raises(DataError, match="defined by predictions"):
        _arm([0] * 10, [circular])


def test_untouched__refuses_used_rows_and_leaves_out_their_copies():
    hashes = ["a", "b", "c", "a", "d", "d", "e"]
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0, 0, 0, 0, 0, 0, -1],
        predictions=np.zeros(7, dtype=np.int64),
        content_hashes=hashes,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3, 7), name="test")
    fresh = untouched(samples, [np.array([0, 1]), np.array([2])])
    # Row 3 repeats row 0, row 5 repeats row 4, row 6 has no label.
    assert fresh.rows.tolist() == [4]
    assert fresh.name == "test (repeated images left out: 1)"
    with pytest.raises(DataError, match="used to make it"):
        untouched(samples, [np.array([2, 3])])
    with pytest.raises(NotEnoughDataError, match="No labelled sample"):
        untouched(samples.only(np.array([3, 6])), [np.array([0])])


def test_untouched__leaves_out_groups_that_were_used():
    labels = [0] * 10
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=labels,
        predictions=np.array(labels),
        groups=["a", "a", "b", "b", "c", "c", "a", "b", "d", None],
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(4, 10), name="test")
    fresh = untouched(samples, [np.arange(2)])
    assert fresh.rows.tolist() == [4, 5, 7, 8, 9]
    assert fresh.name == "test (images of groups that were used left out: 1)"
    # Where every group was used, what was measured says so by leaving out nothing.
    only = samples.only(np.array([6, 7]))
    assert untouched(only, [np.arange(4)]).rows.tolist() == [6, 7]
