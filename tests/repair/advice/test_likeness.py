import numpy as np

from weakspot.repair.advice.kinds import held_out_scores, is_like


def test_is_like__another_look_does_not_pass_and_the_same_does(world, plant):
    kind = world.kind()
    flying = np.flatnonzero((world.truth == 0) & (world.dataset.splits == 0))
    assert is_like(world.samples, flying, kind.rows, seed=0).sum() == 0
    same = plant(n_known=60)
    rows = np.flatnonzero(same.in_reeds & (same.dataset.splits == 0))
    assert is_like(same.samples, rows, same.kind().rows, seed=0).mean() > 0.75


def test_is_like__without_embeddings_or_with_very_few_images_nothing_is_said(world):
    rows = np.flatnonzero(world.dataset.splits == 0)
    assert is_like(world.samples, rows, world.kind().rows[:4], seed=0) is None
    assert is_like(world.samples, rows[:2], world.kind().rows, seed=0) is None
    bare = world.samples.__class__(dataset=world.dataset, rows=world.samples.rows)
    assert is_like(bare, rows, world.kind().rows, seed=0) is None


def test_held_out_scores__where_there_is_no_difference_none_is_seen(world):
    """A probe that judged what it was fitted to would tell any two sets apart."""
    rows = np.random.default_rng(0).permutation(np.flatnonzero(world.truth == 1))[:60]
    first, second = held_out_scores(world.samples, rows[:30], rows[30:], "clip", seed=0)
    assert abs(first.mean() - second.mean()) < 0.5 * np.concatenate([first, second]).std()
