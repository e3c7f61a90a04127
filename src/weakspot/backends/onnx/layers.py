"""Small ONNX graphs of convolutions, built layer by layer from arrays."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weakspot.core.arrays import AnyArray

INPUT = "images"
OPSET = 17
IR_VERSION = 8
SIX = 6.0
Activation = Literal["", "relu", "relu6"]


class LayeredGraph:
    """A graph that takes float32 images [n, 3, h, w]; every method adds a layer and returns the name of what it gives.

    Args:
        arrays: weights by name, as torch names them.
        epsilon: added to the variance where batch normalisation is folded into a convolution.
    """

    def __init__(self, arrays: Mapping[str, AnyArray], *, epsilon: float) -> None:
        self._arrays = arrays
        self._epsilon = epsilon
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def convolve(
        self,
        given: str,
        weights: str,
        normalised: str,
        *,
        stride: int = 1,
        same: bool = False,
        activation: Activation = "",
    ) -> str:
        """Add a convolution with its batch normalisation folded in.

        Args:
            given: what it takes.
            weights: name of its layer.
            normalised: name of the layer of batch normalisation behind it.
            stride: step.
            same: padding as TensorFlow does it, more at the end than at the beginning, instead of half a kernel on each side.
            activation: what follows it.
        """
        kernel = np.asarray(self._arrays[f"{weights}.weight"], dtype=np.float32)
        mean, variance, scale, shift = (
            np.asarray(self._arrays[f"{normalised}.{name}"], dtype=np.float64)
            for name in ("running_mean", "running_var", "weight", "bias")
        )
        factor = scale / np.sqrt(variance + self._epsilon)
        inputs = [
            given,
            self._constant((kernel * factor[:, None, None, None]).astype(np.float32)),
            self._constant((shift - mean * factor).astype(np.float32)),
        ]
        side = kernel.shape[2]
        padding: dict[str, Any] = (
            {"auto_pad": "SAME_UPPER"} if same else {"pads": [(side - 1) // 2] * 4}
        )
        is_depthwise = kernel.shape[1] == 1
        made = self._add(
            "Conv",
            inputs,
            strides=[stride, stride],
            group=len(kernel) if is_depthwise else 1,
            **padding,
        )
        return self.activate(made, activation)

    def activate(self, given: str, activation: Activation) -> str:
        if activation == "relu6":
            ends = [self._constant(np.float32(0.0)), self._constant(np.float32(SIX))]
            return self._add("Clip", [given, *ends])
        return self._add("Relu", [given]) if activation == "relu" else given

    def add(self, first: str, second: str) -> str:
        return self._add("Add", [first, second])

    def pool(self, given: str) -> str:
        """Add the mean over all places: [n, c]."""
        return self._add("Flatten", [self._add("GlobalAveragePool", [given])])

    def linear(self, given: str, weights: AnyArray, bias: AnyArray | None = None) -> str:
        """Add scores [n, c] from weights [c, d]."""
        constants = [self._constant(np.ascontiguousarray(weights, dtype=np.float32))]
        if bias is not None:
            constants.append(self._constant(np.asarray(bias, dtype=np.float32)))
        return self._add("Gemm", [given, *constants], transB=1)

    def softmax(self, given: str) -> str:
        return self._add("Softmax", [given], axis=1)

    def write(self, path: Path, outputs: Sequence[str], *, side: int) -> None:
        """Write the graph in one atomic step, with these outputs in this order."""
        import onnx
        from onnx import TensorProto, helper

        images = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", 3, side, side])
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "layers", [images], given, self._constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            onnx.save(model, str(partial))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def _constant(self, values: Any) -> str:
        from onnx import numpy_helper

        name = f"weights_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _add(self, kind: str, inputs: Sequence[str], **settings: Any) -> str:
        from onnx import helper

        name = f"layer_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **settings))
        return name
