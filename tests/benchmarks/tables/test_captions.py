"""Captions alone in small: worlds are what they say, the benchmark judges rightly, and a clear word is found without any image."""

import numpy as np
from tables.captions import CLASSES, CaptionPlan, confirmed_words, make_world

CLEAR = CaptionPlan(n_evaluation=300, n_word=60, n_phrase=60, gap=0.6)


def test_make_world__planted_captions_say_the_word_and_fail_as_often_as_said():
    world = make_world(CLEAR, 7)
    planted = (world.chance > 0.5) & (world.labels == 0)
    assert planted.sum() == 60
    says = np.array([world.word in caption or "people" in caption for caption in world.captions])
    assert says[planted].all()
    failed = world.predictions != world.labels
    assert abs(failed[planted].mean() - 0.7) < 0.2
    assert make_world(CLEAR, 7).captions == world.captions


def test_confirmed_words__clear_word_and_phrase__confirmed_true_of_all_members_and_nothing_false():
    world = make_world(CLEAR, 3)
    found, _ = confirmed_words(world, "cross-fit")
    told = {(class_name, words) for class_name, words, _, _ in found}
    assert {(CLASSES[0], world.word), (CLASSES[1], "wet road")} <= told
    assert not any(is_false for _, _, is_false, _ in found)
    assert all(is_true for _, _, _, is_true in found)
