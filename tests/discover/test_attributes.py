from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import build

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion, unjudged_classes
from weakspot.core.group_tests import group_p
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import fisher_p
from weakspot.discover.attribute_search import (
    CountedClass,
    find_standing_out,
    keep_standing_out_in_groups,
)
from weakspot.discover.attributes import (
    AttributesDiscoverer,
    attribute_table,
    name_words,
    worded,
)
from weakspot.testing.planted import nothing, plant, rare, spurious

TOP_1 = FailureCriterion()
QUICK = AttributesDiscoverer(n_permutations=39)


def _samples(metadata, failed, *, labels=None):
    failed = np.asarray(failed, dtype=bool)
    labels = np.zeros(len(failed), dtype=np.int64) if labels is None else np.asarray(labels)
    return build.samples(
        labels,
        metadata=metadata,
        predictions=np.where(failed, 1 - labels, labels),
        rows=np.arange(len(failed)),
    )


def _fruit(n_samples=600, seed=0):
    """Return colour, place and light of apples, drawn independently of each other."""
    draws = np.random.default_rng(seed)
    words = {
        "colour": ("red", "green", "yellow"),
        "place": ("on grass", "on a table"),
        "light": ("dark", "bright", "soft"),
    }
    return {name: draws.choice(values, n_samples) for name, values in words.items()}, draws


def test_blind_candidates__rare_values_count_more_and_predictions_have_no_part():
    colour = np.repeat(["red", "green", "yellow"], [64, 16, 4])
    samples = _samples({"colour": colour}, np.arange(84) < 9)
    (problem,) = unjudged_classes(samples.dataset, samples.rows)
    listed = AttributesDiscoverer(min_support=10).blind_candidates(samples, problem, seed=0)
    weights = {one[0].rule.values[0]: one[1] for one in listed}
    # Four samples are too few.
    assert weights == {"red": 1 / 8, "green": 1 / 4}


def test_discover__one_value_is_one_slice_with_its_words():
    columns, draws = _fruit()
    is_green = columns["colour"] == "green"
    samples = _samples(columns, draws.random(600) < np.where(is_green, 0.7, 0.05))
    discovery = QUICK.discover(samples, TOP_1, seed=0)
    first = discovery.slices[0]
    assert first.rule == ColumnRule(column="colour", values=("green",))
    assert (first.title, first.names[0].phrase) == ("apple: green", "apple with colour = green")
    assert first.names[0].describer == first.method == "attributes"
    failed = samples.dataset.predictions == 1
    assert first.strength == pytest.approx(failed[is_green].mean() - failed[~is_green].mean())
    assert first.strength_p == pytest.approx(1 / 40)
    assert first.n_found == is_green.sum()
    # 3 + 2 + 3 values, 3 x 2 + 3 x 3 + 2 x 3 pairs and 18 triples, all of them with ten samples and more.
    assert discovery.n_considered == 8 + 21 + 18
    others = [found for found in discovery.slices[1:] if "green" in found.title]
    assert others == []


def test_discover__two_values_that_fail_only_together():
    columns, draws = _fruit()
    both = (columns["colour"] == "green") & (columns["light"] == "dark")
    samples = _samples(columns, draws.random(600) < np.where(both, 0.8, 0.05))
    first = QUICK.discover(samples, TOP_1, seed=0).slices[0]
    green, dark = (
        ColumnRule(column="colour", values=("green",)),
        ColumnRule(column="light", values=("dark",)),
    )
    assert first.rule == AllOfRule(rules=(green, dark))
    assert first.names[0].contrast == "green, in the dark"
    assert np.array_equal(first.rule.members(samples, samples.rows), both)


def test_discover__two_failure_modes_are_both_found():
    columns, draws = _fruit(1_500)
    rates = np.where(
        columns["colour"] == "green", 0.9, np.where(columns["light"] == "dark", 0.6, 0.0)
    )
    samples = _samples(columns, draws.random(1_500) < rates)
    found = [one.names[0].contrast for one in QUICK.discover(samples, TOP_1, seed=0).slices]
    assert found[0] == "green"
    assert "in the dark" in found
    assert all("green" in words or "dark" in words for words in found)
    few = replace(QUICK, cover=0.5).discover(samples, TOP_1, seed=0).slices
    assert [one.names[0].contrast for one in few] == ["green"]
    assert len(replace(QUICK, max_slices=1).discover(samples, TOP_1, seed=0).slices) == 1


