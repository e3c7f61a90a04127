from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.samples import EmbeddingSpace
from weakspot.repair.strategies.pool import CoresetRepairer, farthest_first


def _plain(embeddings, centres, count):
    """The algorithm as it is written down, in double precision."""
    embeddings, centres = embeddings.astype(np.float64), centres.astype(np.float64)
    nearest = np.square(embeddings[:, None] - centres[None]).sum(axis=2).min(axis=1)
    chosen = []
    for _ in range(count):
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.square(embeddings - embeddings[chosen[-1]]).sum(axis=1))
        nearest[chosen] = -1.0
    return chosen


def test_farthest_first__on_a_line():
    embeddings = np.array([[10.0], [9.0], [5.5], [1.0], [0.0]], dtype=np.float32)
    # 10 is farthest from 0; then 5.5 (4.5 away), then 9 and 1 (1 away each), the first of them first; 0 is trained on already.
    assert farthest_first(embeddings, np.zeros((1, 1), np.float32), 5).tolist() == [0, 2, 1, 3, 4]


@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize("block", [3, 256])
def test_farthest_first__is_the_plain_algorithm(offset, block, monkeypatch):
    monkeypatch.setattr("weakspot.repair.strategies.pool.BLOCK_ROWS", block)
    monkeypatch.setattr("weakspot.repair.strategies.pool.DISTANCE_CHUNK_ROWS", 17)
    draws = np.random.default_rng(5)
    embeddings = (draws.normal(size=(150, 6)) * 3 + offset).astype(np.float32)
    centres = (draws.normal(size=(40, 6)) + offset).astype(np.float32)
    assert farthest_first(embeddings, centres, 60).tolist() == _plain(embeddings, centres, 60)


def test_farthest_first__equal_samples_are_each_chosen_once_and_nothing_gives_nothing():
    same = np.ones((5, 3), dtype=np.float32)
    assert sorted(farthest_first(same, same, 9).tolist()) == [0, 1, 2, 3, 4]
    assert farthest_first(np.zeros((0, 3), np.float32), same, 4).tolist() == []


def test_select__far_from_training_and_from_each_other(make_material, hidden, added):
    # On the line: trained are 0.6, -0.5, 0.2, -0.1, -0.3 and -0.4; a is at 0.9, then g at -0.6 and e, b, c, d, f each 0.1 away.
    for labels in (None, hidden):
        material = make_material(budget=1, labels=labels)
        assert added(CoresetRepairer().select([], material), material) == "a"
    material = make_material(budget=99)
    assert added(CoresetRepairer().select([], material), material) == "abcdefg"


def test_select__within_slices_and_in_any_order(make_material, make_slice, added):
    material = make_material(budget=2, order=[13, 3, 8, 6, 1, 0, 2, 4, 5, 7, 9, 10, 12, 11])
    selection = CoresetRepairer(within="slices").select(
        [make_slice("plum"), make_slice(threshold=0.85)], material
    )
    assert added(selection, material) == "ad"
    assert "farthest from what is trained on inside the slices" in selection.note


def test_select__own_features_come_before_the_joint_space(make_material, added):
    material = make_material(budget=1)
    own = np.zeros((14, 2), dtype=np.float32)
    own[9] = 5.0
    spaces = {
        **material.pool.spaces,
        "features": EmbeddingSpace(encoder_id="other", embeddings=own),
    }
    both = replace(
        material,
        pool=replace(material.pool, spaces=spaces),
        training=replace(material.training, spaces=spaces),
    )
    assert added(CoresetRepairer().select([], both), both) == "d"
    only = {"clip": material.pool.spaces["clip"]}
    joint = replace(
        material,
        pool=replace(material.pool, spaces=only),
        training=replace(material.training, spaces=only),
    )
    assert added(CoresetRepairer().select([], joint), joint) == "a"
    none = replace(
        material,
        pool=replace(material.pool, spaces={}),
        training=replace(material.training, spaces={}),
    )
    with pytest.raises(NotEnoughDataError, match="pool-coreset needs embeddings"):
        CoresetRepairer().select([], none)
