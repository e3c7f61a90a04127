"""Words with what is said of them by hand; distances of the encoder are those of made samples."""

from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.slices import HeldName
from weakspot.words.captions import plain_caption
from weakspot.words.word_choice import Candidate, Choice, Fits, Sight

PLAIN = plain_caption("dog")
HELD = HeldName(
    auc=0.95,
    p_value=1e-6,
    q_value=1e-5,
    n_members=20,
    n_fitting=18,
    n_others=40,
    n_others_fitting=2,
)
INSIDE = np.arange(60) % 3 == 0


def sight(auc, members=0.9, others=0.1):
    return Sight(
        auc=auc, p_value=1e-4, members=members, others=others,
        n_members=20, n_others=40, n_seen=round(20 * members), n_others_seen=round(40 * others),
    )  # fmt: skip


SEEN, UNSEEN = (sight(0.9), sight(0.9)), (sight(0.5, 0.0, 0.0), sight(0.55, 0.0, 0.0))
DEFINING = (sight(1.0), sight(0.98))


def word(contrast, slot="look", **known):
    caption = replace(PLAIN, look=contrast, added=((slot, contrast),))
    given = {"place": None, "area": 0.95, "sights": (), "held": HELD, "fits_found": 0.95}
    return Candidate(caption=caption, **(given | known))


def choose(*words, distances=()):
    """Return the title of words; those with distances were asked of the encoder, in this order."""
    draws = np.random.default_rng(0)
    noise = draws.normal(size=(len(INSIDE), len(distances)))
    values = (noise + INSIDE[:, None] * np.array(distances)).astype(np.float32)
    asked = tuple(
        replace(one, place=place if place < len(distances) else None)
        for place, one in enumerate(words)
    )
    fits = Fits(
        captions=tuple(one.caption for one in words[: len(distances)]),
        first=values[::2], second=values[1::2], halves=(INSIDE[::2], INSIDE[1::2]),
    )  # fmt: skip
    title = Choice(candidates=asked, fits=fits).title()
    return None if title is None else title.contrast


def test_title__the_word_that_is_far_ahead():
    assert choose(word("painting"), word("in the rain"), distances=(6, 2)) == "painting"


def test_title__none_of_words_that_are_about_as_good():
    assert choose(word("toy"), word("painting"), distances=(3, 3)) is None


def test_title__not_a_word_that_hardly_sets_members_apart():
    assert choose(word("painting"), word("old"), distances=(3.5, 0)) == "painting"
    assert choose(word("painting"), word("old"), distances=(2.5, 0)) is None


def test_title__a_rival_that_witnesses_deny_does_not_count():
    denied = word("overexposed", sights=UNSEEN)
    assert choose(denied, word("painting"), word("old"), distances=(8, 4, 1)) == "painting"
    assert choose(denied, distances=(6,)) is None


def test_title__of_about_as_good_ones_the_one_that_is_seen():
    words = word("toy"), word("in the snow", sights=SEEN)
    assert choose(*words, distances=(3.2, 3)) == "in the snow"
    assert choose(*words, distances=(7, 1)) == "toy"


def test_title__weather_only_if_it_is_seen():
    fog = word("in fog")
    assert choose(fog, word("old"), distances=(7, 1)) is None
    assert choose(replace(fog, sights=SEEN), word("old"), distances=(7, 1)) == "in fog"


def test_title__what_a_witness_can_tell_it_has_to_see():
    hardly = sight(0.75, 0.3, 0.2), sight(0.75, 0.3, 0.2)
    assert choose(word("in the water", slot="place", sights=hardly), distances=(7,)) is None
    assert choose(word("red", slot="adjective", sights=hardly), distances=(7,)) == "red"


def test_title__rather_a_place_than_a_background_if_both_are_seen():
    words = [
        word(one, slot="place", area=0.99, sights=SEEN)
        for one in ("on a blue background", "in the sky")
    ]
    assert choose(*words, distances=(4, 3.8)) == "in the sky"
    assert choose(*words, distances=(8, 2)) == "on a blue background"


