from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import UnavailableError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.discover import keywords
from weakspot.discover.keywords import (
    KeywordsDiscoverer,
    association,
    caption_candidates,
    caption_contrast,
    meaning_cut,
    scored,
    vocabulary_candidates,
)
from weakspot.testing import material
from weakspot.testing.checks import checks_for
from weakspot.testing.planted import nothing, phrase_embeddings, plant, rare

TOP_1 = FailureCriterion()
QUICK = KeywordsDiscoverer(n_permutations=60)


@pytest.fixture(scope="module")
def rare_world():
    return plant(rare(0.02), 2400, seed=1)


def _asking(world):
    return Assistants(embed_texts=phrase_embeddings, captions=world.captions)


def _apples(captions, failed, embeddings=None):
    n_samples = len(captions)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * n_samples,
        predictions=np.array(failed, dtype=np.int64),
        metadata={"caption": captions},
    )
    given = np.eye(n_samples, 4) if embeddings is None else np.asarray(embeddings)
    space = EmbeddingSpace(encoder_id="toy", embeddings=given.astype(np.float32))
    return SampleSet(dataset=dataset, rows=np.arange(n_samples), spaces={"clip": space}, name="toy")


def test_caption_candidates__support_class_words_and_what_all_say():
    captions = [
        "red apple on wood",
        "red apple on wood",
        "green apple on wood",
        "a red pear on wood",
        "",
    ]
    (problem,) = class_problems(_apples(captions, [1, 0, 0, 1, 0]).dataset, np.arange(5), TOP_1)
    found = caption_candidates(captions, problem, max_words=2, min_captions=2, most=10)
    # `wood` is in every caption, `apple` is the class, `green` and `pear` are in one caption only.
    assert [candidate.keyword for candidate in found] == ["red"]
    assert found[0].containing.tolist() == [True, True, False, True, False]
    assert (
        caption_candidates(captions, problem, max_words=2, min_captions=1, most=1)[0].keyword
        == "red"
    )


def test_vocabulary_candidates__have_no_captions():
    found = {candidate.keyword: candidate for candidate in vocabulary_candidates()}
    assert found["green"].prompt == "a photo of a green thing"
    assert found["blurry"].prompt == "a blurry photo"
    assert found["in the snow"].containing is None
    few = vocabulary_candidates(lambda words: np.array([word == "green" for word in words], float))
    assert [candidate.keyword for candidate in few] == ["green"]
    assert len(vocabulary_candidates(lambda _: None)) == len(found)


def test_discover__built_in_words_that_are_told_badly__are_not_tried(rare_world):
    samples = rare_world.samples(Split.VALIDATION)
    assistants = Assistants(
        embed_texts=phrase_embeddings,
        measured=lambda words: np.array([0.9 if word == "dark" else 0.5 for word in words]),
    )
    found = QUICK.discover(samples, TOP_1, seed=0, assistants=assistants)
    assert {item.names[0].contrast for item in found.slices} <= {"dark"}


def test_caption_contrast__by_hand():
    containing = np.array([True, True, True, False, True, False, False, False, True])
    failed = np.array([True, True, True, True, False, False, False, False, True])
    has_caption = np.array([True] * 8 + [False])
    found = caption_contrast(containing, has_caption, failed)
    # Three of four failures and one of four others say it: the table of Fisher's tea.
    assert (found.n_failed, found.n_right, found.accuracy) == (3, 1, 0.25)
    assert found.p_value == pytest.approx(17 / 70)
    assert found.association == pytest.approx(0.5)
    expected = np.log(3.5 * 3.5 / (1.5 * 1.5)) / np.sqrt(2 / 3.5 + 2 / 1.5)
    assert found.log_odds == pytest.approx(expected)


def test_association__sign_and_constant():
    first = np.array([True, True, False, False])
    assert association(first, ~first) == -1.0
    assert association(first, np.ones(4, dtype=np.bool_)) == 0.0
    assert association(first[:0], first[:0]) == 0.0


def test_meaning_cut__does_not_look_at_samples_without_a_caption():
    similarities = np.array([0.9, 0.8, 0.3, 0.2, 0.85], dtype=np.float32)
    containing = np.array([True, True, False, False, False])
    assert meaning_cut(
        similarities, containing, np.array([True, True, True, True, False])
    ) == pytest.approx(0.55)


