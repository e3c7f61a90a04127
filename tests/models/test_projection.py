import numpy as np
import pytest

from weakspot.core.errors import ModelError
from weakspot.models.text_side import TextProjection, read_arrays


def small_projection() -> TextProjection:
    """Two sentence dimensions to two image dimensions, one hidden unit."""
    return TextProjection(
        image_mean=np.array([0.5, 0.0], dtype=np.float32),
        text_mean=np.array([1.0, 0.0], dtype=np.float32),
        linear=np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32),
        bias=np.array([0.0, 1.0], dtype=np.float32),
        hidden_in=np.array([[1.0], [0.0]], dtype=np.float32),
        hidden_bias=np.array([0.0], dtype=np.float32),
        hidden_out=np.array([[0.0, 2.0]], dtype=np.float32),
    )


def test_apply__adds_the_linear_and_the_hidden_path() -> None:
    # (2, 0) less the mean is (1, 0); linear (1, 0), hidden 1 adds (0, 2), bias (0, 1): (1, 3).
    made = small_projection().apply(np.array([[2.0, 0.0]]))

    np.testing.assert_allclose(made, np.array([[1.0, 3.0]]) / np.sqrt(10.0), rtol=1e-6)


def test_apply__hidden_unit_is_silent_below_zero() -> None:
    # (0, 0) less the mean is (-1, 0); the hidden unit gives nothing: (-1, 1).
    made = small_projection().apply(np.array([[0.0, 0.0]]))

    np.testing.assert_allclose(made, np.array([[-1.0, 1.0]]) / np.sqrt(2.0), rtol=1e-6)


def test_apply__wrong_width() -> None:
    with pytest.raises(
        ModelError, match=r"sentence embeddings have the wrong shape.*\(1, 3\).*\[rows, 2\]"
    ):
        small_projection().apply(np.zeros((1, 3)))


def test_centre__scales_before_and_after() -> None:
    # (3, 4) has length 5: (0.6, 0.8) less (0.5, 0) is (0.1, 0.8).
    made = small_projection().centre(np.array([[3.0, 4.0]]))

    np.testing.assert_allclose(made, np.array([[0.1, 0.8]]) / np.sqrt(0.65), rtol=1e-5)


def test_uncentre__undoes_centre() -> None:
    images = np.array([[0.6, 0.8], [-0.8, 0.6], [0.0, -1.0]], dtype=np.float32)

    made = small_projection().uncentre(small_projection().centre(5.0 * images))

    np.testing.assert_allclose(made, images, atol=1e-6)


def test_text_projection__shapes_that_do_not_fit() -> None:
    with pytest.raises(ModelError, match="hidden_out"):
        TextProjection(
            image_mean=np.zeros(2, dtype=np.float32),
            text_mean=np.zeros(3, dtype=np.float32),
            linear=np.zeros((3, 2), dtype=np.float32),
            bias=np.zeros(2, dtype=np.float32),
            hidden_in=np.zeros((3, 4), dtype=np.float32),
            hidden_bias=np.zeros(4, dtype=np.float32),
            hidden_out=np.zeros((5, 2), dtype=np.float32),
        )


def test_save__then_load_gives_the_same_answers(tmp_path) -> None:
    path = tmp_path / "folder" / "text.npz"
    small_projection().save(path, extra={"known": np.array([1.0, 2.0], dtype=np.float32)})

    loaded = TextProjection.load(path)

    given = np.array([[2.0, 0.5], [0.0, -1.0]])
    np.testing.assert_array_equal(loaded.apply(given), small_projection().apply(given))
    assert read_arrays(path)["known"].tolist() == [1.0, 2.0]
    assert [entry.name for entry in path.parent.iterdir()] == ["text.npz"]


def test_load__file_without_all_arrays(tmp_path) -> None:
    np.savez(tmp_path / "text.npz", linear=np.zeros((2, 2)))

    with pytest.raises(ModelError, match=r"lacks arrays.*hidden_in"):
        TextProjection.load(tmp_path / "text.npz")


def test_read_arrays__pickled_objects_are_refused(tmp_path) -> None:
    np.savez(tmp_path / "text.npz", linear=np.array([{"a": 1}], dtype=object))

    with pytest.raises(ModelError, match="cannot be read"):
        read_arrays(tmp_path / "text.npz")


def test_read_arrays__not_an_archive(tmp_path) -> None:
    (tmp_path / "text.npz").write_bytes(b"PK\x03\x04 cut off")

    with pytest.raises(ModelError, match="cannot be read"):
        read_arrays(tmp_path / "text.npz")
