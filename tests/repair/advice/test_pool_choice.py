import dataclasses

import numpy as np
import pyarrow as pa

from weakspot.repair.advice import files
from weakspot.repair.advice.files import choose_from_pool, fresh_pool


def _choose(world, criterion):
    return choose_from_pool(world.kind(), world.samples, criterion, seed=0)


def test_choose_from_pool__most_of_the_first_are_of_the_kind(world, criterion):
    found = _choose(world, criterion)
    assert found.n_pool == 80
    assert len(found.rows) == 40
    assert world.in_reeds[found.rows[:10]].mean() >= 0.8
    assert not found.is_labelled.any()


def test_choose_from_pool__among_likely_ones_those_the_classifier_sees_least_of_the_class_in(
    world, criterion
):
    """Easy ones teach little: with the most likely first, gains were smaller than forecast."""
    rows = _choose(world, criterion).rows
    beliefs = world.dataset.probabilities[rows, 0]
    first = beliefs[: int(np.argmax(np.diff(beliefs) < 0)) + 1]
    assert len(first) >= 5
    assert (np.diff(first) >= 0).all()


def test_choose_from_pool__of_a_slice_only_what_its_rule_takes(sliced, criterion):
    found = _choose(sliced, criterion)
    assert sliced.in_reeds[found.rows].all()
    assert found.n_candidates == 20


def test_choose_from_pool__confirmation_images_have_no_influence(world, criterion):
    kind, samples = world.kind(), world.samples
    evaluation = np.flatnonzero(np.isin(world.dataset.splits, [1, 2]))
    hidden = np.setdiff1d(evaluation, kind.discovery.rows)
    embeddings = samples.spaces["clip"].embeddings.copy()
    embeddings[hidden] = np.random.default_rng(9).normal(size=(len(hidden), embeddings.shape[1]))
    space = dataclasses.replace(samples.spaces["clip"], embeddings=embeddings)
    changed = dataclasses.replace(samples, spaces={"clip": space, "features": space})
    before = choose_from_pool(kind, samples, criterion, seed=0)
    after = choose_from_pool(kind, changed, criterion, seed=0)
    assert np.array_equal(before.rows, after.rows)


def test_choose_from_pool__labelled_images_of_another_class_are_left_out_and_others_come_first(
    plant, criterion
):
    labelled = plant(are_pool_labels_known=True)
    found = _choose(labelled, criterion)
    assert (labelled.truth[found.rows] == 0).all()
    assert found.is_labelled.all()
    some = plant(n_pool=20)
    known = np.flatnonzero(some.in_reeds & (some.dataset.splits == 3))[:4]
    dataset = some.dataset.with_labels(known, np.zeros(4, dtype=np.int64))
    samples = dataclasses.replace(some.samples, dataset=dataset)
    told = dataclasses.replace(some, prepared=dataclasses.replace(some.prepared, samples=samples))
    chosen = _choose(told, criterion)
    assert set(chosen.rows[:4]) == set(known)
    assert chosen.is_labelled.sum() == 4


def test_choose_from_pool__without_embeddings_in_the_order_of_the_table(sliced, criterion):
    bare = dataclasses.replace(sliced.samples, spaces={})
    found = choose_from_pool(sliced.kind(), bare, criterion, seed=0)
    assert (
        found.rows.tolist()
        == np.flatnonzero(sliced.in_reeds & (sliced.dataset.splits == 3)).tolist()
    )


def test_fresh_pool__images_that_are_measured_or_trained_on_are_left_out(world):
    pool = np.flatnonzero(world.dataset.splits == 3)
    hashes = world.dataset.content_hashes()
    hashes[pool[0]], hashes[pool[1]], hashes[pool[2]] = hashes[0], hashes[200], hashes[pool[3]]
    table = world.dataset.table
    column = table.column_names.index("content_hash")
    dataset = dataclasses.replace(
        world.dataset, table=table.set_column(column, "content_hash", pa.array(hashes))
    )
    found = fresh_pool(dataclasses.replace(world.samples, dataset=dataset))
    assert found.tolist() == sorted(set(pool) - {pool[0], pool[1], pool[3]})


def test_choose_from_pool__as_many_as_a_list_holds_or_twice_as_many_as_are_wanted(
    world, criterion, monkeypatch
):
    monkeypatch.setattr(files, "MIN_LISTED", 7)
    assert len(_choose(world, criterion).rows) == 7
    found = choose_from_pool(world.kind(), world.samples, criterion, n_wanted=6, seed=0)
    assert len(found.rows) == 12
