import numpy as np
import pytest
from tests.build import evidence_of, slice_name

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.synthetic import (
    SyntheticRepairer,
    commonest_names,
    slice_prompts,
)

PROMPTS = [
    "A photo of a green apple",
    "a photo of a green apple",
    "A photo of an apple",
    "A photo of a wet apple",
    "A green pear",
]


def _name(contrast, phrase=None):
    return slice_name(contrast, phrase=phrase or f"a photo of a {contrast} apple")


def _material(prompts=PROMPTS, labels=(0, 0, 0, 0, 1), evidence=()):
    """Eight training samples, six apples and two pears, and one generated sample a prompt."""
    metadata = {"green": [False] * (8 + len(labels))}
    if prompts is not None:
        metadata["prompt"] = [None] * 8 + list(prompts)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 2 + list(labels),
        splits=["train"] * 8 + ["synthetic"] * len(labels),
        metadata=metadata,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)))
    training, synthetic = (
        samples.only(dataset.rows_of(split)) for split in (Split.TRAIN, Split.SYNTHETIC)
    )
    return RepairMaterial(
        training=training, synthetic=synthetic, evidence={one.slice_id: one for one in evidence}
    )


@pytest.fixture
def green(make_slice):
    return make_slice(names=(_name("green"),))


def _added(slices, material=None, **parameters):
    """Return which generated samples are taken, all training samples being taken too."""
    rows = SyntheticRepairer(**parameters).select(slices, material or _material()).rows.tolist()
    assert rows[:8] == list(range(8))
    return rows[8:]


def test_select__both_losses_are_means(green):
    chosen = SyntheticRepairer().select([green], _material())
    # Rows 8 and 9 are from the prompt of the slice; 10 names the class only, 11 is about something else, 12 is a pear.
    assert chosen.rows.tolist() == [*range(8), 8, 9]
    # Eight samples share weight 1, two share 0.5: 1/8 each and 1/4 each, scaled to mean one over ten samples (sum 1.5).
    assert chosen.weights == pytest.approx([10 / 12] * 8 + [10 / 6] * 2)
    assert chosen.weights.mean() == pytest.approx(1.0)
    assert chosen.note == (
        "2 generated samples are added to 8 training samples; together they count 0.5 times as much."
    )
    assert not SyntheticRepairer().is_baseline


@pytest.mark.parametrize("weight", [0.1, 1.0, 4.0])
def test_select__the_weight_is_that_of_all_generated_samples_together(green, weight):
    for prompts in (PROMPTS, [PROMPTS[0]] * 4 + [PROMPTS[4]]):
        chosen = SyntheticRepairer(debug_weight=weight).select([green], _material(prompts))
        assert chosen.weights[8:].sum() / chosen.weights[:8].sum() == pytest.approx(weight)


@pytest.mark.parametrize("prompts", [None, [None] * 5])
def test_select__without_prompts_all_generated_samples_of_the_class(green, prompts):
    assert _added([green], _material(prompts=prompts)) == [8, 9, 10, 11]


def test_select__only_the_commonest_names(make_slice):
    slices = [make_slice(names=(_name("wet"), _name("green")))]
    assert _added(slices, n_names=1) == [11]
    assert _added(slices, n_names=2) == [8, 9, 11]


def test_select__a_prompt_belongs_to_the_name_it_has_most_words_of(make_slice):
    slices = [make_slice(names=(_name("green"), _name("on a green background")))]
    prompts = [
        "an apple on a green background",
        "a green apple",
        "An apple, Green!",
        "greenish apple",
        "green pear",
    ]
    assert _added(slices, _material(prompts), n_names=1) == [9, 10]
    assert _added(slices, _material(prompts), n_names=2) == [8, 9, 10]


def test_select__slices_without_a_name_take_all_that_says_more_than_the_class(make_slice):
    assert _added([make_slice()]) == [8, 9, 11]


def test_select__a_class_without_generated_samples_is_named(make_slice, green):
    slices = [green, make_slice(class_name="pear", names=(_name("bruised"),))]
    chosen = SyntheticRepairer().select(slices, _material())
    assert chosen.rows.tolist() == [*range(8), 8, 9]
    assert "There are none for “pear”." in chosen.note


def test_select__no_slice_changes_nothing():
    chosen = SyntheticRepairer().select([], _material())
    assert chosen.rows.tolist() == list(range(8))
    assert chosen.weights.tolist() == [1.0] * 8


def test_select__no_generated_samples(green, training):
    with pytest.raises(NotEnoughDataError, match="no generated samples"):
        SyntheticRepairer().select([green], RepairMaterial(training=training))
    with pytest.raises(NotEnoughDataError, match="no generated samples"):
        SyntheticRepairer().select([green], _material(prompts=None, labels=()))


def test_select__none_that_fits_says_what_to_generate(make_slice):
    with pytest.raises(NotEnoughDataError, match="None of 5 generated samples") as caught:
        SyntheticRepairer().select([make_slice(names=(_name("rotten"),))], _material())
    assert "A photo of a rotten apple" in caught.value.fix


def test_commonest_names__failures_decide(make_slice):
    wet, green = (
        make_slice("wet", names=(_name("wet"), _name("dark"))),
        make_slice("green", names=(_name("green"),)),
    )
    names = commonest_names(
        [wet, green],
        {
            one.slice_id: one
            for one in (evidence_of(wet, inside=(3, 20)), evidence_of(green, inside=(9, 20)))
        },
    )
    # Best names by failures, then the second names.
    assert [one.contrast for one in names] == ["green", "wet", "dark"]


def test_slice_prompts__one_a_name_and_none_of_what_is_not_there(make_slice, green):
    absent = make_slice(class_name="pear", side=Side.ABSENT, names=(_name("dark"),))
    figs = tuple(
        _name(words).model_copy(update={"phrase": f"a photo of a {words} fig"})
        for words in ("ripe", "raw")
    )
    two = make_slice("wet", class_name="fig", names=figs)
    assert slice_prompts([green, absent, two], {}, n_names=1) == {
        "apple": ("A photo of a green apple",),
        "fig": ("A photo of a ripe fig",),
    }


def test_slice_prompts__only_sure_names_that_say_the_class(make_slice):
    bare = _name("green").model_copy(update={"phrase": "an image of green"})
    unsure = _name("wet").model_copy(update={"is_unsure": True})
    plural = _name("ripe").model_copy(update={"phrase": "ripe apples"})
    found = slice_prompts([make_slice(names=(bare, unsure, plural, _name("dark")))], {})
    assert found == {"apple": ("Ripe apples", "A photo of a dark apple")}
    assert slice_prompts([make_slice(names=(bare, unsure))], {}) == {}
