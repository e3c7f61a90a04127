import numpy as np

from weakspot.core.dataset import Split
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, strip_height
from weakspot_lab.reproduce.scenes.world import (
    SceneRules,
    rendered,
    scene_world,
    softened,
    usual_values,
)

SIZES = {Split.TRAIN: 300, Split.TEST: 300}


def test_scene_world__values_are_tied_in_training_alone():
    classes = ("disc", "square", "star")
    rules = SceneRules(
        classes=classes, sizes=SIZES, usual=usual_values("background", classes, 1), share=0.9
    )
    world = scene_world(rules)
    is_usual = np.zeros(len(world.dataset), dtype=bool)
    for code, name in enumerate(classes):
        is_usual |= (world.dataset.labels == code) & world.has("background", *rules.usual[name])
    assert is_usual[world.rows(Split.TRAIN)].mean() > 0.85
    assert is_usual[world.rows(Split.TEST)].mean() < 0.25
    again = scene_world(rules)
    assert (again.codes == world.codes).all()


def test_scene_world__classes_of_kind_and_colour_and_fewer_values_in_training():
    rules = SceneRules(
        classes=("disc", "ring"),
        colours=("red", "blue"),
        sizes=SIZES,
        allowed={"colour": ("red", "blue")},
        allowed_in_training={"count": ("one",)},
    )
    world = scene_world(rules)
    assert world.dataset.class_names == ("red disc", "blue disc", "red ring", "blue ring")
    shown = world.codes[:, FACTOR_NAMES.index("colour")]
    is_blue = shown == FACTORS["colour"].index("blue")
    assert (is_blue == (world.dataset.labels % 2 == 1)).all()
    assert world.has("count", "one")[world.rows(Split.TRAIN)].all()
    assert not world.has("count", "one")[world.rows(Split.TEST)].all()


def test_rendered__two_looks_without_a_strip():
    world = scene_world(SceneRules(sizes={Split.TEST: 4}))
    first = rendered(world.codes, world.instances)
    second = rendered(world.codes, world.instances, "second")
    height = strip_height(first.shape[1])
    assert (first[:, 0] == first[:, height]).all()
    assert (first == world.images).all()
    assert np.abs(first.astype(int) - second).mean() > 5
    assert (softened(first) == softened(first)).all()
