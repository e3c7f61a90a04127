from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.describe.caption_grammar import CaptionGrammarDescriber, ClassWords
from weakspot.describe.caption_grammar.describer import _SeenClass
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.lexicon.captions import (
    Caption,
    counting_of,
    noun_of,
    pairs_of,
    plain_caption,
    single_additions,
    with_article,
)
from weakspot.lexicon.vocabulary import built_in_vocabulary
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

TOP_1 = FailureCriterion()
WORDS = ("apple", "green", "red", "blurry", "shelf", "photo", "golden", "crate")
SMALL = CaptionGrammarDescriber(adjectives=("green", "red"), places=("on a shelf", "in a crate"))


def _asking(embed_texts):
    return Assistants(embed_texts=embed_texts)


def _embed_texts(texts):
    """Put every known word on an axis of its own; text lies far from pictures, as it does in real joint spaces."""
    vectors = np.full((len(texts), 12), 0.0)
    for place, text in enumerate(texts):
        for axis, word in enumerate(WORDS):
            vectors[place, axis] = float(word in text.split())
        vectors[place, 10] = 2.0
        vectors[place, 11] = 0.05 * len(text.split())
    return unit_rows(vectors)


def _samples(n_samples=40, *, has_text=True, noise=0.1):
    """Apples; every fourth is green, the others red, and green ones are taken for pears."""
    draws = np.random.default_rng(0)
    is_green = np.arange(n_samples) % 4 == 0
    vectors = noise * draws.normal(size=(n_samples, 12))
    vectors[:, 0] += 1.0
    vectors[is_green, 1] += 0.5
    vectors[~is_green, 2] += 0.5
    vectors[:, 9] += 3.0
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * n_samples,
        predictions=is_green.astype(np.int64),
        metadata={"is_green": is_green.tolist()},
    )
    space = VectorSpace(encoder_id="toy", vectors=unit_rows(vectors), has_text=has_text)
    return SampleSet(dataset=dataset, rows=np.arange(n_samples), spaces={"joint": space}, name="toy")


def _green_slice(samples, **changes):
    vectors = samples.vectors("joint").astype(np.float64)
    direction = np.zeros(12)
    direction[1], direction[2] = np.sqrt(0.5), -np.sqrt(0.5)
    rule = LinearRule(
        encoder_id="toy",
        direction=tuple(direction),
        centre=tuple(vectors.mean(axis=0)),
        scale=tuple(vectors.std(axis=0)),
    )
    use = DataUse(name="toy", n_samples=len(samples), digest=samples.digest())
    return FailureSlice(**{"class_name": "apple", "rule": rule, "method": "directions", "found_on": use, **changes})


@pytest.mark.parametrize("witness", ["data", "direction", "both"])
def test_describe__names_the_added_word_and_the_other_end(witness):
    samples = _samples()
    found = _green_slice(samples)
    named = replace(SMALL, witness=witness).describe([found], samples, TOP_1, _asking(_embed_texts))
    assert len(named) == 1
    assert named[0].names[0].contrast == "green"
    assert named[0].names[0].phrase == "a photo of a green apple"
    assert named[0].names[0].score > 0
    assert not named[0].names[0].is_doubtful
    assert named[0].easy_names[0].contrast == "red"
    assert named[0].title == "apple: green"
    assert named[0].slice_id == found.slice_id


def test_describe__accuracy_of_the_nearest_samples():
    samples = _samples(noise=0.02)
    named = SMALL.describe([_green_slice(samples)], samples, TOP_1, _asking(_embed_texts))[0]
    # Ten of forty are green and fail; the ten nearest to "green" are just those.
    assert named.names[0].accuracy_nearest == 0.0
    assert named.easy_names[0].accuracy_nearest == 1.0


def test_describe__image_centre_does_not_leak_into_names():
    """The centre of pictures is far from zero; had it been subtracted from caption differences, all would score alike."""
    samples = _samples()
    describer = replace(SMALL, witness="direction", n_names=10, n_easy_names=10)
    named = describer.describe([_green_slice(samples)], samples, TOP_1, _asking(_embed_texts))[0]
    scores = {name.contrast: name.score for name in named.names} | {name.contrast: -name.score for name in named.easy_names}
    assert scores["green"] > 0.3
    assert scores["red"] < -0.3
    assert abs(scores.get("on a shelf", 0.0)) < 0.1 * scores["green"]


def test_describe__turning_the_direction_turns_the_names():
    samples = _samples()
    found = _green_slice(samples)
    turned = found.rule.model_copy(update={"direction": tuple(-value for value in found.rule.direction)})
    named = SMALL.describe([_green_slice(samples, rule=turned)], samples, TOP_1, _asking(_embed_texts))[0]
    assert named.names[0].contrast == "red"
    assert named.easy_names[0].contrast == "green"
    # Here words say red while the samples nearest to them are right: a second look is needed.
    assert named.names[0].is_doubtful


