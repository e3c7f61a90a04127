from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import build

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.testing.planted import nothing, phrase_embeddings, plant, rare, spurious

TOP_1 = FailureCriterion()
ASKING = Assistants(embed_texts=phrase_embeddings)


def _apples(angles, failed):
    """Samples on the unit circle; the phrase lies at angle 0, so a small angle is a large similarity."""
    radians = np.radians(np.array(angles, dtype=np.float64))
    embeddings = 5.0 * np.stack([np.cos(radians), np.sin(radians)], axis=1)
    return build.samples([0] * len(angles), predictions=failed, embeddings=embeddings)


def _along_first_axis(texts):
    return np.tile(np.array([[2.0, 0.0]], dtype=np.float32), (len(texts), 1))


def test_discover__score_threshold_and_members_by_hand():
    samples = _apples([0, 10, 20, 60, 70, 80], [1, 1, 0, 1, 0, 0])
    method = HypothesisDiscoverer(phrases={"apple": ["green apples"]}, n_permutations=0)
    (found,) = method.discover(
        samples, TOP_1, seed=0, assistants=Assistants(embed_texts=_along_first_axis)
    ).slices
    # Two of three failures and none of three others are within 10 degrees; all three failures and one other within 60.
    assert found.strength == pytest.approx(2 / 3)
    assert found.rule.threshold == pytest.approx(
        (np.cos(np.radians(10)) + np.cos(np.radians(20))) / 2, abs=1e-6
    )
    assert found.rule.members(samples, samples.rows).tolist() == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert (found.n_found, found.strength_p) == (2, None)
    assert (found.names[0].contrast, found.names[0].phrase) == (
        "green apples",
        "an image of green apples",
    )
    assert found.rule.direction == (1.0, 0.0)


def test_discover__planted_words_beat_others():
    world = plant(rare(0.02), 3000, seed=2)
    method = HypothesisDiscoverer(
        phrases={"disc": ["green", "dark", "a striped background"]}, n_permutations=200
    )
    found = method.discover(world.samples(Split.VALIDATION), TOP_1, seed=0, assistants=ASKING)
    strengths = {item.names[0].contrast: (item.strength, item.strength_p) for item in found.slices}
    assert strengths["green"][0] > 0.4
    assert strengths["green"][1] == pytest.approx(1 / 201)
    assert all(p_value > 0.05 for phrase, (_, p_value) in strengths.items() if phrase != "green")
    assert found.n_considered == 3
    green = next(item for item in found.slices if item.names[0].contrast == "green")
    discs = world.samples(Split.TEST).rows[
        world.dataset.labels[world.dataset.rows_of(Split.TEST)] == 0
    ]
    inside = green.rule.members(world.samples(Split.TEST), discs)
    assert np.mean(inside == world.slices[0].inside[discs]) > 0.97


def test_discover__the_null_world_keeps_its_level():
    values = []
    for seed in range(12):
        samples = plant(nothing(), 1600, seed=seed).samples(Split.VALIDATION)
        method = HypothesisDiscoverer(phrases={"*": ["green", "dark", "grass"]}, n_permutations=99)
        values += [
            item.strength_p
            for item in method.discover(samples, TOP_1, seed=seed, assistants=ASKING).slices
        ]
    assert len(values) > 100
    assert np.mean(np.array(values) <= 0.1) < 0.2


def test_discover__star_and_single_text_and_repeats():
    samples = plant(spurious(0.95), 1200, seed=2).samples(Split.VALIDATION)
    method = HypothesisDiscoverer(
        phrases={"*": "grass", "disc": ["grass", " grass ", "dark"]}, n_permutations=0
    )
    found = method.discover(samples, TOP_1, seed=0, assistants=ASKING)
    of_disc = sorted(item.names[0].contrast for item in found.slices if item.class_name == "disc")
    assert of_disc in (["dark", "grass"], ["grass"])
    assert found.n_considered == 2 + 3


def test_discover__phrases_that_mean_the_same_give_one_slice():
    samples = plant(spurious(0.95), 1200, seed=2).samples(Split.VALIDATION)
    method = HypothesisDiscoverer(phrases={"disc": ["grass", "grassy"]}, n_permutations=0)
    found = method.discover(samples, TOP_1, seed=0, assistants=ASKING)
    assert [item.names[0].contrast for item in found.slices] == ["grass"]
    assert any("'grassy' is the same as 'grass'" in note.note for note in found.notes)


