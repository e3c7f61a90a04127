import numpy as np
import pytest

from weakspot.core.dataset import Split, Task
from weakspot.core.errors import DataError, UnavailableError
from weakspot.core.slices import SliceName
from weakspot.repair.controls import zero_shot
from weakspot.testing.planted import phrase_embeddings, plant, rare


def embed(texts):
    """Look at words only: apples lie along the first axis, pears along the second, green things along the third."""
    words = [set(text.lower().split()) for text in texts]
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=np.float32).T[
        [
            0
            if "apple" in own and "green" not in own
            else 2
            if "green" in own
            else 1
            if "pear" in own
            else 0
            for own in words
        ]
    ]


def _named(make_slice, contrast, phrase, **changes):
    return make_slice(
        names=(SliceName(phrase=phrase, contrast=contrast, score=1.0, describer="hand"),), **changes
    )


def test_zero_shot__the_most_similar_class():
    head = zero_shot(["apple", "pear"], embed)
    found = head.probabilities(np.array([[2.0, 0.1, 0.0], [0.1, 0.4, 0.0]], dtype=np.float32))
    assert found.argmax(axis=1).tolist() == [0, 1]
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert head.phrases == ("a photo of an apple", "a photo of a pear")
    assert (
        head.note == "Nothing is trained: the embedder compares images with phrases, 2 of classes."
    )


def test_zero_shot__names_of_slices_are_further_phrases(make_slice):
    embeddings = np.array([[0.0, 0.3, 0.9]], dtype=np.float32)
    assert zero_shot(["apple", "pear"], embed).probabilities(embeddings).argmax() == 1
    slices = [
        _named(make_slice, "green", "a photo of a green apple"),
        _named(make_slice, "green", "A photo of a green apple"),
    ]
    head = zero_shot(["apple", "pear"], embed, slices=slices)
    assert head.probabilities(embeddings).argmax() == 0
    assert head.phrases == ("a photo of an apple", "a photo of a pear", "a photo of a green apple")
    assert head.classes.tolist() == [0, 1, 0]
    assert "2 of classes and 1 of slices" in head.note


def test_zero_shot__labels_of_a_multi_label_task_stand_against_anything():
    # "a photo" alone points where apples do, so a pear is there if it is nearer than that.
    head = zero_shot(["apple", "pear"], embed, task=Task.MULTI_LABEL)
    found = head.probabilities(np.array([[0.6, 0.8, 0.0], [0.8, 0.6, 0.0]], dtype=np.float32))
    assert found[:, 0] == pytest.approx([0.5, 0.5])
    assert found[0, 1] > 0.99
    assert found[1, 1] < 0.01


def test_zero_shot__bad_input():
    with pytest.raises(UnavailableError, match="no text side"):
        zero_shot(["apple"], None)
    with pytest.raises(DataError, match="another width"):
        zero_shot(["apple"], embed).probabilities(np.zeros((2, 7), dtype=np.float32))


def test_zero_shot__a_planted_world_is_told_by_its_words():
    world = plant(rare(0.02), 400, seed=4)
    samples = world.samples(Split.TEST)
    head = zero_shot(world.dataset.class_names, phrase_embeddings)
    found = head.probabilities(samples.embeddings("clip")).argmax(axis=1)
    assert np.mean(found == world.dataset.labels[samples.rows]) > 0.9
