import hashlib

import numpy as np
import pytest

from weakspot.backends.embedded_default import PROJECTION_PATH
from weakspot.backends.self_test import KNOWN_VECTOR, cosine_of, known_picture, require_known_vector
from weakspot.core.errors import ModelError
from weakspot.core.projection import TextProjection, read_arrays


def test_known_picture__same_bytes_everywhere() -> None:
    picture = known_picture()

    assert picture.shape == (224, 224, 3)
    assert picture[48, 170].tolist() == [250, 220, 60]
    assert picture[150, 110].tolist() == [190, 40, 35]
    assert hashlib.sha256(picture.tobytes()).hexdigest() == "488f18106e29e1c335a3b153c8c9c01d6e8f5a80356aaa6e2d621463fc70726e"


def test_require_known_vector__near_enough() -> None:
    assert require_known_vector(np.array([1.0, 0.1]), np.array([2.0, 0.2]), where="tower.onnx") == pytest.approx(1.0)


def test_require_known_vector__another_vector_is_refused() -> None:
    with pytest.raises(ModelError, match=r"cosine 0\.800, not >= 0\.99.*tower\.onnx"):
        require_known_vector(np.array([0.8, 0.6]), np.array([1.0, 0.0]), where="tower.onnx")


def test_require_known_vector__not_a_number_is_refused() -> None:
    with pytest.raises(ModelError, match="cosine nan"):
        require_known_vector(np.array([np.nan, 1.0]), np.array([1.0, 0.0]), where="tower.onnx")


def test_cosine_of__right_angle() -> None:
    assert cosine_of(np.array([1.0, 0.0]), np.array([0.0, 3.0])) == 0.0


def test_shipped_weights__hold_the_known_vector_and_fit_the_models() -> None:
    projection = TextProjection.load(PROJECTION_PATH)

    assert (projection.sentence_dimension, projection.dimension) == (384, 512)
    assert PROJECTION_PATH.stat().st_size < 4_000_000
    known = read_arrays(PROJECTION_PATH)[KNOWN_VECTOR]
    assert known.shape == (512,)
    assert np.linalg.norm(known) == pytest.approx(1.0, abs=1e-5)