def test_discover__several_templates_are_averaged():
    samples = _apples([0, 10, 80, 90], [0, 0, 1, 1])
    directions = {"an image of x": [1.0, 0.0], "x!": [0.0, 1.0]}

    def embed(texts):
        return np.array([directions.get(text, [0.0, 0.0]) for text in texts], dtype=np.float32)

    method = HypothesisDiscoverer(
        phrases={"apple": ["x"]}, templates=("an image of {phrase}", "{phrase}!"), n_permutations=0
    )
    assert method.phrase_embeddings(["x"], embed)["x"] == pytest.approx([0.5**0.5, 0.5**0.5])
    assert (
        method.discover(
            samples, TOP_1, seed=0, assistants=Assistants(embed_texts=embed)
        ).n_considered
        == 1
    )


def test_discover__braces_in_a_phrase_mean_nothing():
    asked = []

    def embed(texts):
        asked.extend(texts)
        return _along_first_axis(texts)

    method = HypothesisDiscoverer(phrases={"apple": ["{0.__class__} {phrase}"]}, n_permutations=0)
    method.discover(
        _apples([0, 80], [1, 0]), TOP_1, seed=0, assistants=Assistants(embed_texts=embed)
    )
    assert "an image of {0.__class__} {phrase}" in asked
    assert "an image of a {0.__class__} {phrase} apple" in asked


def test_discover__notes_say_what_to_do():
    samples = plant(rare(0.02), 800, seed=11).samples(Split.VALIDATION)
    notes = {
        note.class_name: note.note
        for note in HypothesisDiscoverer(phrases={})
        .discover(samples, TOP_1, seed=0, assistants=ASKING)
        .notes
    }
    assert "weakspot ask --class star" in notes["star"]
    method = HypothesisDiscoverer(phrases={"disc": ["shiny"], "disk": ["green"]})
    deaf = {note.class_name: note.note for note in method.discover(samples, TOP_1, seed=0).notes}
    assert "no embeddings with a text side" in deaf["disc"]
    assert "no such class" in deaf["disk"]


def test_discover__useless_phrase_is_a_note():
    method = HypothesisDiscoverer(phrases={"apple": ["x"]}, min_failures=1, min_right=1)
    found = method.discover(
        _apples([0, 80], [0, 1]),
        TOP_1,
        seed=0,
        assistants=Assistants(embed_texts=_along_first_axis),
    )
    assert found.slices == ()
    assert "does not separate failures" in found.notes[0].note


def test_discover__words_of_a_second_encoder_in_its_own_space():
    samples = _apples([0, 10, 80, 90], [1, 1, 0, 0])
    both = SampleSet(
        dataset=samples.dataset, rows=samples.rows, spaces={"other": samples.space("clip")}
    )
    second = ("other", _along_first_axis)
    method = HypothesisDiscoverer(phrases={"apple": ["x"]}, space="other", n_permutations=0)
    (found,) = method.discover(both, TOP_1, seed=0, assistants=Assistants(second=second)).slices
    assert (found.strength, found.rule.space) == (1.0, "other")


def test_discover__objects_seen_several_times_are_no_coincidence():
    draws = np.random.default_rng(0)
    small = {True: 0, False: 0}
    method = HypothesisDiscoverer(phrases={"apple": ["green apples"]}, n_permutations=39)
    for _ in range(40):
        objects = np.repeat(np.arange(30), 6)
        angles = draws.uniform(0, 80, 30)[objects]
        failed = (draws.random(30) < 0.3)[objects]
        for is_told in (True, False):
            samples = _apples(angles, failed)
            if is_told:
                names = [f"object {one}" for one in objects]
                samples = replace(samples, dataset=samples.dataset.with_groups(pa.array(names)))
            asking = Assistants(embed_texts=_along_first_axis)
            found = method.discover(samples, TOP_1, seed=0, assistants=asking).slices
            small[is_told] += found[0].strength_p <= 0.05
    assert small[False] >= 12
    assert small[True] <= 6


def test_discover__values_of_columns_need_no_embeddings():
    samples = build.samples(
        [0] * 6,
        predictions=[1, 1, 1, 0, 0, 0],
        metadata={"colour": ["green", "green", "red", "red", "red", "red"]},
    )
    method = HypothesisDiscoverer(phrases={"apple": ["colour = green", "colour = blue", "shiny"]})
    found = method.discover(samples, TOP_1, seed=0)
    (slice_,) = found.slices
    assert slice_.title == "apple: colour = green"
    assert slice_.n_found == 2
    assert slice_.strength == pytest.approx(2 / 3)
    assert slice_.rule.columns == {"colour"}
    notes = " ".join(note.note for note in found.notes if note.class_name == "apple")
    assert "No sample has 'blue' in the column 'colour'" in notes
    assert "no column holds them" in notes
    assert found.n_considered == 3