def _overlapping(seed=0, n_samples=9_000):
    """Return apples that are often wrong when red, and nearly always in two small kinds that overlap with it."""
    draws = np.random.default_rng(seed)
    columns = {
        name: np.where(draws.random(n_samples) < share, "yes", "no")
        for name, share in (("red", 0.12), ("wet", 0.1), ("cut", 0.08), ("stem", 0.3), ("box", 0.5))
    }
    yes = {name: column == "yes" for name, column in columns.items()}
    rates = np.where(yes["red"], 0.56, 0.02)
    rates = np.where(yes["wet"] & yes["cut"], 0.8, rates)
    rates = np.where(yes["red"] & yes["wet"], 0.85, rates)
    return columns, draws.random(n_samples) < rates


def test_discover__a_broad_slice_does_not_hide_severe_small_ones_that_overlap_it():
    columns, failed = _overlapping()
    discovery = QUICK.discover(_samples(columns, failed), TOP_1, seed=0)
    first = [one.names[0].contrast for one in discovery.slices[:4]]
    assert first[0] == "red"
    assert {"red, wet", "wet, cut"} <= set(first)
    again = QUICK.discover(_samples(columns, failed), TOP_1, seed=5)
    assert [one.title for one in again.slices] == [one.title for one in discovery.slices]


def test_discover__a_present_value_stands_for_all_the_absent_ones():
    draws = np.random.default_rng(3)
    kinds = draws.choice(["a", "b", "c", "d"], 2_000, p=[0.3, 0.3, 0.3, 0.1])
    columns = {kind: np.where(kinds == kind, "1", "0") for kind in "abcd"}
    failed = draws.random(2_000) < np.where(kinds == "d", 0.6, 0.05)
    found = QUICK.discover(_samples(columns, failed), TOP_1, seed=0).slices
    assert found[0].rule == ColumnRule(column="d", values=("1",))
    assert not any(len(getattr(one.rule, "rules", ())) == 3 for one in found)


def test_discover__unknown_values_are_outside():
    colour = np.array(["green"] * 40 + ["red"] * 40 + [None] * 40, dtype=object)
    failed = np.r_[
        np.ones(36), np.zeros(4), np.zeros(36), np.ones(4), np.zeros(36), np.ones(4)
    ].astype(bool)
    samples = _samples({"colour": pa.array(colour.tolist())}, failed)
    found = QUICK.discover(samples, TOP_1, seed=0).slices
    assert [one.title for one in found] == ["apple: green"]
    assert found[0].strength == pytest.approx(36 / 40 - 8 / 80)


def test_discover__a_copied_attribute_does_not_make_a_longer_name():
    columns, draws = _fruit()
    samples = _samples(
        {**columns, "tint": columns["colour"]},
        draws.random(600) < np.where(columns["colour"] == "green", 0.7, 0.05),
    )
    found = QUICK.discover(samples, TOP_1, seed=0).slices
    assert found[0].rule == ColumnRule(column="colour", values=("green",))
    assert found[0].names[0].contrast == "colour: green"
    assert not any(
        rule.column == "tint" for one in found for rule in getattr(one.rule, "rules", (one.rule,))
    )


def test_discover__rare_values_and_lone_failures_are_no_slices():
    columns, draws = _fruit(200)
    columns["colour"][:9] = "black"
    failed = (draws.random(200) < 0.1) | (np.arange(200) < 9)
    found = QUICK.discover(_samples(columns, failed), TOP_1, seed=0).slices
    assert not any("black" in one.title for one in found)
    found = replace(QUICK, min_support=9).discover(_samples(columns, failed), TOP_1, seed=0).slices
    assert found[0].title == "apple: black"


def test_discover__columns_that_cannot_be_used_are_said():
    draws = np.random.default_rng(0)
    failed = draws.random(20_000) < 0.2
    metadata = {
        "camera": ["one"] * 20_000,
        "serial": [f"number {place % 10_000}" for place in range(20_000)],
        "year": np.arange(20_000) % 40,
        "tags": pa.array([["a"]] * 20_000),
        "empty": pa.nulls(20_000),
    }
    discovery = QUICK.discover(_samples(metadata, failed), TOP_1, seed=0)
    assert discovery.slices == ()
    said = {note.note for note in discovery.notes if note.class_name == "all classes"}
    assert "The column 'camera' was left out: all samples have the same value." in said
    assert (
        "The column 'serial' was left out: it has 10000 different values, at most 50 are compared."
        in said
    )
    assert (
        "The column 'year' was left out: it has 40 different numbers, at most 12 are compared."
        in said
    )
    assert "The column 'tags' was left out: its entries are no single values." in said
    assert "The column 'empty' was left out: it says nothing of these samples." in said
    assert "no metadata column can be used" in next(
        note.note for note in discovery.notes if note.class_name == "apple"
    )


