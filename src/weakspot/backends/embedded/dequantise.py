"""Turn a dynamically quantised ONNX graph into a float32 one.

On processors with AVX2 but without VNNI the int8 kernels of onnxruntime add
pairs of products in 16 bits and overflow, and everywhere the run-time scale is
taken over the whole batch, so the answer for one image depends on its
neighbours. A float32 graph with the same weights has neither fault.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ModelError


@dataclass(frozen=True)
class _Product:
    """One quantised matrix product and the nodes that only it needs."""

    last: Any
    drop: tuple[Any, ...]
    activations: str
    weights: FloatArray


class _Graph:
    """Look-ups by tensor name."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        self.constants: dict[str, AnyArray] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        self.maker = {name: node for node in graph.node for name in node.output}
        self.takers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self.takers.setdefault(name, []).append(node)

    def only_taker(self, name: str, kind: str) -> Any:
        takers = self.takers.get(name, [])
        if len(takers) != 1 or takers[0].op_type != kind:
            raise _unlike(f"{name} should feed one {kind}", [node.op_type for node in takers])
        return takers[0]


def dequantise_file(source: Path, target: Path) -> int:
    """Write the float32 form of a dynamically quantised ONNX file, in one atomic step.

    Args:
        source: ONNX file with `DynamicQuantizeLinear` and `MatMulInteger` nodes.
        target: Where the float32 file goes; its folder is made.

    Returns:
        How many matrix products were replaced.
    """
    import onnx

    model = onnx.load(str(source))
    replaced = dequantise(model)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        onnx.save(model, str(partial))
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return replaced


def dequantise(model: Any) -> int:
    """Replace every quantised matrix product of a model by a float32 one, in place.

    The pattern is `DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul`, where
    the `Mul` brings in the product of the activation scale and the weight scale.
    Weight scales may be one per tensor or one per column.

    Returns:
        How many matrix products were replaced.
    """
    from onnx import helper, numpy_helper

    look_up = _Graph(model.graph)
    products = [
        _product(node, look_up) for node in model.graph.node if node.op_type == "MatMulInteger"
    ]
    if not products:
        raise ModelError(
            "The graph holds no dynamically quantised matrix product.",
            fix="Use the graph as it is.",
        )
    replacement: dict[str, Any] = {}
    for number, product in enumerate(products):
        name = f"float_weights_{number}"
        model.graph.initializer.append(numpy_helper.from_array(product.weights, name))
        outputs = list(product.last.output)
        replacement[outputs[0]] = helper.make_node(
            "MatMul", [product.activations, name], outputs, name=f"float_product_{number}"
        )
    dropped = {node.output[0] for product in products for node in product.drop}
    nodes = [
        replacement.get(node.output[0], node)
        for node in model.graph.node
        if node.output[0] not in dropped
    ]
    _set_nodes(model.graph, nodes)
    return len(products)


def _product(node: Any, look_up: _Graph) -> _Product:
    quantiser = look_up.maker.get(node.input[0])
    if quantiser is None or quantiser.op_type != "DynamicQuantizeLinear":
        raise _unlike("the left side of a MatMulInteger should be quantised at run time", node.name)
    cast = look_up.only_taker(node.output[0], "Cast")
    last = look_up.only_taker(cast.output[0], "Mul")
    scale_name = next(name for name in last.input if name != cast.output[0])
    scale_maker = look_up.maker.get(scale_name)
    constants = [
        name for name in (scale_maker.input if scale_maker else ()) if name in look_up.constants
    ]
    if scale_maker is None or scale_maker.op_type != "Mul" or len(constants) != 1:
        raise _unlike("the scale should be the activation scale times a constant", scale_name)
    quantised = look_up.constants.get(node.input[1])
    if quantised is None:
        raise _unlike("the right side of a MatMulInteger should be constant", node.input[1])
    zero = (
        look_up.constants[node.input[3]]
        if len(node.input) > _ZERO_POINT_INPUT and node.input[3]
        else np.zeros(1)
    )
    weights = (quantised.astype(np.float32) - zero.astype(np.float32)) * look_up.constants[
        constants[0]
    ].astype(np.float32)
    return _Product(
        last,
        (node, cast, scale_maker),
        quantiser.input[0],
        np.ascontiguousarray(weights, dtype=np.float32),
    )


_ZERO_POINT_INPUT = 3


def _set_nodes(graph: Any, nodes: Iterable[Any]) -> None:
    """Keep only the nodes and constants that an output still needs."""
    kept: list[Any] = []
    needed = {output.name for output in graph.output}
    for node in reversed(list(nodes)):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:]
    graph.node.extend(reversed(kept))
    del graph.initializer[:]
    graph.initializer.extend(constants)


def _unlike(what: str, given: object) -> ModelError:
    fix = "Use a float32 export of the model."
    return ModelError(
        f"The quantised graph is not of the known form: {what}.", given=given, fix=fix
    )
