"""The single-precision solver against a slow one in double precision."""

import numpy as np
import pytest
from tests.build import trained


@pytest.mark.parametrize(
    ("size", "shape", "penalty"),
    [
        *(
            pytest.param((800, 20, 6), {"decay": decay}, penalty, id=f"{decay}-{penalty}")
            for decay in (0.5, 2.0)
            for penalty in (1e-4, 1e-2)
        ),
        pytest.param((900, 10, 70), {"apart": 0.8}, 1e-3, id="many classes: cheap curvature"),
        pytest.param((60, 90, 3), {}, 1e-2, id="more features than samples: not turned"),
    ],
)
def test_train__loss_is_that_of_double_precision(make_features, reference, size, shape, penalty):
    features, codes = make_features(*size, **shape)
    weights = np.where(codes == 1, 8.0, 1.0)
    found = trained(features, codes, weights, trainer={"penalty": penalty})
    slow = reference(features, np.eye(size[2], dtype=bool)[codes], weights, penalty=penalty)
    lowest = slow.lowest()
    assert found.has_converged
    assert found.loss == pytest.approx(lowest, rel=1e-5)
    assert slow.of_head(found.head) == pytest.approx(lowest, rel=1e-5)


def test_train__multi_label_loss_is_that_of_double_precision(make_features, reference):
    features, codes = make_features(600, 12, 5)
    targets = np.eye(5, dtype=bool)[codes] | np.eye(5, dtype=bool)[(codes * codes) % 5]
    found = trained(features, targets, trainer={"penalty": 1e-3}, is_multi_label=True)
    slow = reference(features, targets, np.ones(600), penalty=1e-3, is_softmax=False)
    assert slow.of_head(found.head) == pytest.approx(slow.lowest(), rel=1e-5)


@pytest.mark.parametrize(
    ("size", "apart", "further", "penalty", "close"),
    [
        pytest.param((400, 8, 4), 0.4, 4096.0, 1e-3, 1e-5, id="far from zero"),
        pytest.param((200, 30, 3), 2.0, 0.0, 1e-5, 1e-3, id="a loss near zero"),
    ],
)
def test_train__single_precision_suffices(
    make_features, reference, size, apart, further, penalty, close
):
    features, codes = make_features(*size, apart=apart)
    far = (features + np.float32(further)).astype(np.float32)
    slow = reference(far, np.eye(size[2], dtype=bool)[codes], np.ones(size[0]), penalty=penalty)
    lowest = slow.lowest()
    assert further or lowest < 2e-3
    assert trained(far, codes, trainer={"penalty": penalty}).loss == pytest.approx(
        lowest, rel=close
    )
