import socket
import sys

import pytest

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.data.engine.cluster import _share_of_smallest, connect_ray, load_ray


def test_load_ray__not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[ray\]"):
        load_ray(loopback_only=True)


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}"])
def test_connect_ray__nobody_listens(address):
    load_ray(loopback_only=True).shutdown()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        given = address.format(port=reserved.getsockname()[1])
        with pytest.raises(
            UnavailableError, match="No Ray cluster could be reached.*ray start --head"
        ):
            connect_ray(given)


@pytest.mark.parametrize(
    ("machines", "gpus", "cores"),
    [
        ([], 0.0, 1.0),
        ([{"memory": 1.0}, {"CPU": 8.0}, {"CPU": 2.0}], 0.0, 2.0),
        ([{"CPU": 64.0}, {"CPU": 32.0, "GPU": 4.0}, {"CPU": 48.0, "GPU": 4.0}], 1.0, 8.0),
        ([{"CPU": 32.0, "GPU": 4.0}], 0.5, 4.0),
        ([{"CPU": 2.0, "GPU": 8.0}], 1.0, 1.0),
        ([{"CPU": 16.0}], 1.0, 1.0),
    ],
)
def test_share_of_smallest__cores_are_shared_among_graphics_processors(machines, gpus, cores):
    assert _share_of_smallest(machines, gpus) == cores
