import numpy as np
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import SampleSet
from weakspot.repair.labels import chosen_for

IDS = ["a", "b", "c", "d", "e"]
ROWS = np.arange(1, 5)


def _samples(probabilities=None, **columns):
    columns = columns or {"labels": [0, -1, -1, -1, 1]}
    return SampleSet(
        dataset=dataset_from_columns(
            class_names=["cat", "dog", "owl"],
            sample_ids=IDS,
            probabilities=None if probabilities is None else np.array(probabilities, np.float32),
            **columns,
        ),
        rows=np.arange(5),
    )


def _slice(class_name, members, contrast):
    return slice_of(tuple(members), class_name=class_name, contrast=contrast)


def test_chosen_for__members_of_slices_and_nobody_else():
    slices = [_slice("cat", "bc", "black"), _slice("dog", "cd", "wet")]
    assert chosen_for(ROWS, slices, _samples()) == {1: "cat: black", 2: "cat: black", 3: "dog: wet"}
    assert chosen_for(ROWS, [], _samples()) == {}
    assert chosen_for(ROWS[:0], slices, _samples()) == {}


def test_chosen_for__the_likelier_class_wins_and_an_unlikely_one_is_out_of_the_question():
    probabilities = [
        [0.3, 0.3, 0.4],
        [0.1, 0.3, 0.6],
        [0.4, 0.5, 0.1],
        [0.2, 0.7, 0.1],
        [0.3, 0.3, 0.4],
    ]
    slices = [_slice("cat", "bc", "black"), _slice("dog", "cd", "wet")]
    # b is hardly a cat; c is rather a dog than a cat.
    assert chosen_for(ROWS, slices, _samples(probabilities)) == {2: "dog: wet", 3: "dog: wet"}
