import socket
import sys

import pytest

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.engine.ray_session import connected_ray, loaded_ray


def test_loaded_ray__not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[ray\]"):
        loaded_ray(loopback_only=True)


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}"])
def test_connected_ray__nobody_listens(address):
    loaded_ray(loopback_only=True).shutdown()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        given = address.format(port=reserved.getsockname()[1])
        with pytest.raises(UnavailableError, match="No Ray cluster could be reached.*ray start --head"):
            connected_ray(given)
