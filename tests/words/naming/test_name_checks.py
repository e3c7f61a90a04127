"""Words on axes of their own: green apples in the slice, red ones outside."""

from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.words.word_choice import NameChecker, numbered

WORDS = ("apple", "green", "red", "shelf", "blurry", "metal", "granny", "background")
N = 80
HALVES = np.arange(N) % 2 == 0


def embed_texts(texts):
    said = [[float(word in text.replace(",", "").split()) for word in WORDS] for text in texts]
    return unit_rows(np.array(said) + 1e-6)


def areas(values):
    return lambda words: np.array([values.get(word, np.nan) for word in words], dtype=np.float32)


ALL_KNOWN = areas({"green": 0.99, "on a shelf": 0.9, "red": 0.99, "blurry": 0.9})


def halves_of(*, holds=True, groups=None):
    """Return two halves of apples, a quarter of them members of the slice and green; on the second half none is if it does not hold."""
    draws = np.random.default_rng(5)
    is_member = np.arange(N) // 2 % 4 == 0
    embeddings = 0.15 * draws.normal(size=(N, len(WORDS) + 1))
    embeddings[:, 0] += 1.0
    embeddings[:, -1] = np.where(is_member, 1.0, -1.0)
    is_green = is_member & (HALVES | holds)
    embeddings[is_green, 1] += 0.8
    embeddings[~is_green, 2] += 0.8
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * N,
        predictions=is_member.astype(np.int64),
        groups=groups,
    )
    space = EmbeddingSpace(
        encoder_id="toy", embeddings=embeddings.astype(np.float32), has_text=True
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(N), spaces={"clip": space}, name="toy")
    return samples.only(np.flatnonzero(HALVES)), samples.only(np.flatnonzero(~HALVES))


def padded(texts):
    return np.pad(embed_texts(texts), ((0, 0), (0, 1)))


def slice_of(discovery, *names, **changes):
    direction = np.zeros(len(WORDS) + 1)
    direction[-1] = 1.0
    rule = LinearRule(encoder_id="toy", direction=tuple(direction), threshold=0.0)
    given = {
        "class_name": "apple",
        "rule": rule,
        "method": "directions",
        "found_on": DataUse.of(discovery),
        "names": names,
        "number": 2,
    }
    return FailureSlice(**{**given, **changes})


def name_of(contrast, phrase="", **changes):
    given = {
        "phrase": phrase or f"a photo of a {contrast} apple",
        "contrast": contrast,
        "score": 3.0,
        "describer": "caption-grammar",
        "title": f"{contrast} apples",
    }
    return SliceName(**{**given, **changes})


CHECKER = NameChecker(space="clip", assistants=Assistants(embed_texts=padded, measured=ALL_KNOWN))


def checked(*names, holds=True, assistants=None, groups=None, **changes):
    pair = halves_of(holds=holds, groups=groups)
    found = slice_of(pair[0], *names, **changes)
    checker = NameChecker(space="clip", assistants=assistants) if assistants else CHECKER
    return checker.check([found], [pair])[0]


def test_check__known_fitting_and_held__is_the_title():
    found = checked(name_of("green"))
    assert found.title == "green apples"
    held = found.name.held
    assert found.name.measured == pytest.approx(0.99)
    assert (held.n_members, held.n_others) == (10, 30)
    assert held.n_fitting >= 9
    assert held.n_others_fitting <= 1
    assert held.q_value < 0.001
    assert not found.nearest_words


def test_check__does_not_hold_on_the_other_half__is_no_title():
    found = checked(name_of("green"), holds=False)
    assert found.name is None
    assert found.title == "apple, group 2"
    assert found.nearest_words[0].doubt.startswith("it does not hold")


def test_check__does_not_fit_members__is_no_title():
    found = checked(name_of("red"))
    assert found.name is None
    assert "does not fit members" in found.nearest_words[0].doubt


@pytest.mark.parametrize(("area", "is_sure"), [(0.79, False), (0.8, True), (np.nan, False)])
def test_check__words_that_the_encoder_was_not_seen_to_tell__are_no_title(area, is_sure):
    asking = Assistants(embed_texts=padded, measured=areas({"green": area}))
    assert (checked(name_of("green"), assistants=asking).name is not None) == is_sure


def test_check__without_any_measurement__plain_words_pass_and_hard_ones_need_a_witness():
    asking = Assistants(embed_texts=padded)
    assert checked(name_of("green"), assistants=asking).title == "green apples"
    ground = name_of("on a green background", "a photo of an apple on a green background")
    assert checked(ground, assistants=asking).name is None
    kind = name_of("green granny", "a photo of a green granny")
    assert checked(kind, assistants=asking).name is None