def test_discover__planted_keyword_comes_first_with_both_witnesses(rare_world):
    found = QUICK.discover(
        rare_world.samples(Split.VALIDATION), TOP_1, seed=0, assistants=_asking(rare_world)
    )
    best = next(item for item in found.slices if item.class_name == "disc")
    assert best.names[0].contrast == "green"
    assert (best.names[0].witness, best.names[0].is_doubtful) == ("captions", False)
    assert best.names[0].n_told == best.n_found
    assert 2 * best.names[0].n_true >= best.names[0].n_told
    assert best.names[0].witness_score > 0.4
    assert best.strength > 0.5
    assert best.strength_p == pytest.approx(1 / 61)
    assert best.parameters["caption_accuracy"] < 0.6
    assert best.parameters["clip_score"] > 0
    test = rare_world.samples(Split.TEST)
    discs = best.class_rows(test)
    assert np.mean(best.rule.members(test, discs) == rare_world.slices[0].inside[discs]) > 0.97
    narrower = [
        item.names[0].contrast
        for item in found.slices
        if item.class_name == "disc" and "green" in item.names[0].contrast
    ]
    assert narrower == ["green"]
    assert found.n_considered > 100


def test_discover__a_column_of_captions_comes_before_a_captioner(rare_world):
    def refuse(rows):
        raise AssertionError("a captioner was asked although captions are given")

    samples = rare_world.samples(Split.VALIDATION)
    captions = rare_world.captions(np.arange(len(rare_world)))
    given = replace(samples, dataset=samples.dataset.with_metadata({"caption": captions}))
    found = QUICK.discover(
        given, TOP_1, seed=0, assistants=Assistants(embed_texts=phrase_embeddings, captions=refuse)
    )
    asked = QUICK.discover(samples, TOP_1, seed=0, assistants=_asking(rare_world))
    assert [item.names for item in found.slices] == [item.names for item in asked.slices]


def test_discover__without_captions_the_vocabulary_is_tried_and_said(rare_world):
    samples = rare_world.samples(Split.VALIDATION)
    for captions in (None, lambda rows: [""] * len(rows)):
        found = QUICK.discover(
            samples,
            TOP_1,
            seed=0,
            assistants=Assistants(embed_texts=phrase_embeddings, captions=captions),
        )
        best = next(item for item in found.slices if item.class_name == "disc")
        assert "green" in best.names[0].contrast
        assert (best.names[0].witness, best.names[0].witness_score) == ("", None)
        assert any(
            "built-in vocabulary" in note.note for note in found.notes if note.class_name == "disc"
        )


@pytest.mark.parametrize("answer", [["only one"], None])
def test_discover__a_captioner_that_fails_is_a_note(rare_world, answer):
    def captions(rows):
        if answer is None:
            raise UnavailableError("The endpoint does not answer.")
        return answer

    assistants = Assistants(embed_texts=phrase_embeddings, captions=captions)
    found = QUICK.discover(
        rare_world.samples(Split.VALIDATION), TOP_1, seed=0, assistants=assistants
    )
    told = "1 captions for" if answer else "The endpoint does not answer."
    assert any("built-in vocabulary" in note.note and told in note.note for note in found.notes)
    assert found.slices


def test_discover__captions_alone_make_no_slice_but_are_told(rare_world):
    found = QUICK.discover(
        rare_world.samples(Split.VALIDATION),
        TOP_1,
        seed=0,
        assistants=Assistants(captions=rare_world.captions),
    )
    assert found.slices == ()
    note = next(note.note for note in found.notes if note.class_name == "disc")
    assert "no text side" in note
    assert "'green'" in note


def test_discover__witnesses_that_disagree_make_a_name_doubtful():
    # To the embeddings all failures are red; captions say red of the samples that did not fail.
    failed = [True] * 10 + [False] * 20
    captions = ["a dull apple"] * 10 + ["a red apple"] * 6 + ["a dull apple"] * 14
    embeddings = [
        [1.0, 0.1 * place, 0, 0] if wrong else [0.01 * place, 1.0, 0, 0]
        for place, wrong in enumerate(failed)
    ]
    assistants = Assistants(
        embed_texts=lambda texts: np.array(
            [[1.0, 0, 0, 0] if "red" in text else [0, 1.0, 0, 0] for text in texts]
        )
    )
    found = QUICK.discover(
        _apples(captions, failed, embeddings), TOP_1, seed=0, assistants=assistants
    )
    # Of the members, none is said to be red: the slice is what lies near to the word, and says so.
    names = [item.names[0] for item in found.slices if item.names[0].contrast == "near to “red”"]
    assert [name.is_doubtful for name in names] == [True]
    assert names[0].witness_score < 0