def test_describe__rules_without_direction_are_named_from_samples():
    samples = _samples()
    named = SMALL.describe(
        [_green_slice(samples, rule=ColumnRule(column="is_green", values=(True,)))], samples, TOP_1, _asking(_embed_texts)
    )
    assert named[0].names[0].contrast == "green"


def test_describe__without_text_or_samples_slices_stay_unnamed():
    samples = _samples(has_text=False)
    found = _green_slice(samples)

    def refuse(texts):
        raise AssertionError(texts)

    assert SMALL.describe([found], samples, TOP_1, _asking(refuse)) == (found,)
    assert replace(SMALL, space="elsewhere").describe([found], samples, TOP_1, _asking(refuse)) == (found,)
    with_text = _samples()
    stranger = _green_slice(with_text, class_name="pear")
    assert SMALL.describe([stranger], with_text, TOP_1, _asking(_embed_texts)) == (stranger,)
    assert SMALL.describe([], with_text, TOP_1, _asking(refuse)) == ()


def test_describe__a_longer_name_must_be_clearly_better():
    samples = _samples()
    vectors = samples.vectors("joint").copy()
    is_green = np.arange(40) % 4 == 0
    vectors[is_green, 4] += 0.5
    samples = replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=unit_rows(vectors), has_text=True)})
    direction = np.zeros(12)
    direction[1] = direction[4] = np.sqrt(0.5)
    found = _green_slice(samples)
    both = found.rule.model_copy(update={"direction": tuple(direction)})
    found = _green_slice(samples, rule=both)
    long = replace(SMALL, longer_gain=0.0, witness="direction").describe([found], samples, TOP_1, _asking(_embed_texts))[0]
    assert set(long.names[0].contrast.split(", ")) == {"green", "on a shelf"}
    assert long.names[0].phrase == "a photo of a green apple on a shelf"
    short = replace(SMALL, longer_gain=3.0, witness="direction").describe([found], samples, TOP_1, _asking(_embed_texts))[0]
    assert "," not in short.names[0].contrast
    assert not any("," in name.contrast for name in short.names)


def test_describe__words_of_one_class_and_kinds_as_nouns():
    samples = _samples()
    vectors = samples.vectors("joint").copy()
    vectors[np.arange(40) % 4 == 0, 6] += 1.0
    samples = replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=unit_rows(vectors), has_text=True)})
    direction = np.zeros(12)
    direction[6] = 1.0
    rule = _green_slice(samples).rule.model_copy(update={"direction": tuple(direction)})
    found = _green_slice(samples, rule=rule)
    for words in (ClassWords(nouns=("Golden apple",)), {"nouns": ["Golden apple"]}):
        named = replace(SMALL, class_words={"apple": words}).describe([found], samples, TOP_1, _asking(_embed_texts))[0]
        assert named.names[0].phrase == "a photo of a golden apple"
        assert named.names[0].contrast == "golden apple"
    with pytest.raises(ConfigError, match="verbs"):
        replace(SMALL, class_words={"apple": {"verbs": ["eat"]}}).describe([found], samples, TOP_1, _asking(_embed_texts))


def test_describe__chunks_give_the_same_names():
    samples = _samples()
    found = _green_slice(samples)
    sizes = []

    def counting(texts):
        sizes.append(len(texts))
        return _embed_texts(texts)

    whole = CaptionGrammarDescriber().describe([found], samples, TOP_1, _asking(_embed_texts))
    assert CaptionGrammarDescriber(chunk_size=7).describe([found], samples, TOP_1, _asking(counting)) == whole
    assert max(sizes) == 7


def test_describe__a_text_side_of_another_size_is_refused():
    samples = _samples()
    with pytest.raises(ModelError, match="text side"):
        SMALL.describe([_green_slice(samples)], samples, TOP_1, _asking(lambda texts: np.ones((len(texts), 3), dtype=np.float32)))
    with pytest.raises(ModelError, match="text side"):
        SMALL.describe(
            [_green_slice(samples)], samples, TOP_1, _asking(lambda texts: np.full((len(texts), 12), np.nan, dtype=np.float32))
        )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("apple", "an apple"),
        ("green apple", "a green apple"),
        ("orange", "an orange"),
        ("unicycle", "a unicycle"),
        ("unripe melon", "an unripe melon"),
        ("unimportant box", "an unimportant box"),
        ("hour glass", "an hour glass"),
        ("one-way sign", "a one-way sign"),
        ("European bee", "a European bee"),
        ("umbrella", "an umbrella"),
        ("used car", "a used car"),
    ],
)
def test_with_article__goes_by_sound(words, expected):
    assert with_article(words) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("apple", "a photo of an apple"),
        ("Satsumas", "a photo of satsumas"),
        ("Oat-Milk", "a photo of oat milk"),
        ("bus", "a photo of a bus"),
        ("school_bus", "a photo of a school bus"),
        ("scissors", "a photo of scissors"),
        ("children", "a photo of children"),
        ("ABC", "a photo of an ABC"),
        ("glass", "a photo of glass"),
    ],
)
def test_plain_caption__counts_nouns_sensibly(noun, expected):
    assert plain_caption(noun).phrase == expected


