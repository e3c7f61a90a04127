"""Matrix products in 8-bit integers whose every row has a scale of its own.

onnxruntime quantises activations with one scale for the whole batch, so that one large value anywhere costs precision everywhere and an
image's embedding depends on its neighbours. Here every row is divided by its own largest value first and multiplied back afterwards.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray

MICROSOFT = "com.microsoft"
MIDDLE = 128  # zero of values that may have either sign
TOP = 255
SMALLEST_SCALE = 1e-9
LARGEST_CODE = 127


@dataclass(frozen=True, kw_only=True)
class Product:
    """Weights of a matrix product.

    Args:
        codes: int8 [k, n].
        scale: what one step of a column is worth [n].
    """

    codes: AnyArray
    scale: FloatArray

    @property
    def values(self) -> FloatArray:
        """The weights in float32 [k, n]."""
        return np.asarray(self.codes.astype(np.float32) * self.scale, dtype=np.float32)

    def beside(self, *others: "Product") -> "Product":
        """Return the product that gives the columns of this one and then those of the others."""
        return Product(
            codes=np.concatenate([self.codes, *(one.codes for one in others)], axis=1),
            scale=np.concatenate([self.scale, *(one.scale for one in others)]),
        )

    def with_rows_times(self, factor: FloatArray) -> "Product":
        """Return the weights for inputs that were divided by a factor [k]; exact for whole factors wherever codes stay within int8."""
        larger = self.codes.astype(np.float32) * factor[:, None]
        excess = np.maximum(np.abs(larger).max(axis=0) / LARGEST_CODE, 1.0).astype(np.float32)
        codes = np.round(larger / excess).astype(np.int8)
        return Product(codes=codes, scale=np.asarray(self.scale * excess, dtype=np.float32))


class GraphBuilder:
    """Nodes and constants of an ONNX graph, in the order in which they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return name

    def shape(self, *sides: int) -> str:
        return self.constant(sides, np.int64)

    def add(self, operation: str, inputs: list[str], *, domain: str = "", **attributes: Any) -> str:
        return self.add_several(operation, inputs, (True,), domain=domain, **attributes)[0]

    def add_several(
        self,
        operation: str,
        inputs: list[str],
        wanted: tuple[bool, ...],
        *,
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Add a node with several outputs; those that nobody wants have no name."""
        from onnx import helper

        name = f"{operation}_{len(self.nodes)}"
        outputs = [f"{name}_{place}" if used else "" for place, used in enumerate(wanted)]
        self.nodes.append(
            helper.make_node(operation, inputs, outputs, name=name, domain=domain, **attributes)
        )
        return outputs

    def multiply(self, rows: str, product: Product, *, zero: int = MIDDLE) -> str:
        """Add the product of float32 rows [m, k] with 8-bit weights [m, n].

        Args:
            rows: name of the input.
            product: the weights.
            zero: code that stands for 0; `MIDDLE` unless negative values are known to be small.
        """
        scale = self._row_scale(rows, zero)
        flat = self.add("Reshape", [scale, self.shape(-1)])
        zeros = self.add("Expand", [self.constant([zero], np.uint8), self.add("Shape", [flat])])
        codes = self.add("QuantizeLinear", [rows, flat, zeros], axis=0)
        weights = [self.constant(product.codes, np.int8), self.constant(1.0)]
        column_scale = [self.constant(product.scale), self.constant(zero, np.uint8)]
        sums = self.add("MatMulIntegerToFloat", [codes, *weights, *column_scale], domain=MICROSOFT)
        return self.add("Mul", [sums, scale])

    def _row_scale(self, rows: str, zero: int) -> str:
        axis = self.shape(1)
        highest = self.add("ReduceMax", [rows, axis], keepdims=1)
        lowest = self.add("ReduceMin", [rows, axis], keepdims=1)
        above = self.add("Mul", [highest, self.constant([1.0 / (TOP - zero)])])
        below = self.add("Mul", [lowest, self.constant([-1.0 / zero])])
        return self.add("Max", [above, below, self.constant([SMALLEST_SCALE])])

    def model(self, *, given: Any, found: Any) -> Any:
        """Return the ONNX model with one input and one output."""
        from onnx import helper

        graph = helper.make_graph(self.nodes, "weakspot", [given], [found], self.constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)
