import csv
from dataclasses import replace

import numpy as np
import pytest
from audit.worlds import WorldPlan, make_world


def test_make_world__same_seed__same_world():
    plan = WorldPlan(slice_size=50, gap=0.3)
    first, second, other = (make_world(plan, seed) for seed in (3, 3, 4))
    assert np.array_equal(first.embeddings, second.embeddings)
    assert np.array_equal(first.predictions, second.predictions)
    assert not np.array_equal(first.predictions, other.predictions)


@pytest.mark.parametrize("is_column", [True, False])
def test_make_world__planted_slice__has_its_size_and_fails_as_often_as_said(is_column):
    plan = WorldPlan(slice_size=50, gap=0.4, is_column=is_column)
    failed, n_members = 0, 0
    for seed in range(20):
        world = make_world(plan, seed)
        members = world.planted & ~world.is_training
        assert members.sum() == 50
        assert set(world.labels[members]) == {0}
        failed += (world.predictions != world.labels)[members].sum()
        n_members += 50
        assert ((world.columns["light"] == "dawn") == world.planted).all() == is_column
    assert failed / n_members == pytest.approx(0.5, abs=0.05)


def test_make_world__several_images_of_an_object__share_prediction_split_and_class():
    world = make_world(WorldPlan(images_per_object=5, tells_objects=True), 1)
    for column in (world.labels, world.predictions, world.is_training):
        per_object = {
            (int(one), str(value)) for one, value in zip(world.objects, column, strict=True)
        }
        assert len(per_object) == world.objects.max() + 1
    assert np.bincount(world.objects).max() == 5


def test_make_world__nearly_identical__embeddings_of_an_object_lie_together():
    world = make_world(WorldPlan(images_per_object=2, is_near_identical=True), 1)
    unit = world.embeddings / np.linalg.norm(world.embeddings, axis=1)[:, None]
    pairs = np.flatnonzero(world.objects[1:] == world.objects[:-1])
    assert (unit[pairs] * unit[pairs + 1]).sum(axis=1).min() > 0.999
    assert np.median((unit[pairs + 1] * unit[pairs + 2 - len(unit)]).sum(axis=1)) < 0.9


def test_write__table_and_embeddings__by_the_same_keys(tmp_path):
    world = make_world(WorldPlan(tells_objects=True, images_per_object=2), 2)
    table, embeddings = world.write(tmp_path)
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["key"] for row in rows] == list(np.load(embeddings)["ids"]) == world.keys
    assert rows[3]["group"] == str(world.objects[3])


def test_make_world__learnt_by_heart__only_evaluation_fails_as_otherwise():
    plan = WorldPlan(slice_size=50, gap=0.2)
    plain, learnt = make_world(plan, 2), make_world(replace(plan, is_learnt=True), 2)
    assert not (learnt.predictions != learnt.labels)[learnt.is_training].any()
    assert (plain.predictions != plain.labels)[plain.is_training].any()
    evaluated = ~plain.is_training
    assert np.array_equal(plain.predictions[evaluated], learnt.predictions[evaluated])