def test_discover__nothing_stands_out():
    columns, _ = _fruit(360)
    failed = np.zeros(360, dtype=bool)
    failed[::36] = True
    note = (
        replace(QUICK, max_p=1e-6).discover(_samples(columns, failed), TOP_1, seed=0).notes[0].note
    )
    assert note.startswith("Among ")
    assert "none stands out with failures (10 of 360 samples failed)" in note


def test_discover__chosen_columns_only():
    columns, draws = _fruit()
    samples = _samples(
        columns, draws.random(600) < np.where(columns["colour"] == "green", 0.7, 0.05)
    )
    found = replace(QUICK, columns=("light", "place")).discover(samples, TOP_1, seed=0).slices
    assert not any("green" in one.title for one in found)
    with pytest.raises(DataError, match="no metadata column 'shape'"):
        replace(QUICK, columns=("shape",)).discover(samples, TOP_1, seed=0)


def test_discover__without_shuffles_chances_are_corrected_p_values():
    columns, draws = _fruit()
    is_green = columns["colour"] == "green"
    failed = draws.random(600) < np.where(is_green, 0.25, 0.1)
    first = (
        AttributesDiscoverer(n_permutations=0)
        .discover(_samples(columns, failed), TOP_1, seed=0)
        .slices[0]
    )
    p_value = fisher_p(
        int(failed[is_green].sum()),
        int(is_green.sum()),
        int(failed[~is_green].sum()),
        int((~is_green).sum()),
    )
    assert first.title == "apple: green"
    assert first.strength_p == pytest.approx(min(1.0, p_value * 47))


def test_discover__too_many_combinations_lower_the_order(monkeypatch):
    monkeypatch.setattr("weakspot.discover.attributes.MAX_CONSIDERED", 30)
    columns, draws = _fruit()
    discovery = QUICK.discover(_samples(columns, draws.random(600) < 0.2), TOP_1, seed=0)
    assert discovery.n_considered == 8 + 21
    assert "only those of at most 2 values were counted" in discovery.notes[0].note


def test_discover__planted_rare_colour_and_spurious_background_come_first():
    green = QUICK.discover(
        plant(rare(0.02), 4_000).samples(Split.VALIDATION), TOP_1, seed=0
    ).slices[0]
    assert (green.class_name, green.rule) == (
        "disc",
        ColumnRule(column="colour", values=("green",)),
    )
    assert green.strength_p < 0.05
    grassy = QUICK.discover(
        plant(spurious(), 4_000).samples(Split.VALIDATION), TOP_1, seed=0
    ).slices[0]
    assert (grassy.class_name, grassy.rule) == (
        "disc",
        ColumnRule(column="background", values=("grassy",)),
    )
    assert grassy.strength_p < 0.05


def test_discover__where_nothing_is_planted_few_slices_pass():
    found = QUICK.discover(plant(nothing(), 1_500).samples(Split.VALIDATION), TOP_1, seed=0).slices
    assert len({one.class_name for one in found if one.strength_p <= 0.05}) <= 1
    n_passed = 0
    for seed in range(60):
        columns, draws = _fruit(150, seed)
        found = QUICK.discover(_samples(columns, draws.random(150) < 0.2), TOP_1, seed=seed).slices
        n_passed += any(one.strength_p <= 0.05 for one in found)
    # 60 classes at level 0.05: 3 are expected, 8 is three standard deviations more.
    assert n_passed <= 8


def test_attribute_table__codes_values_of_all_kinds():
    dataset = _samples(
        {
            "colour": pa.array(["red", None, "green", "", "red"]),
            "count": pa.array([3, 1, None, 1, 3]),
            "share": pa.array([0.5, float("nan"), 1.5, 0.5, 0.5]),
            "glasses": pa.array([True, False, True, None, True]),
            "site": pa.array(["north", "south", "north", "north", "south"]).dictionary_encode(),
        },
        [False] * 5,
    ).dataset
    table = attribute_table(dataset, np.arange(5), (), max_values=50)
    assert table.names == ("colour", "count", "share", "glasses", "site")
    assert table.values == (
        ("green", "red"),
        ("1", "3"),
        ("0.5", "1.5"),
        ("False", "True"),
        ("north", "south"),
    )
    assert table.codes.T.tolist() == [
        [2, 0, 1, 0, 2],
        [2, 1, 0, 1, 2],
        [1, 0, 2, 1, 1],
        [2, 1, 2, 0, 2],
        [1, 2, 1, 1, 2],
    ]
    for column, values in zip(table.names, table.values, strict=True):
        samples = SampleSet(dataset=dataset, rows=np.arange(5))
        place = table.names.index(column)
        for code, value in enumerate(values, start=1):
            inside = ColumnRule(column=column, values=(value,)).members(samples, samples.rows)
            assert inside.tolist() == (table.codes[:, place] == code).tolist()


