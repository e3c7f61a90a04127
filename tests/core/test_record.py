import numpy as np
import pytest
from pydantic import ValidationError

from weakspot.core.record import PackedArray, Record


def test_packed_array__gives_back_shape_and_numbers():
    packed = PackedArray.of(np.array([[1.0, -2.5, 0.1], [3.0, 4.0, 1e-20]]))
    assert packed.shape == (2, 3)
    assert packed.values.dtype == np.float32
    assert (
        packed.values.tolist()
        == np.array([[1.0, -2.5, 0.1], [3.0, 4.0, 1e-20]], dtype=np.float32).tolist()
    )


def test_packed_array__is_little_endian_text():
    packed = PackedArray.of(np.array([1.0, 2.0]))
    # 1.0 and 2.0 as IEEE 754: 0x3f800000 and 0x40000000, lowest byte first.
    assert packed.data == "AACAPwAAAEA="
    assert PackedArray(shape=(2,), data="AACAPwAAAEA=").values.tolist() == [1.0, 2.0]


def test_packed_array__survives_json_and_compares_by_content():
    packed = PackedArray.of(np.arange(6, dtype=np.int64).reshape(2, 3))
    again = PackedArray.model_validate_json(packed.model_dump_json())
    assert again == packed
    assert again != PackedArray.of(np.arange(6).reshape(3, 2))
    assert again.values.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_packed_array__is_for_reading_only():
    packed = PackedArray.of(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        packed.values[0] = 1.0
    with pytest.raises(ValidationError):
        packed.shape = (1,)


def test_packed_array__takes_views_and_empty_arrays():
    view = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    assert PackedArray.of(view).values.tolist() == view.tolist()
    assert PackedArray.of(np.zeros((0, 4))).values.shape == (0, 4)


def test_packed_array__keeps_its_data_out_of_its_text():
    assert repr(PackedArray.of(np.zeros(2))) == "PackedArray(shape=(2,))"


class _Status(Record):
    status: str


def test_record__unknown_names_are_refused():
    with pytest.raises(ValidationError, match="doom"):
        _Status.model_validate({"status": "gone", "doom": "x"})
