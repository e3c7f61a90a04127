"""A real cluster on this machine: a head without cores and nodes that are killed, and join, in the middle of maps."""

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator

import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.engine.cluster import RayEngine, connect_ray, load_ray
from weakspot.data.engine.local import LocalEngine
from weakspot.testing.engine_checks import Deadly, NumberWork, slowly_doubled

NOTICED_SOON = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}


class Nodes:
    """A cluster whose nodes have one core each."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.address = cluster.address
        self._nodes = []

    def add(self):
        self._nodes.append(self._cluster.add_node(num_cpus=1, include_dashboard=False))

    def kill_oldest(self):
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)

    def keep(self, n_nodes: int):
        while len(self._nodes) < n_nodes:
            self.add()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    ray = load_ray(loopback_only=True)
    ray.shutdown()
    with contextlib.ExitStack() as stack:
        cluster = importlib.import_module("ray.cluster_utils").Cluster()
        stack.callback(cluster.shutdown)
        stack.callback(ray.shutdown)
        cluster.add_node(num_cpus=0, include_dashboard=False, _system_config=NOTICED_SOON)
        yield Nodes(cluster)


def test_map__one_of_two_nodes_killed_in_the_middle__equals_local(nodes):
    nodes.keep(2)
    found = []
    for number, result in enumerate(
        RayEngine(address=nodes.address, queue_depth=8).map(slowly_doubled, range(120))
    ):
        found.append(result)
        if number == 40:
            nodes.kill_oldest()
    assert found == list(LocalEngine().map(slowly_doubled, range(120)))


def test_map_batches__a_node_joins_and_the_first_is_killed__equals_local(nodes):
    nodes.keep(1)
    seen, found = [], []
    is_enough = threading.Event()
    engine = RayEngine(address=nodes.address, queue_depth=8)
    for batch in engine.map_batches(NumberWork, _until(is_enough), batch_size=4):
        found.append(batch.doubled)
        if batch.process not in seen:
            seen.append(batch.process)
            if len(seen) == 1:
                nodes.add()
            elif len(seen) == 2:
                nodes.kill_oldest()
                is_enough.set()
    n_items = sum(map(len, found))
    assert len(seen) >= 2
    assert found == [
        batch.doubled
        for batch in LocalEngine().map_batches(NumberWork, range(n_items), batch_size=4)
    ]


def _until(is_enough: threading.Event) -> Iterator[int]:
    """Yield numbers until enough, and some more."""
    for number in range(20_000):
        yield number
        if is_enough.is_set():
            yield from range(number + 1, number + 101)
            return


def test_map__item_that_always_kills__goes_to_lost(nodes):
    nodes.keep(1)
    engine = RayEngine(address=nodes.address, queue_depth=0)
    found = list(engine.map(Deadly(numbers=(2,)), range(4), lost=lambda number: -number))
    assert found == [0, 2, -2, 6]


def test_map__functions_travel_by_value(nodes):
    nodes.keep(1)
    three = 3
    assert list(RayEngine(address=nodes.address).map(lambda number: three * number, range(4))) == [
        0,
        3,
        6,
        9,
    ]


def test_cluster__of_this_machine_alone__can_be_reached_from_nowhere_else(nodes):
    nodes.keep(1)
    ray = connect_ray(nodes.address)
    assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_map__what_cannot_be_sent(nodes):
    lock = threading.Lock()
    with pytest.raises(ConfigError, match=r"The work cannot be sent.*Sendable"):
        list(RayEngine(address=nodes.address).map(lambda number: (lock, number), [1]))


@pytest.mark.parametrize(
    "settings",
    [{"n_workers": -1}, {"queue_depth": -1}, {"cpus_per_worker": -1.0}, {"gpus_per_worker": -0.5}],
)
def test_ray_engine__negative_settings(settings):
    with pytest.raises(ConfigError, match="must be at least 0"):
        RayEngine(**settings)