def test_attribute_table__assigned_attributes_are_preferred():
    from weakspot.core.samples import mark_attributes

    dataset = _samples(
        {"colour": ["red", "green"] * 3, "site": ["a", "b"] * 3}, [False] * 6
    ).dataset
    marked = replace(dataset, table=mark_attributes(dataset.table, ["site"]))
    assert attribute_table(marked, np.arange(6), (), max_values=50).names == ("site",)
    assert attribute_table(marked, np.arange(6), ("colour",), max_values=50).names == ("colour",)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("colour", "green", "green"),
        ("place", "on grass", "on grass"),
        ("hair_colour", "light_brown", "light brown"),
        ("glasses", "yes", "glasses"),
        ("glasses", "no", "no glasses"),
        ("is_wet", "True", "is wet"),
        ("contrast", "high", "high contrast"),
        ("count", "3", "count: 3"),
        ("site", "both", "site: both"),
    ],
)
def test_worded__values_speak_for_themselves(column, value, shown):
    assert worded(column, value, shared=frozenset({"both"})).shown == shown


def test_name_words__every_kind_of_word_finds_its_place():
    wordings = [
        worded("weather", "blurry"),
        worded("tone", "green"),
        worded("where", "in a box"),
        worded("mood", "joyful"),
    ]
    assert name_words("hat_box", wordings) == (
        "a blurry photo of a green hat box in a box, joyful",
        "blurry, green, in a box, joyful",
    )
    assert name_words("cat", [worded("collar", "no")], is_absent=True) == (
        "a photo without collar",
        "no collar",
    )


def _objects(seed, *, is_told, per_object=5):
    """Forty objects, seen several times and right or wrong together; their colour and shape have nothing to do with it."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(40), per_object)
    metadata = {
        name: np.array(["a", "b", "c"])[draws.integers(0, 3, 40)][objects].tolist()
        for name in ("colour", "shape", "light")
    }
    return build.samples(
        [0] * len(objects),
        predictions=(draws.random(40) < 0.3)[objects],
        metadata=metadata,
        groups=[f"object {one}" for one in objects] if is_told else None,
    )


@pytest.mark.parametrize("n_permutations", [0, 39])
def test_discover__objects_seen_several_times_are_no_coincidence(n_permutations):
    method = AttributesDiscoverer(n_permutations=n_permutations, max_chance=0.05)
    found = {
        is_told: sum(
            bool(method.discover(_objects(seed, is_told=is_told), TOP_1, seed=0).slices)
            for seed in range(25)
        )
        for is_told in (True, False)
    }
    assert found[False] >= 12
    assert found[True] <= 3


def test_discover__objects_that_share_an_attribute_are_found():
    samples = _objects(0, is_told=True)
    is_first = np.random.default_rng(0).integers(0, 3, 40) == 0
    wrong = (is_first | (np.arange(40) % 10 == 0)).repeat(5)
    told = samples.dataset.with_predictions(predictions=wrong.astype(np.int64))
    found = AttributesDiscoverer().discover(replace(samples, dataset=told), TOP_1, seed=0).slices
    assert [one.rule for one in found] == [ColumnRule(column="colour", values=("a",))]


def test_refines__groups_count_once():
    """Of the objects that are both, two of five fail, seen ten times each; of those that are one of both, none of five."""
    objects = np.repeat(np.arange(40), 10)
    codes = np.ones((40, 2), dtype=np.int64)
    codes[:10, 0], codes[5:15, 1] = 2, 2
    failed = np.isin(objects, [5, 6, 30])
    both = ((0, 2), (1, 2))
    counted = CountedClass(codes[objects], failed, objects, order=2, min_support=5)
    limits = {"max_p": 1.0, "refine_p": 0.05}
    images = find_standing_out(counted.found, counted.gaps, min_gap=0.0, **limits)
    told = keep_standing_out_in_groups(counted, images, objects, **limits)
    assert both in [counted.values(int(place)) for place in images.places]
    assert both not in [counted.values(int(place)) for place in told.places]
    insides = [counted.members(int(place)) for place in told.places]
    assert told.p_values.tolist() == [group_p(one, failed, objects) for one in insides]
