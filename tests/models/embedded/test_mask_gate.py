import numpy as np
import pytest

from weakspot.core.errors import ModelError
from weakspot.models.embedded.segmenter import Estimator, MaskGate


def test_estimator__is_an_overlap():
    network = Estimator(
        mean=np.array([1.0]),
        spread=np.array([2.0]),
        hidden=np.array([[1.0, -1.0]]),
        hidden_bias=np.array([0.0, 0.5]),
        out=np.array([3.0, -1.0]),
        out_bias=np.array([0.25]),
    )
    wanted = 3 * np.tanh(0.1) - np.tanh(0.4) + 0.25
    np.testing.assert_allclose(network(np.array([[1.2]])), [wanted], rtol=1e-5)
    assert network(np.array([[50.0], [-50.0]])).tolist() == [1.0, 0.0]


def test_load__what_ships():
    gate = MaskGate.load()
    assert gate.known.shape == (384,)
    assert 0.3 <= gate.least_quality < 0.9
    assert len(gate.quality.mean) > len(gate.choice.mean)


def test_load__file_of_something_else(tmp_path):
    np.savez(tmp_path / "other.npz", known=np.zeros(3))
    with pytest.raises(ModelError, match="lacks 'choice_mean'"):
        MaskGate.load(tmp_path / "other.npz")
