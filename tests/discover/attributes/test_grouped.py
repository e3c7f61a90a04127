"""Combinations that stand out when an object seen several times counts once."""

from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.group_tests import group_p
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.discover.attribute_search import (
    CountedClass,
    find_standing_out,
    keep_standing_out_in_groups,
)
from weakspot.discover.attributes import AttributesDiscoverer

TOP_1 = FailureCriterion()


def _objects(seed, *, is_told, per_object=5):
    """Forty objects, seen several times and right or wrong together; their colour and shape have nothing to do with it."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(40), per_object)
    metadata = {
        name: np.array(["a", "b", "c"])[draws.integers(0, 3, 40)][objects].tolist()
        for name in ("colour", "shape", "light")
    }
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * len(objects),
        predictions=(draws.random(40) < 0.3)[objects].astype(np.int64),
        metadata=metadata,
        groups=[f"object {one}" for one in objects] if is_told else None,
    )
    return SampleSet(dataset=dataset, rows=np.arange(len(objects)), name="toy")


@pytest.mark.parametrize("n_permutations", [0, 39])
def test_discover__objects_seen_several_times_are_no_coincidence(n_permutations):
    method = AttributesDiscoverer(n_permutations=n_permutations, max_chance=0.05)
    found = {
        is_told: sum(
            bool(method.discover(_objects(seed, is_told=is_told), TOP_1, seed=0).slices)
            for seed in range(25)
        )
        for is_told in (True, False)
    }
    assert found[False] >= 12
    assert found[True] <= 3


def test_discover__objects_that_share_an_attribute_are_found():
    samples = _objects(0, is_told=True)
    is_first = np.random.default_rng(0).integers(0, 3, 40) == 0
    wrong = (is_first | (np.arange(40) % 10 == 0)).repeat(5)
    told = samples.dataset.with_predictions(predictions=wrong.astype(np.int64))
    found = AttributesDiscoverer().discover(replace(samples, dataset=told), TOP_1, seed=0).slices
    assert [one.rule for one in found] == [ColumnRule(column="colour", values=("a",))]


def test_refines__groups_count_once():
    """Of the objects that are both, two of five fail, seen ten times each; of those that are one of both, none of five."""
    objects = np.repeat(np.arange(40), 10)
    codes = np.ones((40, 2), dtype=np.int64)
    codes[:10, 0], codes[5:15, 1] = 2, 2
    failed = np.isin(objects, [5, 6, 30])
    both = ((0, 2), (1, 2))
    counted = CountedClass(codes[objects], failed, objects, order=2, min_support=5)
    limits = {"max_p": 1.0, "refine_p": 0.05}
    images = find_standing_out(counted.found, counted.gaps, min_gap=0.0, **limits)
    told = keep_standing_out_in_groups(counted, images, objects, **limits)
    assert both in [counted.values(int(place)) for place in images.places]
    assert both not in [counted.values(int(place)) for place in told.places]
    insides = [counted.members(int(place)) for place in told.places]
    assert told.p_values.tolist() == [group_p(one, failed, objects) for one in insides]
