import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion, Side, class_problems
from weakspot.core.rules import (
    AllOfRule,
    ColumnRule,
    IdRule,
    LinearRule,
    MembershipRule,
    PredictionRule,
)
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName, matches

USE = DataUse(name="validation", n_samples=4, digest="0" * 32)
ROWS = np.arange(4)


@pytest.fixture
def samples():
    data = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0, 0, 1, -1],
        sample_ids=["p", "q", "r", "s"],
        metadata={
            "colour": ["red", "green", None, "red"],
            "age": [1.0, 2.0, 3.0, None],
            "old": [True, False, True, None],
        },
        predictions=np.array([0, 1, 1, 0]),
    )
    embeddings = np.array([[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0], [np.nan, np.nan]], dtype=np.float32)
    return SampleSet(
        dataset=data,
        rows=ROWS,
        spaces={"clip": EmbeddingSpace(encoder_id="e", embeddings=embeddings)},
    )


def _slice(rule, **other):
    return FailureSlice(class_name="a", rule=rule, method="m", found_on=USE, **other)


def test_linear_rule__scores_of_unit_embeddings(samples):
    rule = LinearRule(encoder_id="e", direction=(1.0, 0.0), offset=0.1, threshold=0.5)
    # Unit vectors are (0.6, 0.8), (0, 1), (-1, 0); a sample without an embedding is never a member.
    np.testing.assert_allclose(rule.scores(samples, ROWS)[:3], [0.7, 0.1, -0.9], atol=1e-6)
    assert rule.members(samples, ROWS).tolist() == [True, False, False, False]


def test_linear_rule__centre_and_scale_come_before_the_length(samples):
    rule = LinearRule(encoder_id="e", direction=(0.0, 1.0), centre=(0.0, 1.0), scale=(1.0, 2.0))
    # (3, 4) -> (3, 1.5) -> length sqrt(11.25).
    np.testing.assert_allclose(rule.scores(samples, np.array([0])), [1.5 / 11.25**0.5], atol=1e-6)
    plain = rule.model_copy(update={"normalise": False})
    np.testing.assert_allclose(plain.scores(samples, np.array([0])), [1.5], atol=1e-6)


def test_linear_rule__a_threshold_is_inclusive(samples):
    rule = LinearRule(encoder_id="e", direction=(1.0, 0.0), threshold=0.0)
    assert rule.members(samples, np.array([1])).tolist() == [True]


def test_linear_rule__embeddings_stay_as_they_are(samples):
    before = samples.space("clip").embeddings.copy()
    LinearRule(encoder_id="e", direction=(1.0, 0.0), centre=(1.0, 1.0), scale=(2.0, 2.0)).scores(
        samples, ROWS
    )
    np.testing.assert_array_equal(samples.space("clip").embeddings, before)


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        (ColumnRule(column="colour", values=("red",)), "ps"),
        (ColumnRule(column="colour", values=("None",)), ""),
        (ColumnRule(column="old", values=(True,)), "pr"),
        (ColumnRule(column="age", values=(1, "2.0")), "pq"),
        (ColumnRule(column="age", low=2.0, high=3.0), "q"),
        (ColumnRule(column="age", low=2.0), "qr"),
        (ColumnRule(column="age", high=2.0), "p"),
        (IdRule(sample_ids=("q", "zzz")), "q"),
    ],
)
def test_rules__members_by_columns_and_ids(samples, rule, members):
    """Numbers match whatever their type, null matches nothing, ranges hold their low end."""
    inside = rule.members(samples, ROWS)
    assert "".join(np.array(samples.dataset.sample_ids())[inside]) == members
    assert rule.members(samples, ROWS[::-1]).tolist() == inside[::-1].tolist()


def test_column_rule__unknown_column(samples):
    with pytest.raises(DataError, match="no metadata column 'size'"):
        ColumnRule(column="size", values=("x",)).members(samples, ROWS)


def test_rules__unknown_kinds_and_fields_are_refused():
    adapter = TypeAdapter(MembershipRule)
    with pytest.raises(DataError, match="kind 'magic'"):
        adapter.validate_python({"kind": "magic"})
    with pytest.raises(ValidationError, match="extra"):
        adapter.validate_python({"kind": "ids", "sample_ids": ["p"], "extra": 1})


def test_slice_id__names_and_figures_do_not_matter():
    rule = IdRule(sample_ids=("p",))
    name = SliceName(phrase="a photo of a green apple", contrast="green", score=1.0, describer="d")
    plain = _slice(rule)
    assert len(plain.slice_id) == 12
    assert plain.slice_id == _slice(rule, names=(name,), strength=0.9, n_found=4).slice_id
    assert plain.slice_id != _slice(IdRule(sample_ids=("q",))).slice_id
    assert plain.slice_id != _slice(rule, side=Side.ABSENT).slice_id