def test_caption__all_slots():
    caption = Caption(noun="satsumas", look="blurry photo", adjective="green", place="in a box")
    assert caption.phrase == "a blurry photo of green satsumas in a box"
    assert Caption(noun="apple", adjective="old").phrase == "a photo of an old apple"
    assert Caption(noun="orange juice", adjective="cold").phrase == "a photo of cold orange juice"


def test_caption__samples_that_lack_a_label_are_just_photos():
    plain = plain_caption("effusion", is_absent=True)
    words = ClassWords(adjectives=("old",), places=("indoors",))
    phrases = [caption.phrase for caption in single_additions(plain, words, built_in_vocabulary())]
    assert plain.phrase == "a photo"
    assert {"a photo of an old thing", "a blurry photo", "a photo indoors"} <= set(phrases)
    samples = _samples()
    absent = _green_slice(samples, side=Side.ABSENT)
    assert SMALL.describe([absent], samples, TOP_1, _asking(_embed_texts))[0].title == "no apple: unnamed (directions)"


def test_pairs_of__never_two_of_the_same_slot():
    words = ClassWords(adjectives=("green", "red"), places=("indoors",))
    singles = [one for one in single_additions(plain_caption("apple"), words, built_in_vocabulary()) if one.look is None]
    assert [pair.contrast for pair in pairs_of(singles)] == ["green, indoors", "red, indoors"]
    assert next(pair.phrase for pair in pairs_of(singles)) == "a photo of a green apple indoors"
    assert singles[0].n_content_words == 1
    assert replace(singles[0], added=(("place", "on a green background"),)).n_content_words == 2


def test_vocabulary__is_usable():
    vocabulary = built_in_vocabulary()
    assert {"green", "yellow", "red", "unripe"} <= set(vocabulary.adjectives)
    assert {"in a box", "on a shop shelf", "in a hand", "in a basket"} <= set(vocabulary.places)
    assert vocabulary.looks["blurry"] == "blurry photo"
    assert len(set(vocabulary.adjectives)) == len(vocabulary.adjectives)
    assert len(set(vocabulary.places)) == len(vocabulary.places)


def test_describe__the_class_word_is_no_adjective_of_itself():
    phrases = []

    def remember(texts):
        phrases.extend(texts)
        return _embed_texts(texts)

    samples = _samples()
    orange = replace(samples, dataset=replace(samples.dataset, class_names=("orange", "pear")))
    CaptionGrammarDescriber().describe([_green_slice(orange, class_name="orange")], orange, TOP_1, _asking(remember))
    assert "a photo of a green orange" in phrases
    assert "a photo of an orange orange" not in phrases


def test_noun_of__and_counting_of():
    assert noun_of("Golden-Delicious_apple") == "golden delicious apple"
    assert counting_of("grapes").value == "many"
    assert counting_of("cactus").value == "one"


def test_describe__names_the_rare_colour_of_a_planted_world():
    world = plant(rare(0.02), 6_000, seed=0)
    samples = world.samples(Split.VALIDATION)
    discoverer = DirectionsDiscoverer(costs=(0.01, 1.0), n_repeats=1)
    slices = [item for item in discoverer.discover(samples, TOP_1, seed=0).slices if item.class_name == "disc"]
    (named,) = CaptionGrammarDescriber().describe(slices, samples, TOP_1, _asking(PlantedEmbedder().embed_texts))
    assert named.names[0].contrast == "green"
    assert named.names[0].phrase == world.true_slice("disc").phrase
    assert named.names[0].accuracy_nearest < 0.75


def test_alignment__additions_are_divided_by_the_scale_of_the_rule():
    seen = _SeenClass(
        vectors=np.ones((2, 2), dtype=np.float32),
        depth=np.array([1.0, -1.0]),
        failed=np.array([True, False]),
        direction=np.array([0.0, 1.0]),
        scale=np.array([1.0, 2.0]),
    )
    # (3, 4) over (1, 2) is (3, 2), of length sqrt(13).
    assert seen.alignment(np.array([[3.0, 4.0]])) == pytest.approx([2 / np.sqrt(13)], abs=1e-6)
