import numpy as np
import pytest

from weakspot.core.dataset import Split
from weakspot.web.services.images import PARTS, UNKNOWN, is_visible, visible_samples


def test_visible__halves__confirmation_and_test_samples_are_not_among_them(world_workspace):
    seen = visible_samples(world_workspace)
    dataset = world_workspace.samples.dataset
    assert not np.isin(world_workspace.confirmation.rows, seen.rows).any()
    assert np.isin(world_workspace.discovery.rows, seen.rows).all()
    assert np.isin(dataset.rows_of(Split.TRAIN), seen.rows).all()
    of_discovery = seen.rows[seen.parts == PARTS.index("discovery half")]
    assert of_discovery.tolist() == world_workspace.discovery.rows.tolist()
    assert is_visible(world_workspace, int(seen.rows[0]))
    assert not is_visible(world_workspace, int(world_workspace.confirmation.rows[0]))
    assert not is_visible(world_workspace, 10**9)


def test_visible__cross_fitted__either_half_is_looked_at(open_world):
    workspace = open_world(scheme="cross-fit")
    assert np.isin(workspace.confirmation.rows, visible_samples(workspace).rows).all()


def test_visible__results__are_those_of_the_classes(world_workspace):
    seen = visible_samples(world_workspace)
    for problem in world_workspace.problems.values():
        places = np.searchsorted(seen.rows, problem.rows)
        assert (seen.results[places] == problem.failed).all()
        assert seen.truth[places] == pytest.approx(problem.confidence)
    assert (seen.results != UNKNOWN).any()
    assert np.nanmax(seen.sure) <= 1.0