def test_model_copy__a_changed_copy_gets_its_own_id():
    plain = _slice(IdRule(sample_ids=("p",)))
    before = plain.slice_id
    changed = plain.model_copy(update={"method": "other"})
    assert changed.slice_id == FailureSlice.model_validate(changed.model_dump()).slice_id != before
    assert plain.model_copy(update={"n_found": 3}).slice_id == plain.slice_id == before


def test_slice_id__the_same_on_every_machine():
    # sha256 of ["a", null, "m", {"kind": "ids", "sample_ids": ["p"]}]
    assert _slice(IdRule(sample_ids=("p",))).slice_id == "69b8efcf0acd"


def test_slice_id__as_before_words_were_changed():
    # Ids never change, whatever the spaces and kinds of rules are called.
    linear = LinearRule(encoder_id="e", direction=(1.0,))
    assert _slice(linear).slice_id == "4a40ab3dca4f"
    assert _slice(linear.model_copy(update={"space": "features"})).slice_id == "855d097a8213"
    doubt = PredictionRule(measure="doubt", threshold=0.5)
    assert _slice(AllOfRule(rules=(linear, doubt))).slice_id == "ce3f23837642"


def test_title__class_side_and_name():
    rule = IdRule(sample_ids=())
    name = SliceName(phrase="a photo of a green apple", contrast="green", score=1.0, describer="d")
    assert _slice(rule).title == "a: unnamed (m)"
    assert _slice(rule, names=(name,)).title == "a: green"
    assert _slice(rule, names=(name,), side=Side.ABSENT).title == "no a: green"


def test_members__whatever_their_class(samples):
    found = _slice(ColumnRule(column="colour", values=("red",)))
    assert found.members(samples).tolist() == [0, 3]
    assert found.members(samples, np.array([1, 3])).tolist() == [3]
    assert found.class_rows(samples).tolist() == [0, 1]


def test_class_rows__multi_label_sides():
    data = dataset_from_columns(class_names=["a"], label_lists=[[0], [], None])
    samples = SampleSet(dataset=data, rows=np.arange(3))
    assert _slice(IdRule(sample_ids=()), side=Side.PRESENT).class_rows(samples).tolist() == [0]
    assert _slice(IdRule(sample_ids=()), side=Side.ABSENT).class_rows(samples).tolist() == [1]


def test_inside__rows_of_the_problem(samples):
    problems = class_problems(samples.dataset, samples.rows, FailureCriterion())
    found = _slice(IdRule(sample_ids=("q", "r")))
    assert found.inside(samples, problems[0]).tolist() == [False, True]
    assert matches(found, problems[0])
    assert not matches(found, problems[1])


@pytest.mark.parametrize(
    ("n_true", "n_told", "is_untrue", "said_of"),
    [
        (22, 340, True, "said of 22 of 340"),
        (5, 10, False, "said of 5 of 10"),
        (0, 4, False, "said of 0 of 4"),
        (None, 0, False, ""),
    ],
)
def test_slice_name__words_that_are_not_true_of_half_are_not_its_words(
    n_true, n_told, is_untrue, said_of
):
    name = SliceName(
        phrase="p", contrast="c", score=1.0, describer="d", n_true=n_true, n_told=n_told
    )
    assert (name.is_untrue, name.said_of) == (is_untrue, said_of)


def _named(rule, *names, **changes):
    return _slice(rule).model_copy(update={"names": names, **changes})


def _word(contrast, **changes):
    return SliceName(
        **{"phrase": contrast, "contrast": contrast, "score": 1.0, "describer": "d", **changes}
    )


@pytest.fixture
def rule():
    return LinearRule(encoder_id="e", direction=(1.0, 0.0))


def test_title__words_that_are_not_sure_are_never_in_it(rule):
    unsure = _word("metal", is_unsure=True, title="metal dogs")
    assert _named(rule, unsure, number=2).title == "a, group 2"
    assert _named(rule, unsure).title == "a: unnamed (m)"
    both = _named(rule, unsure, _word("black", title="black as"), number=2)
    assert both.title == "black as"
    assert both.name.contrast == "black"
    assert both.nearest_words == (unsure,)


def test_title__words_without_a_title_of_their_own_stand_after_the_class(rule):
    assert _named(rule, _word("green"), number=2).title == "a: green"
    absent = _named(rule, _word("metal", is_unsure=True), side=Side.ABSENT, number=1)
    assert absent.title == "no a, group 1"
