import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.errors import ModelError
from weakspot.generate.search.sentences import (
    WordSentence,
    WordSentences,
    built_in_sentences,
)
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare
from weakspot.testing.scenes import FACTORS, factors_of

PLANTED = [(name, value) for name in FACTORS if name != "kind" for value in FACTORS[name]]
EMBED = PlantedEmbedder().embed_texts


@pytest.fixture(scope="module")
def discs():
    """Embeddings and scenes of the discs of a planted world."""
    world = plant(rare(), 2_000, seed=2)
    rows = np.array([row for row in range(2_000) if world.scene(row).kinds == ("disc",)])
    return world.embeddings(rows), [world.scene(row) for row in rows]


@pytest.fixture(scope="module")
def words():
    return WordSentences(embed_texts=EMBED, class_name="disc")


@pytest.mark.parametrize(("name", "value"), PLANTED)
def test_sentences__first_says_what_sets_the_cluster_apart(discs, words, name, value):
    embeddings, scenes = discs
    inside = np.array([getattr(scene, name) == value for scene in scenes])
    said = words.sentences(embeddings[inside][:12], embeddings[~inside])
    assert factors_of(said[0]) == {name: (value,)}


def test_sentences__two_things_at_once_and_nothing_of_a_random_cluster(discs, words):
    embeddings, scenes = discs
    inside = np.array(
        [scene.lighting == "dark" and scene.background == "grassy" for scene in scenes]
    )
    said = words.sentences(embeddings[inside], embeddings[~inside])
    assert {"it is dark.", "the background is grassy."} <= set(said[:3])
    assert len(said) <= 5
    spoken = [
        bool(
            words.sentences(embeddings[start::40], np.delete(embeddings, np.s_[start::40], axis=0))
        )
        for start in range(40)
    ]
    assert sum(spoken) <= 8


def test_completion__true_of_nearly_every_image(discs, words):
    embeddings, scenes = discs
    texts = words.completion(embeddings)
    named = [
        (getattr(scene, name), value)
        for scene, text in zip(scenes, texts, strict=True)
        for name, values in factors_of(text).items()
        for value in values
    ]
    assert len(named) > 3 * len(scenes)
    assert np.mean([shown == value for shown, value in named]) > 0.98
    assert all(1 <= text.count(".") <= 5 for text in texts)


def test_completion__single_image_and_rows_without_a_embedding(discs, words):
    embeddings, scenes = discs
    assert scenes[0].colour in words.completion(embeddings[:1])[0]
    broken = embeddings[:5].copy()
    broken[2] = np.nan
    assert [bool(text) for text in words.completion(broken)] == [True, True, False, True, True]
    assert words.completion(np.full((2, 64), np.nan)) == ["", ""]
    assert words.completion(np.zeros((0, 64))) == []


def test_sentences__nothing_to_compare_with(discs, words):
    embeddings, _ = discs
    assert words.sentences(embeddings, embeddings[:0]) == []
    assert words.sentences(embeddings[:0], embeddings) == []
    assert words.sentences(np.full((3, 64), np.nan), embeddings) == []
    assert words.sentences(embeddings[:1], embeddings[1:2]) == words.sentences(
        embeddings[:1], embeddings[1:2]
    )


def test_sentences__own_words_and_plain_embeddings():
    axes = {"p0": 0, "p1": 1, "p2": 2, "q0": 3, "q1": 4}
    vocabulary = tuple(
        WordSentence(group=name[0], sentence=f"it is {name}.", phrases=(name,)) for name in axes
    )

    def embed(texts):
        return np.eye(8, dtype=np.float32)[[axes[text] for text in texts]]

    words = WordSentences(embed_texts=embed, vocabulary=vocabulary, most=1)
    random = np.random.default_rng(3)
    others = unit_rows(random.normal(size=(60, 8)))
    shifted = unit_rows(random.normal(size=(30, 8)) + 3 * np.eye(8)[1] + 2.5 * np.eye(8)[4])
    assert words.sentences(shifted, others) == ["it is p1."]
    both = WordSentences(embed_texts=embed, vocabulary=vocabulary)
    assert both.sentences(shifted, others) == ["it is p1.", "it is q1."]
    assert both.sentences(others[:30], others[30:]) == []


def test_sentences__word_that_is_alone_in_its_kind_says_nothing():
    alone = (WordSentence(group="p", sentence="it is p.", phrases=("p",)),)
    words = WordSentences(embed_texts=lambda texts: np.ones((len(texts), 3)), vocabulary=alone)
    assert words.completion(np.eye(3)) == ["", "", ""]
    assert words.sentences(np.eye(3)[:2], np.eye(3)[2:]) == []


def test_sentences__text_side_that_does_not_fit(discs):
    embeddings, _ = discs
    for made in (np.ones((1, 64)), np.ones((500, 3)), np.full((190, 64), np.nan)):
        with pytest.raises(ModelError, match="text side does not fit"):
            WordSentences(embed_texts=lambda _, made=made: made).completion(embeddings[:3])


def test_built_in_sentences__each_once_and_plain_english():
    said = [one.sentence for one in built_in_sentences("fly")]
    assert len(said) == len(set(said))
    assert all(one.endswith(".") and one == one.strip() and "{" not in one for one in said)
    assert {
        "it is on the grass.",
        "it is dark.",
        "there are two.",
        "it is in a net.",
        "the photo is blurry.",
    } <= set(said)