def test_check__a_witness_backs_or_denies():
    ground = name_of("on a green background", "a photo of an apple on a green background")
    is_member = np.arange(N) // 2 % 4 == 0
    asking = Assistants(embed_texts=padded, measured=areas({}))
    sees = replace(asking, seen=lambda rows, _words: is_member[rows].astype(np.float32))
    assert checked(ground, assistants=sees).name.contrast == "on a green background"
    denies = Assistants(
        embed_texts=padded,
        measured=ALL_KNOWN,
        seen=lambda rows, _words: np.zeros(len(rows), dtype=np.float32),
    )
    assert checked(name_of("green"), assistants=denies).name is None
    cannot = replace(denies, seen=lambda rows, _words: np.full(len(rows), np.nan))
    assert checked(name_of("green"), assistants=cannot).name is not None


def test_check__columns_and_captions_that_agree_are_witnesses_too():
    asking = Assistants(embed_texts=padded, measured=areas({}))
    told = name_of("green", witness="captions", witness_score=0.4)
    assert checked(told, assistants=asking).name is not None
    doubtful = name_of("green", witness="captions", witness_score=-0.4, is_doubtful=True)
    assert checked(doubtful).name is None


def test_check__of_several_things_each_must_hold():
    both = name_of("green, on a shelf", "a photo of a green apple on a shelf")
    assert checked(both).name is None
    assert checked(name_of("green"), both).title == "green apples"


def test_check__a_sure_word_that_is_clearly_outdone_by_a_doubtful_one__is_no_title():
    better = name_of("metal", score=9.0)
    found = checked(better, name_of("green"))
    assert found.name is None
    assert [name.doubt for name in found.names][1] == "other words fit better"
    assert checked(name_of("metal", score=3.5), name_of("green")).title == "green apples"


def test_check__sure_words_come_first():
    found = checked(name_of("metal"), name_of("green"))
    assert [name.contrast for name in found.names] == ["green", "metal"]


def test_check__words_of_people_and_rules_are_left_alone():
    own = name_of("red", describer="person", title="")
    found = checked(own, method="person")
    assert found.names == (own,)


def test_check__words_of_keywords_are_judged_by_what_the_encoder_knows():
    asking = Assistants(embed_texts=padded, measured=areas({"green": 0.5}))
    own = name_of("green", describer="keywords")
    assert checked(own, method="keywords", assistants=asking).name is None
    assert checked(own, method="keywords").name is not None


def test_check__all_words_of_a_run_are_one_family():
    pair = halves_of()
    words = [name_of("green"), *(name_of("blurry", f"a {n} photo") for n in range(9))]
    alone = CHECKER.check([slice_of(pair[0], words[0])], [pair])[0].name.held
    slices = [slice_of(pair[0], *words[:5]), slice_of(pair[0], *words[5:])]
    among = CHECKER.check(slices, [pair, pair])[0].name.held
    assert among.p_value == alone.p_value
    assert among.q_value == pytest.approx(10 * alone.p_value)


def test_check__images_of_one_group_count_once():
    groups = [f"g{number // 8}" for number in range(N)]
    found = checked(name_of("green"), groups=groups)
    assert found.names[0].held.n_members == 10
    shared = [f"g{(number // 2) % 4 == 0}{number // 16}" for number in range(N)]
    assert checked(name_of("green"), groups=shared).names[0].held.n_members == 5


def test_check__too_few_members_elsewhere__is_no_title():
    pair = halves_of()
    few = pair[1].only(pair[1].rows[:12])
    found = CHECKER.check([slice_of(pair[0], name_of("green"))], [(pair[0], few)])[0]
    assert found.name is None
    assert "too few members" in found.names[0].doubt


def test_check__words_of_the_other_end_are_kept_only_if_they_hold():
    found = checked(easy_names=(name_of("red"), name_of("metal")))
    assert [name.contrast for name in found.easy_names] == ["red"]


def test_check__reads_no_prediction():
    pair = halves_of()
    turned = [
        replace(one, dataset=one.dataset.with_predictions(predictions=np.ones(N, dtype=np.int64)))
        for one in pair
    ]
    names = [
        CHECKER.check([slice_of(pair[0], name_of("green"))], [tuple(halves)])[0].names
        for halves in (pair, turned)
    ]
    assert names[0] == names[1]


def test_numbered__places_within_the_class_in_the_order_given():
    discovery, _ = halves_of()
    first, second = slice_of(discovery, number=0), slice_of(discovery, number=0, fold=1)
    other = slice_of(discovery, number=0, class_name="pear")
    assert [one.number for one in numbered([first, other, second])] == [1, 1, 2]
    assert [one.title for one in numbered([first, other])] == ["apple, group 1", "pear, group 1"]
