import numpy as np
import onnxruntime

from weakspot.core.heads import Head
from weakspot.project.demo import SIDE, network, prototypes, untrained_head


def _outputs(head: Head, pixels: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(network(head), providers=["CPUExecutionProvider"])
    return session.run(None, {"pixels": pixels})[0]


def test_network__untrained_head_is_undecided():
    pixels = np.full((2, 3, SIDE, SIDE), 0.5, np.float32)
    np.testing.assert_allclose(
        _outputs(untrained_head(4), pixels), np.full((2, 4), 0.25), atol=1e-6
    )


def test_network__features_are_colour_shares():
    """A head that reads one colour only answers to images of that colour."""
    green = int(np.argmin(((prototypes() - [0.1, 0.9, 0.1]) ** 2).sum(axis=1)))
    weights = np.zeros((2, len(prototypes())), np.float32)
    weights[1, green] = 1.0
    head = Head(weights=weights, bias=np.zeros(2, np.float32))
    pixels = np.zeros((2, 3, SIDE, SIDE), np.float32)
    pixels[0] = np.array([0.1, 0.9, 0.1])[:, None, None]
    pixels[1] = np.array([0.9, 0.1, 0.1])[:, None, None]
    answers = _outputs(head, pixels)
    # The feature of an image in one prototype colour is 8, hence a logit of 8 against 0.
    assert answers[0, 1] > 0.999
    assert abs(answers[1, 1] - 0.5) < 0.01
