"""What stored records have in common."""

import base64
from functools import lru_cache

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from weakspot.core.arrays import AnyArray, FloatArray


class Record(BaseModel):
    """Base of stored records: frozen, closed, the same in JSON and in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class PackedArray(Record):
    """Many numbers inside a record, as text that costs a quarter of what written-out numbers cost.

    Args:
        shape: of the array.
        data: little-endian 32-bit floating-point numbers in row order, base64.

    >>> PackedArray.of(np.array([[1.0, 2.5]])).values.tolist()
    [[1.0, 2.5]]
    """

    shape: tuple[int, ...]
    data: str = Field(repr=False)

    @classmethod
    def of(cls, values: AnyArray) -> "PackedArray":
        numbers = np.ascontiguousarray(values, dtype="<f4")
        return cls(shape=numbers.shape, data=base64.b64encode(numbers.tobytes()).decode("ascii"))

    @property
    def values(self) -> FloatArray:
        """Return the array, for reading only."""
        return _unpack(self.data, self.shape)


@lru_cache(maxsize=256)
def _unpack(data: str, shape: tuple[int, ...]) -> FloatArray:
    return np.frombuffer(base64.b64decode(data), dtype="<f4").reshape(shape)