def test_title__halves_are_seen_together_and_may_not_contradict_each_other():
    other = word("toy")
    together = word("in the snow", sights=(sight(0.6, 0.49, 0.2), sight(0.9, 0.64, 0.2)))
    assert choose(other, together, distances=(3.2, 3)) == "in the snow"
    against = replace(together, sights=(sight(0.55, 0.4, 0.5), sight(0.9, 0.9, 0.1)))
    assert choose(other, against, distances=(3.2, 3)) is None


def test_title__near_words_are_no_rivals():
    assert choose(word("painting"), word("drawing"), distances=(4, 4)) in ("painting", "drawing")


def test_title__a_background_only_if_it_is_seen():
    words = word("on a striped background", area=0.99), word("painting")
    assert choose(*words, distances=(6, 4)) == "painting"
    seen = replace(words[0], sights=SEEN)
    assert choose(seen, words[1], distances=(6, 4)) == "on a striped background"


def test_title__kinds_that_nobody_measured_need_a_witness():
    kind = word("horse", area=None)
    assert choose(kind, word("running"), distances=(6, 2)) is None
    in_small_images = (sight(0.85, 0.3, 0.02), sight(0.86, 0.4, 0.02))
    assert (
        choose(replace(kind, sights=in_small_images), word("running"), distances=(6, 2)) == "horse"
    )


def test_title__a_kind_only_clearly_ahead_of_every_other_kind():
    frog, snake = (word(one, slot="noun", sights=SEEN) for one in ("frog", "snake"))
    assert choose(snake, frog, distances=(3.3, 3)) is None
    assert choose(snake, frog, distances=(6, 3)) == "snake"
    assert choose(frog, word("running"), distances=(2.0, 1)) is None


def test_title__a_word_for_kinds_that_are_about_as_good():
    dog, cow, above = (word(one, slot="noun", sights=SEEN) for one in ("dog", "cow", "mammal"))
    assert choose(dog, cow, above, distances=(5.6, 4, 4.6)) == "mammal"


def test_title__rather_an_adjective_than_a_kind_if_both_are_seen():
    kind, colour = (
        replace(word(one, sights=SEEN), caption=replace(PLAIN, added=((slot, one),)))
        for slot, one in (("noun", "poodle"), ("adjective", "black"))
    )
    assert choose(kind, colour, distances=(4, 3.8)) == "black"
    assert choose(kind, colour, distances=(8, 2)) == "poodle"
    assert choose(kind, replace(colour, sights=()), distances=(4, 3.8)) == "poodle"


def test_title__pixels_back_only_what_is_over_their_bound():
    hardly = (sight(0.99, 0.01, 0.0), sight(0.99, 0.01, 0.0))
    assert choose(word("pixelated", sights=hardly), distances=(6,)) is None


def test_title__a_defining_look_is_said_before_all_else():
    seen = word("black and white", sights=DEFINING, place=None)
    assert choose(word("with a dog", sights=SEEN), seen, distances=(9,)) == "black and white"
    hardly = replace(seen, sights=(sight(0.9, 0.9, 0.2), sight(0.9, 0.9, 0.2)))
    assert choose(word("in the snow", sights=SEEN), hardly, distances=(9,)) == "in the snow"


def test_title__a_look_of_nearly_all_members_of_both_halves_together_is_defining():
    first, second = sight(0.85, 0.8, 0.06), sight(1.0, 0.95, 0.0)
    seen = word("black and white", sights=(first, second))
    assert choose(word("in the snow", sights=SEEN), seen, distances=(9,)) == "black and white"
    in_others = replace(first, n_others_seen=12), second
    other = replace(seen, sights=in_others)
    assert choose(word("in the snow", sights=SEEN), other, distances=(9,)) == "in the snow"