def test_discover__null_worlds_have_large_family_chances():
    chances = []
    for seed in range(5):
        world = plant(nothing(), 1200, seed=seed)
        found = QUICK.discover(
            world.samples(Split.VALIDATION), TOP_1, seed=seed, assistants=_asking(world)
        )
        chances += [item.strength_p for item in found.slices]
    assert np.mean(np.array(chances) <= 0.05) < 0.15


def test_discover__caption_budget_keeps_failures(rare_world):
    asked = []

    def captions(rows):
        asked.extend(rows.tolist())
        return rare_world.captions(rows)

    method = replace(QUICK, max_captioned=40)
    samples = rare_world.samples(Split.VALIDATION)
    method.discover(
        samples,
        TOP_1,
        seed=0,
        assistants=Assistants(embed_texts=phrase_embeddings, captions=captions),
    )
    problems = class_problems(samples.dataset, samples.rows, TOP_1)
    assert len(asked) == sum(min(40, len(problem.rows)) for problem in problems) == len(set(asked))
    disc = problems[0]
    assert np.isin(disc.rows[disc.failed], asked).sum() == min(20, disc.n_failed)


@pytest.mark.parametrize(
    "check",
    ["order_of_rows_does_not_matter", "same_seed_same_result", "rules_decide_on_unseen_rows"],
)
def test_discoverer__keeps_its_contract_with_captions(check, monkeypatch):
    captions = material.small_world().captions(np.arange(material.N_SAMPLES))
    plain = material.sample_set

    def with_captions(*splits, **options):
        samples = plain(*splits, **options)
        return replace(samples, dataset=samples.dataset.with_metadata({"caption": captions}))

    monkeypatch.setattr(material, "sample_set", with_captions)
    checks_for("discoverers")[check](
        lambda: KeywordsDiscoverer(n_permutations=20, max_candidates=60, min_captions=2)
    )


def test_caption_contrast__groups_count_once():
    objects = np.repeat(np.arange(8), 5)
    containing, failed = objects < 4, np.isin(objects, [0, 1, 2, 4])
    everybody = np.ones(40, dtype=np.bool_)
    assert caption_contrast(containing, everybody, failed).p_value < 0.01
    told = caption_contrast(containing, everybody, failed, objects)
    assert told.p_value == pytest.approx(17 / 70)
    some = objects != 7
    assert caption_contrast(containing, some, failed, objects).p_value == pytest.approx(13 / 35)


def test_scored__shuffles_keep_groups_whole():
    objects = np.repeat(np.arange(20), 5)
    similarities = np.random.default_rng(0).normal(size=(1, 20))[:, objects].astype(np.float32)
    failed = np.isin(objects, np.argsort(-similarities[0, ::5])[[0, 1, 3, 9, 15]])
    candidates = (next(iter(vocabulary_candidates())),)
    nobody = np.zeros(100, dtype=np.bool_)
    told, images = (
        scored(
            candidates,
            similarities,
            failed,
            nobody,
            n_permutations=199,
            draws=np.random.default_rng(0),
            groups=groups,
        )[0]
        for groups in (objects, None)
    )
    assert images.family_p == 1 / 200
    assert told.family_p > 0.05


def test_scored__chance_in_a_large_class__is_measured_on_a_part(monkeypatch):
    draws = np.random.default_rng(0)
    similarities = draws.normal(size=(1, 400)).astype(np.float32)
    failed = similarities[0] + draws.normal(size=400) > 1.5
    candidates = (next(iter(vocabulary_candidates())),)
    sizes = []
    original = keywords.error_score_null

    def looked(values, wrong, **given):
        sizes.append((values.shape, wrong.shape, given["groups"].shape))
        return original(values, wrong, **given)

    monkeypatch.setattr(keywords, "error_score_null", looked)

    def measured():
        return scored(
            candidates,
            similarities,
            failed,
            np.zeros(400, dtype=np.bool_),
            n_permutations=99,
            draws=np.random.default_rng(0),
            groups=np.arange(400),
        )[0]

    whole = measured()
    monkeypatch.setattr(keywords, "MAX_SHUFFLED", 200)
    part = measured()
    assert sizes == [((1, 400), (400,), (400,)), ((1, 200), (200,), (200,))]
    assert part.p_value == whole.p_value == 0.01
    assert (part.error_score, part.threshold) == (whole.error_score, whole.threshold)
