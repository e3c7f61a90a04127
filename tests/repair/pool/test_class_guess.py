from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import Side
from weakspot.core.rules import IdRule
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.pool.class_guess import ClassGuess

TRAIN = np.arange(4)
POOL = np.array([4, 5, 6, 7])
CAT, OWL = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
# Cats lie at the cat's name, and the classifier finds cat likely of the rows 0, 1, 4 and 5.
VECTORS = [CAT, CAT, [0.0, 1.0, 0.0], OWL, CAT, OWL, CAT, OWL]
LIKELY_CAT, UNLIKELY_CAT = [0.4, 0.5, 0.1], [0.1, 0.5, 0.4]
PROBABILITIES = [LIKELY_CAT, LIKELY_CAT, UNLIKELY_CAT, UNLIKELY_CAT, LIKELY_CAT, LIKELY_CAT, UNLIKELY_CAT, UNLIKELY_CAT]
ASSISTANTS = Assistants(embed_texts=lambda phrases: np.eye(3, dtype=np.float32)[: len(phrases)])


def _slice(class_name="cat", side=None):
    use = DataUse(name="given", n_samples=0, digest="given")
    return FailureSlice(class_name=class_name, side=side, rule=IdRule(sample_ids=()), method="hand", found_on=use)


def _guess(*, labels=(0, 0, 1, 2), probabilities=PROBABILITIES, vectors=VECTORS, assistants=ASSISTANTS):
    dataset = dataset_from_columns(
        class_names=["cat", "dog", "owl"],
        labels=[*labels, -1, -1, -1, -1],
        probabilities=None if probabilities is None else np.array(probabilities, dtype=np.float32),
    )
    space = VectorSpace(encoder_id="hand", vectors=np.array(vectors, dtype=np.float32), has_text=True)
    samples = SampleSet(dataset=dataset, rows=POOL, spaces={"joint": space})
    return ClassGuess(samples=samples, training=TRAIN, assistants=assistants)


def test_possible__both_witnesses_first_and_one_alone_only_when_more_are_wanted():
    # Among training samples both speak for the two cats; what one alone says was never heard there and comes last.
    assert _guess().possible(_slice(), POOL, 1).tolist() == [True, False, False, False]
    assert _guess().possible(_slice(), POOL, 2).tolist() == [True, False, True, False]
    assert _guess().possible(_slice(), POOL, 3).tolist() == [True, True, True, False]
    assert _guess().possible(_slice(), POOL, 99).tolist() == [True, True, True, False]


def test_possible__what_is_wrong_among_training_samples_is_not_believed():
    # The owl of the training samples is likely a cat, too, and lies elsewhere: the classifier alone is wrong there.
    probabilities = [LIKELY_CAT, LIKELY_CAT, UNLIKELY_CAT, LIKELY_CAT, *PROBABILITIES[4:]]
    assert _guess(probabilities=probabilities).possible(_slice(), POOL, 99).tolist() == [True, False, True, False]


def test_possible__the_more_reliable_witness_first():
    # Cats lie at the owl's name and are likely; a dog lies at the cat's name.
    vectors = [OWL, OWL, CAT, OWL, *VECTORS[4:]]
    guess = _guess(vectors=vectors)
    assert guess.possible(_slice(), POOL, 1).tolist() == [False, True, False, False]
    assert guess.possible(_slice(), POOL, 99).tolist() == [True, True, False, False]


def test_possible__with_one_witness():
    assert _guess(assistants=NOBODY).possible(_slice(), POOL, 99).tolist() == [True, True, False, False]
    assert _guess(probabilities=None).possible(_slice(), POOL, 99).tolist() == [True, False, True, False]


def test_possible__every_row_where_nobody_can_tell():
    everybody = [True] * 4
    assert _guess(probabilities=None, assistants=NOBODY).possible(_slice(), POOL, 1).tolist() == everybody
    # Of two classes both are always among the two likeliest.
    dataset = dataset_from_columns(
        class_names=["cat", "dog"], labels=[0, 0, 1, 1, -1, -1, -1, -1], probabilities=np.full((8, 2), 0.5, np.float32)
    )
    guess = ClassGuess(samples=SampleSet(dataset=dataset, rows=POOL), training=TRAIN, assistants=NOBODY)
    assert guess.possible(_slice(), POOL, 1).tolist() == everybody


def test_possible__class_without_training_samples_believes_any_witness():
    assert _guess(labels=(1, 1, 1, 2)).possible(_slice(), POOL, 1).tolist() == [True, False, False, False]
    assert _guess(labels=(1, 1, 1, 2)).possible(_slice(), POOL, 99).tolist() == [True, True, True, False]


def test_possible__ties_go_to_the_lower_class_and_unknown_probabilities_say_nothing():
    even = [*PROBABILITIES[:4], [1 / 3] * 3, [np.nan] * 3, [np.nan] * 3, UNLIKELY_CAT]
    assert _guess(probabilities=even, assistants=NOBODY).possible(_slice("cat"), POOL, 9).tolist() == [True, False, False, False]
    assert _guess(probabilities=even, assistants=NOBODY).possible(_slice("owl"), POOL, 9).tolist() == [False, False, False, True]


def test_possible__rows_without_a_vector_are_near_nothing():
    vectors = [*VECTORS[:4], [np.nan] * 3, *VECTORS[5:]]
    assert _guess(vectors=vectors, probabilities=None).possible(_slice(), POOL, 9).tolist() == [False, False, True, False]


@pytest.mark.parametrize(("side", "expected"), [(Side.ABSENT, [True, True, True]), (Side.PRESENT, [True, False, True])])
def test_possible__multi_label_has_the_label_or_lacks_it(side, expected):
    # The last row is predicted to have the label although two others are likelier.
    probabilities = [[0.9, 0.1, 0.1], [0.1, 0.9, 0.8], [0.7, 0.2, 0.1], [0.1, 0.9, 0.8], [0.6, 0.9, 0.8]]
    dataset = dataset_from_columns(
        class_names=["cat", "dog", "owl"],
        label_lists=[[0], [1, 2], None, None, None],
        probabilities=np.array(probabilities, dtype=np.float32),
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(2, 5))
    guess = ClassGuess(samples=samples, training=np.arange(2), assistants=NOBODY)
    assert guess.possible(_slice(side=side), np.arange(2, 5), 9).tolist() == expected


def test_possible__samples_in_pieces_give_the_same(monkeypatch):
    whole = _guess().possible(_slice(), POOL, 2)
    monkeypatch.setattr("weakspot.repair.pool.class_guess.CHUNK_ROWS", 1)
    assert _guess().possible(_slice(), POOL, 2).tolist() == whole.tolist()


def test_possible__names_are_asked_once():
    asked = []

    def embed_texts(phrases):
        asked.append(list(phrases))
        return np.eye(3, dtype=np.float32)

    guess = _guess(assistants=replace(ASSISTANTS, embed_texts=embed_texts))
    guess.possible(_slice("cat"), POOL, 9)
    guess.possible(_slice("owl"), POOL, 9)
    assert asked == [["a photo of a cat", "a photo of a dog", "a photo of an owl"]]