def test_title__a_hue_that_is_far_ahead_explains_that_members_are_darker():
    dark, red = word("dark", sights=DEFINING), word("red", slot="adjective")
    assert choose(red, dark, distances=(7, 2)) == "red"
    assert choose(red, dark, distances=(7,)) == "red"
    assert choose(dark, red, distances=(7, 4)) == "dark"
    assert choose(word("black", slot="adjective"), dark, distances=(7, 2)) == "dark"
    noisy = word("noisy", sights=DEFINING)
    assert choose(red, noisy, distances=(7, 2)) == "noisy"


def test_title__a_look_that_all_have_and_members_have_more_of_if_the_encoder_says_it_too():
    more = word("blurry", sights=(sight(0.99, 1.0, 1.0), sight(0.98, 1.0, 1.0)))
    odd = word("in the rain"), word("in a pile")
    assert choose(*odd, more, distances=(8, 4, 5)) == "blurry"
    assert choose(*odd, more, distances=(8, 4, 2)) is None
    less = replace(more, sights=(sight(0.99, 1.0, 1.0), sight(0.9, 1.0, 1.0)))
    assert choose(*odd, less, distances=(8, 4, 5)) is None
    assert choose(word("painting"), more, distances=(8, 5)) == "painting"


def test_title__a_witness_that_is_seldom_sure_and_never_elsewhere_backs():
    cat, mouse = (word(one, slot="noun") for one in ("cat", "mouse"))
    seldom = (sight(0.78, 0.2, 0.0), sight(0.73, 0.35, 0.0))
    assert choose(replace(cat, sights=seldom), mouse, distances=(7, 3)) == "cat"
    elsewhere = tuple(replace(one, n_others_seen=3) for one in seldom)
    assert choose(replace(cat, sights=elsewhere), mouse, distances=(7, 3)) is None
    on_one_half = (seldom[1], replace(seldom[0], n_seen=0))
    assert choose(replace(cat, sights=on_one_half), mouse, distances=(7, 3)) is None


def test_title__networks_that_rank_are_judged_on_both_halves_together():
    ranked = sight(0.78, 0.14, 0.06), sight(0.83, 0.18, 0.05)
    flower = word("on a flower", slot="place", sights=ranked)
    assert choose(flower, word("old"), distances=(7, 1)) == "on a flower"
    less = replace(flower, sights=(sight(0.78, 0.10, 0.06), ranked[1]))
    assert choose(less, word("old"), distances=(7, 1)) is None


def test_title__of_defining_looks_the_one_that_says_most():
    looks = [word(one, sights=DEFINING) for one in ("bright", "black and white", "sketch")]
    assert choose(*looks) == "sketch"
    assert choose(*looks[:2]) == "black and white"


def test_title__writing_is_any_text_unless_it_is_clearly_of_one_kind():
    label, text = (word(one, sights=SEEN) for one in ("with a label", "with text on it"))
    assert choose(label, text, distances=(4, 4)) == "with text on it"
    assert choose(label, text, distances=(8, 3)) == "with a label"
    unread = [replace(one, sights=UNSEEN) for one in (label, text)]
    assert choose(*unread, distances=(8, 3)) is None


def test_title__what_is_measured_fills_in_where_no_word_is_sure():
    clear = word("far away", sights=(sight(0.95), sight(0.93)))
    assert choose(word("toy"), word("painting"), clear, distances=(3, 3)) == "far away"


@pytest.mark.parametrize(
    "known",
    [
        {"area": 0.7},
        {"fits_found": 0.7},
        {"held": None},
        {"held": HELD.model_copy(update={"q_value": 0.2})},
    ],
)
def test_title__only_words_that_are_known_fit_and_hold(known):
    assert choose(word("painting", **known), distances=(6,)) is None


def test_title__nothing_to_choose_from():
    assert Choice(candidates=(), fits=None).title() is None
