import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.failures import FailureCriterion
from weakspot.core.slices import HeldName, SliceName
from weakspot.run import loop
from weakspot.run.halves import split_in_halves
from weakspot.run.naming import DENIED, OUTDONE, with_witnessed_names
from weakspot.run.settings import DiscoverSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.fakes import PlantedAnswerer
from weakspot.testing.planted import phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
HELD = HeldName(auc=0.95, p_value=1e-6, q_value=1e-5)
SETTINGS = Settings(
    discover=DiscoverSettings(methods=("directions",)),
    verify=VerifySettings(splits=("validation", "test"), scheme="halves"),
)


@pytest.fixture(scope="module")
def verified():
    world = plant(rare(0.02), 2400, seed=5)
    samples = world.samples().only(np.arange(len(world)))
    asking = Assistants(embed_texts=phrase_embeddings)
    record = new_record(SETTINGS, inputs={}, criterion="wrong")
    record = loop.discover_slices(record, samples, SETTINGS, CRITERION, asking)
    record = loop.verify_slices(record, samples, SETTINGS, CRITERION)
    assert record.published()
    return record, samples, split_in_halves(samples, SETTINGS, CRITERION)


@pytest.fixture(scope="module")
def answers():
    """Ask a question answerer about the images of the same world."""
    world = plant(rare(0.02), 2400, seed=5)
    answerer = PlantedAnswerer()

    def answered(rows, question):
        return answerer.answer([world.image(int(row)) for row in rows], question)

    return answered


def _named(record, *names, is_unsure=True, held=None):
    """Put the same words on every slice."""
    told = tuple(
        SliceName(
            phrase=f"a photo of a {word} disc",
            contrast=word,
            score=1.0,
            describer="grammar",
            is_unsure=is_unsure,
            held=held,
        )
        for word in names
    )
    slices = tuple(one.model_copy(update={"names": told}) for one in record.slices)
    return record.model_copy(update={"slices": slices})


def _witness(record, samples, *words, only=None):
    """Return a witness who sees words in members of the first published slice, and nothing else."""
    found, _ = record.published()[0]

    def seen(rows, asked):
        if asked not in words:
            return None if only is None else np.zeros(len(rows), dtype=np.float32)
        inside = found.rule.members(samples, rows)
        if only is not None:
            inside = inside & np.isin(rows, only)
        return inside.astype(np.float32)

    return Assistants(embed_texts=phrase_embeddings, seen=seen)


def _blind():
    """Return a witness who knows all words and sees nothing."""
    return Assistants(
        embed_texts=phrase_embeddings,
        seen=lambda rows, words: np.zeros(len(rows), dtype=np.float32),
    )


def _first(record):
    return record.published()[0][0]


def test_named__what_is_measured_on_both_halves_is_the_title(verified):
    record, samples, halves = verified
    given = _named(record, "silver")
    found = with_witnessed_names(given, SETTINGS, _witness(given, samples, "noisy"), halves)
    slice_ = _first(found)
    assert (slice_.name.contrast, slice_.name.describer) == ("noisy", "witnesses")
    assert slice_.name.held.q_value < 0.05
    assert slice_.name.held.n_fitting == slice_.name.held.n_members
    assert [name.contrast for name in slice_.names] == ["noisy", "silver"]
    assert slice_.names[1].is_unsure


def test_named__a_hue_that_the_encoder_is_sure_of_explains_that_members_are_darker(verified):
    record, samples, halves = verified
    given = _named(record, "silver")
    found = with_witnessed_names(given, SETTINGS, _witness(given, samples, "dark"), halves)
    assert _first(found).name.contrast == "green"


def test_named__what_was_given_stays(verified):
    record, samples, halves = verified
    given = _named(record, "green", is_unsure=False)
    seen = _witness(given, samples, "dark")
    assert with_witnessed_names(given, SETTINGS, seen, halves).slices == given.slices


def test_named__what_holds_on_one_half_only_is_no_title(verified):
    record, samples, halves = verified
    given = _named(record, "silver")
    seen = _witness(given, samples, "dark", only=halves[0][0].rows)
    assert _first(with_witnessed_names(given, SETTINGS, seen, halves)).name is None


def test_named__a_word_of_the_encoder_that_nobody_sees_is_no_title(verified):
    record, _, halves = verified
    given = _named(record, "green", is_unsure=False, held=HELD)
    slice_ = _first(with_witnessed_names(given, SETTINGS, _blind(), halves))
    assert slice_.name is None
    assert (slice_.names[0].contrast, slice_.names[0].doubt) == ("green", DENIED)


def test_named__a_word_of_the_encoder_that_nobody_can_tell_must_stand_clear_of_others(verified):
    record, samples, halves = verified
    given = _named(record, "silver", is_unsure=False, held=HELD)
    found = with_witnessed_names(given, SETTINGS, _witness(given, samples), halves)
    slice_ = _first(found)
    assert slice_.name.contrast == "green"
    assert slice_.name.held.q_value < 0.05
    assert [name.doubt for name in slice_.names if name.contrast == "silver"] == [OUTDONE]


def test_named__a_question_answerer_is_a_witness(verified, answers):
    record, _, halves = verified
    given = _named(record, "silver")
    asked = []

    def counted(rows, question):
        asked.append((question, len(rows)))
        return answers(rows, question)

    assistants = Assistants(embed_texts=phrase_embeddings, answers=counted)
    slice_ = _first(with_witnessed_names(given, SETTINGS, assistants, halves))
    assert (slice_.name.contrast, slice_.name.witness) == ("green", "seen in the images")
    assert ("Is it green?", 20) in asked
    assert max(n_rows for _, n_rows in asked) <= 20


def test_named__slices_that_are_not_confirmed_are_not_looked_at(verified):
    record, _, halves = verified
    bare = record.model_copy(update={"evidence": ()})

    def seen(rows, words):
        raise AssertionError("an image was looked at")

    asked = Assistants(embed_texts=phrase_embeddings, seen=seen)
    assert with_witnessed_names(bare, SETTINGS, asked, halves).slices == bare.slices
