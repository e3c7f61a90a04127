"""Real clusters on this machine: a head without cores and two nodes, of which one is killed in the middle of a map."""

import contextlib
import importlib
import os
from functools import partial

import pytest

from weakspot.core.errors import ConfigError, UnavailableError
from weakspot.engine.cluster import RayEngine
from weakspot.engine.local import LocalEngine
from weakspot.engine.ray_session import connected_ray
from weakspot.testing.engine_work import Deadly, DeadlyWork, NumberWork, slowly_doubled


class TwoNodes:
    """Keeps two nodes of one core each running, whatever tests do to them."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.address = cluster.address
        self._nodes = []
        self.fill_up()

    def fill_up(self):
        while len(self._nodes) < 2:
            self._nodes.append(self._cluster.add_node(num_cpus=1, include_dashboard=False))

    def kill_one(self):
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)


@pytest.fixture(scope="module")
def all_nodes():
    # Ray is loaded as weakspot loads it; another cluster that tests in this process used is left first.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    with pytest.raises(UnavailableError):
        connected_ray("127.0.0.1:1")
    ray = importlib.import_module("ray")
    ray.shutdown()
    with contextlib.ExitStack() as stack:
        cluster = importlib.import_module("ray.cluster_utils").Cluster()
        stack.callback(cluster.shutdown)
        stack.callback(ray.shutdown)
        cluster.add_node(num_cpus=0, include_dashboard=False)
        yield TwoNodes(cluster)


@pytest.fixture
def nodes(all_nodes):
    all_nodes.fill_up()
    return all_nodes


def test_map__node_killed_in_the_middle__equals_local(nodes):
    found = []
    for number, result in enumerate(RayEngine(address=nodes.address, queue_depth=8).map(slowly_doubled, range(120))):
        found.append(result)
        if number == 40:
            nodes.kill_one()
    assert found == list(LocalEngine().map(slowly_doubled, range(120)))


def test_map_batches__node_killed_in_the_middle__equals_local(nodes):
    work = partial(DeadlyWork, function=slowly_doubled)
    found = []
    for number, batch in enumerate(RayEngine(address=nodes.address, queue_depth=8).map_batches(work, range(202), batch_size=4)):
        found.append(batch)
        if number == 16:
            nodes.kill_one()
    assert found == list(LocalEngine().map_batches(work, range(202), batch_size=4))
