from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import EmbeddingSpace
from weakspot.core.slices import SliceName
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.testing import material
from weakspot.testing.planted import plant, rare, spurious
from weakspot.words.caption_grammar import CaptionGrammarDescriber
from weakspot.words.captions import ClassWords, built_in_vocabulary, plain_caption, single_additions

TOP_1 = FailureCriterion()
SMALL = CaptionGrammarDescriber(
    adjectives=("green", "red"), places=("on a shelf", "in a crate"), n_kinds=0
)


@pytest.mark.parametrize("ranking", ["data", "direction", "both"])
def test_describe__names_the_added_word_and_the_other_end(toy, ranking):
    samples = toy.samples()
    found = toy.green_slice(samples)
    named = replace(SMALL, ranking=ranking).describe(
        [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )
    assert len(named) == 1
    assert named[0].names[0].contrast == "green"
    assert named[0].names[0].phrase == "a photo of a green apple"
    assert named[0].names[0].score > 0
    assert not named[0].names[0].is_doubtful
    assert named[0].easy_names[0].contrast == "red"
    assert named[0].title == "green apples"
    assert named[0].slice_id == found.slice_id


def test_describe__image_centre_does_not_leak_into_names(toy):
    """The centre of images is far from zero; had it been subtracted from caption differences, all would score alike."""
    samples = toy.samples()
    describer = replace(SMALL, ranking="direction", n_names=10, n_easy_names=10)
    named = describer.describe(
        [toy.green_slice(samples)], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )[0]
    scores = {name.contrast: name.score for name in named.names} | {
        name.contrast: -name.score for name in named.easy_names
    }
    assert scores["green"] > 0.3
    assert scores["red"] < -0.3
    assert abs(scores.get("on a shelf", 0.0)) < 0.1 * scores["green"]


def test_describe__turning_the_direction_turns_the_names(toy):
    samples = toy.samples()
    found = toy.green_slice(samples)
    turned = found.rule.model_copy(
        update={"direction": tuple(-value for value in found.rule.direction)}
    )
    named = SMALL.describe(
        [toy.green_slice(samples, rule=turned)],
        samples,
        TOP_1,
        Assistants(embed_texts=toy.embed_texts),
    )[0]
    assert named.names[0].contrast == "red"
    assert named.easy_names[0].contrast == "green"
    # Here words say red while the samples nearest to them are right: a second look is needed.
    assert named.names[0].is_doubtful


def test_describe__rules_without_direction_are_named_from_samples(toy):
    samples = toy.samples()
    named = SMALL.describe(
        [toy.green_slice(samples, rule=ColumnRule(column="is_green", values=(True,)))],
        samples,
        TOP_1,
        Assistants(embed_texts=toy.embed_texts),
    )
    assert named[0].names[0].contrast == "green"


def test_describe__without_text_or_samples_slices_stay_unnamed(toy):
    samples = toy.samples(has_text=False)
    found = toy.green_slice(samples)

    def refuse(texts):
        raise AssertionError(texts)

    assert SMALL.describe([found], samples, TOP_1, Assistants(embed_texts=refuse)) == (found,)
    assert replace(SMALL, space="elsewhere").describe(
        [found], samples, TOP_1, Assistants(embed_texts=refuse)
    ) == (found,)
    with_text = toy.samples()
    stranger = toy.green_slice(with_text, class_name="pear")
    assert SMALL.describe(
        [stranger], with_text, TOP_1, Assistants(embed_texts=toy.embed_texts)
    ) == (stranger,)
    assert SMALL.describe([], with_text, TOP_1, Assistants(embed_texts=refuse)) == ()


def test_describe__a_longer_name_must_be_clearly_better(toy):
    samples = toy.samples()
    embeddings = samples.embeddings("clip").copy()
    is_green = np.arange(40) % 4 == 0
    embeddings[is_green, 4] += 0.5
    samples = replace(
        samples,
        spaces={
            "clip": EmbeddingSpace(
                encoder_id="toy", embeddings=unit_rows(embeddings), has_text=True
            )
        },
    )
    direction = np.zeros(12)
    direction[1] = direction[4] = np.sqrt(0.5)
    found = toy.green_slice(samples)
    both = found.rule.model_copy(update={"direction": tuple(direction)})
    found = toy.green_slice(samples, rule=both)
    long = replace(SMALL, longer_gain=0.0, ranking="direction").describe(
        [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )[0]
    assert set(long.names[0].contrast.split(", ")) == {"green", "on a shelf"}
    assert long.names[0].phrase == "a photo of a green apple on a shelf"
    short = replace(SMALL, longer_gain=3.0, ranking="direction").describe(
        [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )[0]
    assert "," not in short.names[0].contrast
    assert not any("," in name.contrast for name in short.names)


def test_describe__words_of_one_class_and_kinds_as_nouns(toy):
    samples = toy.samples()
    embeddings = samples.embeddings("clip").copy()
    embeddings[np.arange(40) % 4 == 0, 6] += 1.0
    samples = replace(
        samples,
        spaces={
            "clip": EmbeddingSpace(
                encoder_id="toy", embeddings=unit_rows(embeddings), has_text=True
            )
        },
    )
    direction = np.zeros(12)
    direction[6] = 1.0
    rule = toy.green_slice(samples).rule.model_copy(update={"direction": tuple(direction)})
    found = toy.green_slice(samples, rule=rule)
    for words in (ClassWords(nouns=("Golden apple",)), {"nouns": ["Golden apple"]}):
        named = replace(SMALL, class_words={"apple": words}).describe(
            [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
        )[0]
        assert named.names[0].phrase == "a photo of a golden apple"
        assert named.names[0].contrast == "golden apple"
    with pytest.raises(ConfigError, match="verbs"):
        replace(SMALL, class_words={"apple": {"verbs": ["eat"]}}).describe(
            [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
        )


def test_describe__chunks_give_the_same_names(toy):
    samples = toy.samples()
    found = toy.green_slice(samples)
    sizes = []

    def counting(texts):
        sizes.append(len(texts))
        return toy.embed_texts(texts)

    whole = CaptionGrammarDescriber().describe(
        [found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )
    assert (
        CaptionGrammarDescriber(chunk_size=7).describe(
            [found], samples, TOP_1, Assistants(embed_texts=counting)
        )
        == whole
    )
    assert max(sizes) == 7


def test_describe__a_text_side_of_another_size_is_refused(toy):
    samples = toy.samples()
    with pytest.raises(ModelError, match="text side"):
        SMALL.describe(
            [toy.green_slice(samples)],
            samples,
            TOP_1,
            Assistants(embed_texts=lambda texts: np.ones((len(texts), 3), dtype=np.float32)),
        )
    with pytest.raises(ModelError, match="text side"):
        SMALL.describe(
            [toy.green_slice(samples)],
            samples,
            TOP_1,
            Assistants(
                embed_texts=lambda texts: np.full((len(texts), 12), np.nan, dtype=np.float32)
            ),
        )


def test_caption__samples_that_lack_a_label_are_just_photos(toy):
    plain = plain_caption("effusion", is_absent=True)
    words = ClassWords(adjectives=("old",), places=("indoors",))
    phrases = [caption.phrase for caption in single_additions(plain, words, built_in_vocabulary())]
    assert plain.phrase == "a photo"
    assert {"a photo of an old thing", "a blurry photo", "a photo indoors"} <= set(phrases)
    samples = toy.samples()
    absent = toy.green_slice(samples, side=Side.ABSENT)
    assert (
        SMALL.describe([absent], samples, TOP_1, Assistants(embed_texts=toy.embed_texts))[0].title
        == "no apple: unnamed (directions)"
    )


def _own_name(contrast, **changes):
    given = {
        "phrase": f"a photo of a {contrast} apple",
        "contrast": contrast,
        "score": 9.0,
        "describer": "attributes",
    }
    return SliceName(**{**given, **changes})


def test_describe__names_that_a_method_gave_stay_first(toy):
    samples = toy.samples(
        metadata={"colour": ["green" if number % 4 == 0 else "red" for number in range(40)]}
    )
    found = toy.green_slice(samples, names=(_own_name("green"),))
    (named,) = SMALL.describe([found], samples, TOP_1, Assistants(embed_texts=toy.embed_texts))
    assert named.names[0].contrast == "green"
    assert named.names[0].describer == "attributes"
    assert named.names[0].score == 9.0
    assert named.names[0].witness == "columns"
    assert named.names[0].witness_score > 0.9
    assert [size for size, _ in named.names[0].curve] == [5, 10, 20]
    assert named.names[0].accuracy_nearest < 0.5
    # The grammar finds green too, which would be the same again.
    assert [name.contrast for name in named.names].count("green") == 1
    assert all(name.describer == "caption-grammar" for name in named.names[1:])
    assert named.easy_names[0].contrast == "red"


def test_describe__what_a_method_measured_is_kept(toy):
    samples = toy.samples()
    own = _own_name(
        "green",
        accuracy_nearest=0.25,
        curve=((5, 0.2),),
        witness="captions",
        witness_score=0.5,
        is_doubtful=True,
    )
    (named,) = SMALL.describe(
        [toy.green_slice(samples, names=(own,))],
        samples,
        TOP_1,
        Assistants(embed_texts=toy.embed_texts),
    )
    assert named.names[0] == own


def test_describe__a_name_that_its_witness_denies_is_doubtful(toy):
    turned = {"colour": ["red" if number % 4 == 0 else "green" for number in range(40)]}
    samples = toy.samples(metadata=turned)
    (named,) = SMALL.describe(
        [toy.green_slice(samples)], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )
    assert named.names[0].contrast == "green"
    assert named.names[0].witness_score < -0.9
    assert named.names[0].is_doubtful
    assert named.easy_names[0].witness_score < -0.9
    assert named.easy_names[0].is_doubtful


def test_describe__curves_of_hard_and_easy_names(toy):
    samples = toy.samples(noise=0.02)
    (named,) = SMALL.describe(
        [toy.green_slice(samples)], samples, TOP_1, Assistants(embed_texts=toy.embed_texts)
    )
    # The ten green apples are nearest to "green" and fail; the thirty red ones are nearest to "red" and do not.
    assert named.names[0].curve == ((5, 0.0), (10, 0.0), (20, 0.5))
    assert (named.names[0].accuracy_nearest, named.easy_names[0].accuracy_nearest) == (0.0, 1.0)
    assert named.easy_names[0].curve == ((5, 1.0), (10, 1.0), (20, 1.0))


def test_describe__words_out_of_captions(toy):
    samples = toy.samples(metadata={"number": list(range(40))})

    def captions(rows):
        return [
            "a green apple in a crate" if row % 4 == 0 else "a red apple on a shelf" for row in rows
        ]

    bare = replace(SMALL, adjectives=(), places=())
    (named,) = bare.describe(
        [toy.green_slice(samples)],
        samples,
        TOP_1,
        Assistants(embed_texts=toy.embed_texts, captions=captions),
    )
    assert named.names[0].contrast == "green"
    assert named.names[0].witness == "captions"
    assert named.names[0].witness_score > 0.9
    assert named.easy_names[0].contrast == "red"


def test_describe__words_that_few_members_are_said_to_have_are_not_its_words(toy):
    samples = toy.samples(metadata={"number": list(range(40))})

    def naming(colour):
        def captions(rows):
            return [f"a {colour} apple" if row % 4 == 0 else "an apple" for row in rows]

        asked = Assistants(embed_texts=toy.embed_texts, captions=captions)
        (named,) = SMALL.describe([toy.green_slice(samples)], samples, TOP_1, asked)
        return {name.contrast: name.said_of for name in named.names}

    assert naming("green")["green"] == "said of 10 of 10"
    assert "green" not in naming("dull")


def test_describe__words_of_a_language_model_are_asked_for_once_a_class(toy):
    prompts = []

    def propose(prompt, _schema):
        prompts.append(prompt)
        return {"adjectives": ["green"], "places": ["on a red shelf"]}

    samples = toy.samples()
    bare = replace(SMALL, adjectives=(), places=())
    slices = [toy.green_slice(samples), toy.green_slice(samples, method="mixture")]
    named = bare.describe(
        slices, samples, TOP_1, Assistants(embed_texts=toy.embed_texts, propose=propose)
    )
    assert [found.names[0].contrast for found in named] == ["green", "green"]
    assert len(prompts) == 1
    silent = bare.describe(
        slices[:1], samples, TOP_1, Assistants(embed_texts=toy.embed_texts, propose=lambda *_: "no")
    )
    assert "green" not in [name.contrast for name in silent[0].names]


def test_describe__the_whole_grammar(toy):
    samples = toy.samples()
    asked = []

    def embed(texts):
        asked.extend(texts)
        return toy.embed_texts(texts)

    everything = replace(SMALL, combinations="all", chunk_size=16)
    (named,) = everything.describe(
        [toy.green_slice(samples)], samples, TOP_1, Assistants(embed_texts=embed)
    )
    assert named.names[0].contrast == "green"
    assert "a blurry photo of a green apple in a crate" in asked
    # Plain, 2 adjectives, 16 looks, 2 places; 32 + 4 + 32 pairs; 64 triples; each as a whole phrase and its words alone.
    assert len(set(asked)) == 1 + 2 * (20 + 68 + 64)


def test_describe__slices_of_several_classes_keep_their_order(toy):
    world = plant(rare(0.02), 1_000, seed=1)
    samples = world.samples(Split.VALIDATION)
    slices = material.slices_of(samples, phrases=("a dark star", "a green disc", "a small star"))
    named = CaptionGrammarDescriber().describe(slices, samples, TOP_1, material.ASSISTANTS)
    assert [found.slice_id for found in named] == [found.slice_id for found in slices]
    assert [found.names[0].contrast for found in named] == ["dark", "green", "small"]


@pytest.mark.parametrize("problem", [rare(0.02), spurious()], ids=["rare", "spurious"])
def test_describe__names_of_planted_worlds(problem):
    discoverer = DirectionsDiscoverer(
        costs=(1e-3, 1e-2), n_repeats=1, n_outer_folds=2, n_directions=1, n_permutations=0
    )
    n_right = 0
    for seed in range(5):
        world = plant(problem, 4_000, seed=seed)
        samples = world.samples(Split.VALIDATION)
        slices = [
            found
            for found in discoverer.discover(samples, TOP_1, seed=seed).slices
            if found.class_name == "disc"
        ]
        (named,) = CaptionGrammarDescriber().describe(slices, samples, TOP_1, material.ASSISTANTS)
        assert named.names[0].witness == "columns"
        assert named.names[0].witness_score > 0.2
        n_right += named.names[0].phrase == world.true_slice("disc").phrase
    assert n_right == 5
