import numpy as np
import pytest
from tests import build

from weakspot.core.failures import FailureCriterion, unjudged_classes
from weakspot.core.slices import DataUse
from weakspot.discover.clusters import ClustersDiscoverer

CRITERION = FailureCriterion()


def _samples(failed):
    """Return 120 samples of one class in three clusters of 60, 40 and 20."""
    draws = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], [60, 40, 20])
    embeddings = 3.0 * np.eye(12)[kinds] + 0.3 * draws.normal(size=(120, 12)) + 1.0
    return build.samples(
        [0] * 120,
        sample_ids=[f"{number:03d}" for number in range(120)],
        predictions=np.where(failed, 1, 0),
        embeddings=embeddings,
        encoder_id="e",
    ), kinds


@pytest.mark.parametrize("kind", [1, 2])
def test_discover__a_cluster_that_fails(kind):
    expected = np.repeat([0, 1, 2], [60, 40, 20]) == kind
    samples, _ = _samples(expected & (np.arange(120) % 2 == 0))
    found = ClustersDiscoverer().discover(samples, CRITERION, seed=0).slices[0]
    assert np.array_equal(found.rule.members(samples, samples.rows), expected)


def test_blind_candidates__the_clusters_stand_out_and_predictions_have_no_part():
    samples, kinds = _samples(np.zeros(120, dtype=bool))
    others, _ = _samples(np.arange(120) % 3 == 0)
    listed = [
        ClustersDiscoverer().blind_candidates(
            one, unjudged_classes(one.dataset, one.rows)[0], seed=0
        )
        for one in (samples, others)
    ]
    assert [one[0].rule for one in listed[0]] == [one[0].rule for one in listed[1]]
    best = sorted(listed[0], key=lambda one: -one[1])[:3]
    members = {tuple(one[0].members(samples).tolist()) for one in best}
    assert {tuple(np.flatnonzero(kinds == kind).tolist()) for kind in (1, 2)} <= members
    assert np.mean([one[1] for one in listed[0]]) == pytest.approx(1.0)
    assert all(one[0].found_on == DataUse.nothing() for one in listed[0])


def test_blind_candidates__too_few_samples_or_all_alike__none():
    samples, _ = _samples(np.zeros(120, dtype=bool))
    few = samples.only(np.arange(15))
    problem = unjudged_classes(few.dataset, few.rows)[0]
    assert ClustersDiscoverer().blind_candidates(few, problem, seed=0) == ()
    samples.space("clip").embeddings[:] = 1.0
    problem = unjudged_classes(samples.dataset, samples.rows)[0]
    assert ClustersDiscoverer().blind_candidates(samples, problem, seed=0) == ()
