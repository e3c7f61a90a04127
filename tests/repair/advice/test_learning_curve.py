from dataclasses import replace

import numpy as np

from weakspot.repair.advice.learning_curve import CurveBuilder, _order, draw_curve, weigh_kind


def _material(world, criterion):
    start = world.prepared.classifier.head
    builder = CurveBuilder(samples=world.samples, criterion=criterion, start=start)
    return builder.material(world.kind())


def test_draw_curve__images_that_can_be_learnt_lift_the_kind(world, criterion):
    curve = draw_curve(_material(world, criterion), seed=0)
    assert curve[0].n_added == 0
    assert abs(curve[0].gain) < 0.05
    assert curve[-1].gain > 0.4
    assert curve[3].gain < curve[-1].gain


def test_draw_curve__images_that_look_like_another_class_cost_there_what_they_bring(
    plant, criterion
):
    curve = draw_curve(_material(plant(is_learnable=False), criterion), seed=0)
    last = curve[-1]
    assert last.gain < 0.35
    assert last.elsewhere < -0.05


def test_draw_curve__the_same_seed_gives_the_same_curve(world, criterion):
    material = _material(world, criterion)
    first, again, other = (draw_curve(material, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first[2].changes, again[2].changes, equal_nan=True)
    assert not np.array_equal(first[2].changes, other[2].changes, equal_nan=True)


def test_draw_curve__images_that_belong_together_are_never_added_and_held_out(world, criterion):
    material = _material(world, criterion)
    pairs = np.arange(len(material.kind)) // 2
    copies = np.repeat(material.kind.features[::2], 2, axis=0)
    twins = replace(material.kind, groups=pairs, features=copies)
    curve = draw_curve(replace(material, kind=twins), seed=0)
    assert twins.n_units == len(np.unique(pairs))
    for seen in ~np.isnan(curve[-1].changes):
        assert np.array_equal(seen[::2], seen[1::2])


def test_draw_curve__few_images_say_nothing(world, criterion):
    material = _material(world, criterion)
    alone = replace(material.kind, groups=np.arange(len(material.kind)) % 5)
    assert draw_curve(replace(material, kind=alone), seed=0) is None


def test_weigh_kind__more_weight_on_the_few_that_training_has(plant, criterion):
    material = _material(plant(form="slice", n_known=3), criterion)
    assert material.is_kind.sum() == 3
    assert weigh_kind(material).gain > 0.2
    nothing = replace(material, is_kind=np.zeros_like(material.is_kind))
    assert weigh_kind(nothing) is None


def test_order__what_is_held_out_is_never_added():
    """A layer that was trained on what it is judged by would make every forecast too good."""
    groups = np.array([0, 0, 1, 2, 3, 3, 4, 5, 6, 7])
    for seed in range(20):
        added, held_out = _order(groups, np.random.default_rng(seed))
        assert sorted([*added, *held_out]) == list(range(10))
        assert not set(groups[added]) & set(groups[held_out])
