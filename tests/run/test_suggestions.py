from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import METADATA_PREFIX, Split
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.run.suggestions import SuggestionSource, _held_out_scores
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import nothing, plant, rare
from weakspot.words.word_choice import is_witnessed

METHOD = HypothesisDiscoverer(phrases={})
EMBED = PlantedEmbedder().embed_texts
BESIDE = {"space": "clip", "obstacle": "", "found_on": DataUse.nothing()}


@pytest.fixture(scope="module")
def green():
    """Planted discs that fail where they are green, with columns that say so."""
    return plant(rare(0.01), 1200, seed=3)


def source(world, *, columns=False, **assistants) -> SuggestionSource:
    samples = world.samples(Split.VALIDATION)
    if not columns:
        table = samples.dataset.table
        kept = [name for name in table.column_names if not name.startswith(METADATA_PREFIX)]
        samples = replace(samples, dataset=replace(samples.dataset, table=table.select(kept)))
    problems = class_problems(samples.dataset, samples.rows, FailureCriterion())
    problem = next(one for one in problems if one.class_name == "disc")
    return SuggestionSource(
        samples=samples,
        problem=problem,
        embeddings=unit_rows(samples.embeddings("clip", problem.rows)),
        **BESIDE,
        method=METHOD,
        assistants=Assistants(**{"embed_texts": EMBED, **assistants}),
        seed=0,
    )


def words_of(found):
    return [one.words for one in found]


def test_suggest__what_sets_failures_apart_comes_first_and_once(green):
    found = source(green).suggest()
    assert found[0].words == "green"
    assert found[0].score >= found[0].held_out > 0.3
    assert len(found) <= 10
    assert [one.held_out for one in found] == sorted((one.held_out for one in found), reverse=True)
    assert len([word for word in words_of(found) if "green" in word]) == 1


def test_suggest__backgrounds_only_where_a_witness_sees_them(green):
    first = source(green).suggest()
    assert not [word for word in words_of(first) if word.endswith("background")]
    asked = []

    def seen(rows, words):
        asked.append(words)
        is_green = green.dataset.metadata("colour").to_numpy()[rows] == "green"
        return np.where(is_green, 0.9, 0.1) if words == "on a green background" else None

    measured = {"on a green background": 0.95}
    found = source(
        green,
        seen=seen,
        measured=lambda words: np.array([measured.get(one, np.nan) for one in words]),
    ).suggest()
    assert words_of(found) == ["on a green background"]
    assert set(asked) == {"on a green background"}


def test_suggest__words_below_the_floor_and_unmeasured_ones__never(green):
    areas = {"green": 0.79, "dark": 0.8, "red": np.nan}
    found = source(
        green, measured=lambda words: np.array([areas.get(one, np.nan) for one in words])
    ).suggest()
    assert set(words_of(found)) <= {"dark"}


def test_suggest__a_word_that_is_known_better_comes_first(green):
    def measured(words):
        return np.array([{"green": 0.8, "yellow": 1.0}.get(one, np.nan) for one in words])

    def as_green(texts):
        return EMBED([text.replace("yellow", "green leafy") for text in texts])

    found = source(green, embed_texts=as_green, measured=measured).suggest()
    assert words_of(found) == ["yellow"]


def test_suggest__values_of_columns_count_too(green):
    found = source(green, columns=True).suggest()
    assert found[0].words == "colour = green"
    assert "green" not in words_of(found)


def test_suggest__words_of_captions_count_if_they_are_known(green):
    def measured(words):
        return np.full(len(words), np.nan)

    def trust(words):
        return np.array([0.2 if "dark" in one else 0.9 for one in words])

    one = source(green, measured=measured, trust=trust)
    assert words_of(one.suggest(["green", "dark"])) == ["green"]


def test_suggest__reads_nothing_but_the_discovery_half(green):
    first = source(green)
    dataset, rows = first.samples.dataset, first.problem.rows
    others = np.setdiff1d(np.arange(len(dataset)), rows)
    changed = np.array(dataset.predictions)
    changed[others] = 0
    again = replace(
        first,
        samples=replace(first.samples, dataset=dataset.with_predictions(predictions=changed)),
    )
    assert first.suggest() == again.suggest()


def test_separation__noise__separates_nothing_on_average(green):
    """With the best threshold of the same samples, every word of noise would look good."""
    draws = np.random.default_rng(0)
    noise = draws.standard_normal((60, len(green.samples(Split.VALIDATION).rows)))
    one = source(green)
    fits = noise[:, : len(one.problem.rows)].astype(np.float32)
    folds = np.arange(fits.shape[1]) % 5
    assert abs(_held_out_scores(fits, one.problem.failed, folds).mean()) < 0.05
    assert abs(one._separation(fits).mean()) < 0.05


def test_suggest__every_or_no_sample_failed__nothing(green):
    one = source(green)
    for failed in (np.ones, np.zeros):
        problem = replace(one.problem, failed=failed(len(one.problem.rows), dtype=bool))
        assert replace(one, problem=problem).suggest() == ()


def test_suggest__groups_stay_whole(green):
    one = source(green)
    groups = np.arange(len(one.problem.rows)) // 4
    found = replace(one, problem=replace(one.problem, groups=groups)).suggest()
    assert found[0].words == "green"


def test_suggest__samples_without_a_label__no_kinds_of_it():
    rows = np.arange(4)
    absent = ClassProblem(
        class_name="dog",
        side=Side.ABSENT,
        rows=rows,
        failed=np.array([True, False, True, False]),
        confidence=np.ones(4, np.float32),
    )
    found = SuggestionSource(
        samples=SampleSet(dataset=plant(nothing(), 60, seed=1).dataset, rows=rows),
        problem=absent,
        embeddings=np.zeros((4, 0), np.float32),
        **BESIDE,
        method=METHOD,
        assistants=Assistants(),
        seed=0,
    )._vocabulary()
    assert "green" in found
    assert not {"poodle", "furry"} & set(found)


def test_is_witnessed__more_in_those_meant():
    rows, inside = np.arange(4), np.array([True, True, False, False])
    for sure, expected in (
        ([0.9, 0.7, 0.1, 0.0], True),
        ([0.9, np.nan, 0.1, np.nan], True),
        ([0.9, 0.9, 0.8, 0.9], False),
        ([0.4, 0.4, 0.0, 0.0], False),
        ([np.nan, np.nan, 0.0, 0.0], False),
    ):
        assert is_witnessed("green", rows, inside, lambda _, __, s=sure: np.array(s)) is expected
    assert not is_witnessed("green", rows, inside, None)
    assert not is_witnessed("green", rows, inside, lambda _, __: None)
