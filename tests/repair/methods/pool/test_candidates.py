from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.build import slice_of

from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.repair.strategies.pool import OpenPool, open_pool

TRAIN = np.arange(4)
POOL = np.array([4, 5, 6, 7])
CAT, OWL = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
# Cats lie at the cat's name, and the classifier finds cat likely of the rows 0, 1, 4 and 5.
EMBEDDINGS = [CAT, CAT, [0.0, 1.0, 0.0], OWL, CAT, OWL, CAT, OWL]
LIKELY_CAT, UNLIKELY_CAT = [0.4, 0.5, 0.1], [0.1, 0.5, 0.4]
PROBABILITIES = [LIKELY_CAT] * 2 + [UNLIKELY_CAT] * 2 + [LIKELY_CAT] * 2 + [UNLIKELY_CAT] * 2
ASSISTANTS = Assistants(embed_texts=lambda phrases: np.eye(3, dtype=np.float32)[: len(phrases)])


def _slice(class_name="cat", side=None):
    return slice_of((), class_name=class_name, side=side)


def _open(samples, training, assistants):
    material = SimpleNamespace(labelled=training, assistants=assistants)
    return OpenPool(samples=samples, rows=samples.rows, material=material, strategy="hand")


def _guess(
    *,
    labels=(0, 0, 1, 2),
    probabilities=PROBABILITIES,
    embeddings=EMBEDDINGS,
    assistants=ASSISTANTS,
):
    dataset = dataset_from_columns(
        class_names=["cat", "dog", "owl"],
        labels=[*labels, -1, -1, -1, -1],
        probabilities=None if probabilities is None else np.array(probabilities, dtype=np.float32),
    )
    space = EmbeddingSpace(
        encoder_id="hand", embeddings=np.array(embeddings, dtype=np.float32), has_text=True
    )
    samples = SampleSet(dataset=dataset, rows=POOL, spaces={"clip": space})
    return _open(samples, TRAIN, assistants)


def _possible(guess, n=99, class_name="cat", *, side=None, rows=POOL):
    """Return the samples that may be inside, as the letters of those of the pool."""
    is_possible = guess.possible(_slice(class_name, side), rows, n)
    return "".join(letter for letter, can_be in zip("abcd", is_possible, strict=False) if can_be)


def test_possible__both_witnesses_first_and_one_alone_only_when_more_are_wanted():
    # Among training samples both speak for the two cats; what one alone says was never heard there and comes last.
    assert [_possible(_guess(), n) for n in (1, 2, 3, 99)] == ["a", "ac", "abc", "abc"]


def test_possible__what_is_wrong_among_training_samples_is_not_believed():
    # The owl of the training samples is likely a cat, too, and lies elsewhere: the classifier alone is wrong there.
    probabilities = [LIKELY_CAT, LIKELY_CAT, UNLIKELY_CAT, LIKELY_CAT, *PROBABILITIES[4:]]
    assert _possible(_guess(probabilities=probabilities)) == "ac"


def test_possible__the_more_reliable_witness_first():
    # Cats lie at the owl's name and are likely; a dog lies at the cat's name.
    guess = _guess(embeddings=[OWL, OWL, CAT, OWL, *EMBEDDINGS[4:]])
    assert (_possible(guess, 1), _possible(guess)) == ("b", "ab")


def test_possible__with_one_witness():
    assert _possible(_guess(assistants=NO_ASSISTANTS)) == "ab"
    assert _possible(_guess(probabilities=None)) == "ac"


def test_possible__every_row_where_nobody_can_tell():
    assert _possible(_guess(probabilities=None, assistants=NO_ASSISTANTS), 1) == "abcd"
    # Of two classes both are always among the two likeliest.
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0, 0, 1, 1, -1, -1, -1, -1],
        probabilities=np.full((8, 2), 0.5, np.float32),
    )
    guess = _open(SampleSet(dataset=dataset, rows=POOL), TRAIN, NO_ASSISTANTS)
    assert _possible(guess, 1) == "abcd"


def test_possible__ties_go_to_the_lower_class_and_unknown_probabilities_say_nothing():
    even = [*PROBABILITIES[:4], [1 / 3] * 3, [np.nan] * 3, [np.nan] * 3, UNLIKELY_CAT]
    guess = _guess(probabilities=even, assistants=NO_ASSISTANTS)
    assert (_possible(guess, 9), _possible(guess, 9, "owl")) == ("a", "d")


@pytest.mark.parametrize(("side", "expected"), [(Side.ABSENT, "abc"), (Side.PRESENT, "ac")])
def test_possible__multi_label_has_the_label_or_lacks_it(side, expected):
    # The last row is predicted to have the label although two others are likelier.
    probabilities = [
        [0.9, 0.1, 0.1],
        [0.1, 0.9, 0.8],
        [0.7, 0.2, 0.1],
        [0.1, 0.9, 0.8],
        [0.6, 0.9, 0.8],
    ]
    dataset = dataset_from_columns(
        class_names=["cat", "dog", "owl"],
        label_lists=[[0], [1, 2], None, None, None],
        probabilities=np.array(probabilities, dtype=np.float32),
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(2, 5))
    guess = _open(samples, np.arange(2), NO_ASSISTANTS)
    assert _possible(guess, 9, side=side, rows=np.arange(2, 5)) == expected


def test_open_pool__refuses_without_a_pool_or_a_budget(make_material):
    with pytest.raises(NotEnoughDataError, match="pool-margin needs a pool"):
        open_pool(make_material(pool=None), "pool-margin")
    empty = make_material()
    with pytest.raises(NotEnoughDataError, match="needs a pool"):
        open_pool(replace(empty, pool=empty.pool.only(empty.pool.rows[:0])), "pool-margin")
    with pytest.raises(NotEnoughDataError, match=r"Set \[repair\] budget"):
        open_pool(make_material(budget=0), "pool-margin")


def test_open_pool__hides_the_labels_of_the_pool_and_keeps_those_of_training(make_material):
    opened = open_pool(make_material(), "pool-margin")
    assert opened.samples.dataset.labels.tolist() == [0, 0, 1, 1, 2, 2, *[-1] * 8]
    assert make_material().pool.dataset.labels.tolist()[6:] == [0, 0, 0, 1, 1, 0, 0, 0]


def test_open_pool__every_image_once_and_none_that_is_trained_on():
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0, -1, -1, 1, -1],
        splits=["train", "pool", "pool", "pool", "pool"],
        sample_ids=["t", "d", "c", "b", "a"],
        content_hashes=["one", "two", "one", "two", "three"],
    )
    samples = SampleSet(dataset=dataset, rows=np.array([0]))
    opened = open_pool(
        RepairMaterial(training=samples, pool=samples.only(np.array([1, 2, 3, 4])), budget=1),
        "pool-random",
    )
    assert dataset.sample_ids(opened.rows) == ["a", "b"]


def test_candidates__whole_pool_or_only_slices(make_material, make_slice):
    opened = open_pool(make_material(budget=9), "pool-random")
    names = opened.samples.dataset.sample_ids
    assert names(opened.candidates([], "pool")) == list("abcdefgh")
    # Of the samples inside only d has plum among its two likeliest classes.
    assert names(opened.candidates([make_slice("plum")], "slices")) == ["d"]
    assert names(
        opened.candidates([make_slice("plum"), make_slice("apple", threshold=0.75)], "slices")
    ) == ["a", "d", "e"]
    assert len(opened.candidates([], "slices")) == 0
    with pytest.raises(NotEnoughDataError, match="None of the 8 pool samples is inside a slice"):
        opened.candidates([make_slice(threshold=2.0)], "slices")
