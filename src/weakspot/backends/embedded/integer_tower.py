"""The CLIP image tower in 8-bit integers: two to three times as fast as float32 where the processor has instructions for it.

The weights are those of the registry file. What makes it right (decision 035): every token is quantised with a scale of its own; a
shift that ships with weakspot is taken from each channel and put back through the biases, which costs nothing; the few channels that
are far larger than the others are divided by small whole numbers, and their weights multiplied. The last layer is computed for the
one token that becomes the embedding.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.embedded.integer_products import MICROSOFT, GraphBuilder, Product
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ModelError
from weakspot.core.projection import read_arrays

RANGES_PATH = Path(__file__).parent / "weights" / "integer_tower.npz"
HEAD_SIZE = 64
EPSILON = 1e-5
GRAPH_NUMBER = (
    2  # higher with every change of the graph, so that files of the one before are not taken
)
ZERO_AFTER_GELU = 24  # its values go down to -0.17 and up to 40
_PREFIX = "vision_model."


@dataclass(frozen=True, kw_only=True)
class TowerWeights:
    """A CLIP image tower.

    Args:
        arrays: what stays float32, by its name in transformers without `vision_model.`.
        products: the weights of matrix products, by name.
        projection: from the last layer to the embedding [width, d].
    """

    arrays: dict[str, FloatArray]
    products: dict[str, Product]
    projection: FloatArray

    @property
    def n_layers(self) -> int:
        return sum(name.endswith("mlp.fc1") for name in self.products)

    @property
    def width(self) -> int:
        return len(self.arrays["embeddings.class_embedding"])

    @property
    def n_tokens(self) -> int:
        return len(self.arrays["embeddings.position_embedding.weight"])


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """What is known of the activations in front of products, by `layer.place`; nothing is known of places that are left out.

    Args:
        shifts: the middle of every channel [k].
        factors: whole numbers that channels are divided by [k].
    """

    shifts: dict[str, FloatArray]
    factors: dict[str, FloatArray]

    @classmethod
    def load(cls, path: Path = RANGES_PATH) -> "Ranges":
        stored = read_arrays(path)
        places = [str(name) for name in stored["places"]]
        shifts = stored["shift_codes"].astype(np.float32) * stored["shift_steps"][:, None]
        factors = stored["factors"].astype(np.float32)
        return cls(
            shifts=dict(zip(places, shifts, strict=True)),
            factors=dict(zip(places, factors, strict=True)),
        )

    def shift(self, place: str, width: int) -> FloatArray:
        return self.shifts.get(place, np.zeros(width, dtype=np.float32))

    def factor(self, place: str, width: int) -> FloatArray:
        return self.factors.get(place, np.ones(width, dtype=np.float32))


def write_integer_tower(source: Path, target: Path) -> None:
    """Write the 8-bit tower of a dynamically quantised registry file, in one atomic step."""
    import onnx

    model = integer_tower(read_tower(onnx.load(str(source))), Ranges.load())
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        onnx.save(model, str(partial))
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read_tower(model: Any) -> TowerWeights:
    """Return the weights of a quantised ONNX export of transformers' CLIP image tower."""
    from onnx import numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    products: dict[str, Product] = {}
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            name = node.name.strip("/").removesuffix("/MatMul_quant").replace("/", ".")
            products[name.removeprefix(_PREFIX)] = _product(node, constants)
    projection = products.pop("visual_projection", None)
    if projection is None or not products:
        raise ModelError("The graph is no quantised CLIP image tower.", given=sorted(products))
    arrays = {
        name.removeprefix(_PREFIX): np.asarray(value)
        for name, value in constants.items()
        if name.startswith(_PREFIX)
    }
    return TowerWeights(arrays=arrays, products=products, projection=projection.values)


def _product(node: Any, constants: dict[str, AnyArray]) -> Product:
    codes = constants[node.input[1]]
    scale = constants[node.input[1].removesuffix("_quantized") + "_scale"]
    zero = constants[node.input[3]]
    if codes.dtype != np.int8 or zero.any():
        raise ModelError("The weights of the tower are not symmetric int8.", given=node.name)
    return Product(codes=codes, scale=np.broadcast_to(scale, codes.shape[1:]))


def integer_tower(weights: TowerWeights, ranges: Ranges) -> Any:
    """Return the ONNX model of a tower in 8-bit integers: `pixel_values` [n, 3, h, w] to `image_embeds` [n, d]."""
    return _Tower(weights, ranges).model()


class _Tower:
    """Builds the graph, layer by layer; activations are [n * tokens, width] throughout."""

    def __init__(self, weights: TowerWeights, ranges: Ranges) -> None:
        self.weights = weights
        self.ranges = ranges
        self.graph = GraphBuilder()

    def model(self) -> Any:
        from onnx import TensorProto, helper

        patch = self.weights.arrays["embeddings.patch_embedding.weight"].shape[-1]
        side = patch * round((self.weights.n_tokens - 1) ** 0.5)
        tokens = self._embed_patches(patch)
        normal = self._norm(tokens, *self._norm_before(0))
        for layer in range(self.weights.n_layers - 1):
            normal, tokens = self._layer(layer, normal, tokens)
        normal = self._last_layer(normal, tokens)
        embeds = self.graph.add("MatMul", [normal, self._float(self.weights.projection)])
        self.graph.nodes.append(helper.make_node("Identity", [embeds], ["image_embeds"]))
        d = self.weights.projection.shape[1]
        return self.graph.model(
            given=helper.make_tensor_value_info(
                "pixel_values", TensorProto.FLOAT, ["batch", 3, side, side]
            ),
            found=helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["batch", d]),
        )

    def _embed_patches(self, patch: int) -> str:
        graph, width, n_tokens = self.graph, self.weights.width, self.weights.n_tokens
        kernel = self._float(self._array("embeddings.patch_embedding.weight"))
        grid = graph.add(
            "Conv", ["pixel_values", kernel], strides=[patch] * 2, kernel_shape=[patch] * 2
        )
        flat = graph.add("Reshape", [grid, graph.shape(0, width, n_tokens - 1)])
        patches = graph.add("Transpose", [flat], perm=[0, 2, 1])
        n_images = graph.add("Shape", ["pixel_values"], start=0, end=1)
        first = self._float(self._array("embeddings.class_embedding").reshape(1, 1, width))
        shape = graph.add("Concat", [n_images, graph.shape(1, width)], axis=0)
        tokens = graph.add("Concat", [graph.add("Expand", [first, shape]), patches], axis=1)
        places = self._float(self._array("embeddings.position_embedding.weight")[None])
        placed = graph.add("Add", [tokens, places])
        gain, bias = self._array("pre_layrnorm.weight"), self._array("pre_layrnorm.bias")
        return graph.add("Reshape", [self._norm(placed, gain, bias), graph.shape(-1, width)])

    def _layer(self, layer: int, normal: str, tokens: str) -> tuple[str, str]:
        names = [f"encoder.layers.{layer}.self_attn.{part}_proj" for part in "qkv"]
        query, *others = (self.weights.products[name] for name in names)
        rows = self.graph.multiply(
            normal, query.beside(*others).with_rows_times(self._factor(f"{layer}.qkv"))
        )
        width, n_tokens = self.weights.width, self.weights.n_tokens
        parts = self.graph.add_several("Split", [rows], (True,) * 3, axis=1, num_outputs=3)
        seen = self._attend(layer, [self._by_image(part, n_tokens) for part in parts])
        name = f"encoder.layers.{layer}.self_attn.out_proj"
        added = self.graph.multiply(
            self.graph.add("Reshape", [seen, self.graph.shape(-1, width)]),
            self.weights.products[name],
        )
        bias = self._bias(name, f"{layer}.out")
        normal, tokens = self._add_and_norm(
            added, tokens, bias, self._norm_inside(layer, f"{layer}.fc1")
        )
        return self._perceptron(layer, normal, tokens)

    def _perceptron(self, layer: int, normal: str, tokens: str) -> tuple[str, str]:
        graph, name = self.graph, f"encoder.layers.{layer}.mlp."
        wide = self.weights.products[name + "fc1"].with_rows_times(self._factor(f"{layer}.fc1"))
        bias = self._float(self._bias(name + "fc1", f"{layer}.fc1"))
        active = self._gelu(graph.add("Add", [graph.multiply(normal, wide), bias]))
        added = graph.multiply(active, self.weights.products[name + "fc2"], zero=ZERO_AFTER_GELU)
        return self._add_and_norm(
            added, tokens, self._array(name + "fc2.bias"), self._norm_before(layer + 1)
        )

    def _last_layer(self, normal: str, tokens: str) -> str:
        """Add the last layer for the first token of every image, in float32 but for keys and values, which all tokens have."""
        layer = self.weights.n_layers - 1
        name, graph = f"encoder.layers.{layer}.", self.graph
        query, key, value = (
            self.weights.products[f"{name}self_attn.{part}_proj"] for part in "qkv"
        )
        factor = self._factor(f"{layer}.qkv")
        rows = graph.multiply(normal, key.beside(value).with_rows_times(factor))
        parts = graph.add_several("Split", [rows], (True,) * 2, axis=1, num_outputs=2)
        others = [self._by_image(part, self.weights.n_tokens) for part in parts]
        weights = self._float(query.values * factor[:, None])
        asked = graph.add("MatMul", [self._first_tokens(normal), weights])
        seen = self._attend(layer, [self._by_image(asked, 1), *others])
        seen = graph.add("Reshape", [seen, graph.shape(-1, self.weights.width)])
        normal, tokens = self._add_and_norm(
            self._multiply_exactly(seen, name + "self_attn.out_proj"),
            self._first_tokens(tokens),
            self._bias(name + "self_attn.out_proj", f"{layer}.out"),
            (self._array(name + "layer_norm2.weight"), self._array(name + "layer_norm2.bias")),
        )
        bias = self._float(self._array(name + "mlp.fc1.bias"))
        wide = graph.add("Add", [self._multiply_exactly(normal, name + "mlp.fc1"), bias])
        added = self._multiply_exactly(self._gelu(wide), name + "mlp.fc2")
        after = self._array("post_layernorm.weight"), self._array("post_layernorm.bias")
        bias_after = self._array(name + "mlp.fc2.bias")
        return self._add_and_norm(added, tokens, bias_after, after)[0]

    def _attend(self, layer: int, parts: Iterable[str]) -> str:
        """Add attention [n, tokens, width]; the shift of its output is taken from the values, as the weights of every token add up to 1."""
        names = [f"encoder.layers.{layer}.self_attn.{part}_proj" for part in "qkv"]
        biases = [self._bias(name, f"{layer}.qkv") for name in names]
        biases[2] = biases[2] - self._shift(f"{layer}.out")
        return self.graph.add(
            "MultiHeadAttention",
            [*parts, self._float(np.concatenate(biases))],
            domain=MICROSOFT,
            num_heads=self.weights.width // HEAD_SIZE,
        )

    def _add_and_norm(
        self, added: str, tokens: str, bias: FloatArray, norm: tuple[FloatArray, FloatArray]
    ) -> tuple[str, str]:
        """Return the normalised sum and the sum itself.

        Not as onnxruntime's SkipLayerNormalization, which takes seven times as long on a processor; a `Sum` is not fused into one.
        """
        total = self.graph.add("Sum", [added, tokens, self._float(bias)])
        return self._norm(total, *norm), total

    def _norm_before(self, layer: int) -> tuple[FloatArray, FloatArray]:
        return self._norm_inside(layer, f"{layer}.qkv", "layer_norm1")

    def _norm_inside(
        self, layer: int, place: str, norm: str = "layer_norm2"
    ) -> tuple[FloatArray, FloatArray]:
        """Return gain and bias of a layer norm whose output is shifted and divided for the product after it."""
        name, factor = f"encoder.layers.{layer}.{norm}.", self._factor(place)
        bias = self._array(name + "bias") - self._shift(place)
        return self._array(name + "weight") / factor, bias / factor

    def _bias(self, name: str, place: str) -> FloatArray:
        """Return the bias of a product with what the shift of its input takes away."""
        lost = self._shift(place) @ self.weights.products[name].values
        return np.asarray(self._array(name + ".bias") + lost, dtype=np.float32)

    def _norm(self, tokens: str, gain: FloatArray, bias: FloatArray) -> str:
        given = [tokens, self._float(gain), self._float(bias)]
        return self.graph.add("LayerNormalization", given, epsilon=EPSILON, axis=-1)

    def _gelu(self, rows: str) -> str:
        return self.graph.add("QuickGelu", [rows], domain=MICROSOFT, alpha=1.702)

    def _multiply_exactly(self, rows: str, name: str) -> str:
        return self.graph.add("MatMul", [rows, self._float(self.weights.products[name].values)])

    def _by_image(self, rows: str, n_tokens: int) -> str:
        return self.graph.add("Reshape", [rows, self.graph.shape(-1, n_tokens, self.weights.width)])

    def _first_tokens(self, rows: str) -> str:
        by_image = self._by_image(rows, self.weights.n_tokens)
        return self.graph.add("Gather", [by_image, self.graph.constant(0, np.int64)], axis=1)

    def _array(self, name: str) -> FloatArray:
        return self.weights.arrays[name]

    def _float(self, value: AnyArray) -> str:
        return self.graph.constant(value)

    def _shift(self, place: str) -> FloatArray:
        return self.ranges.shift(place, self.weights.width)

    def _factor(self, place: str) -> FloatArray:
        return self.ranges.factor(place, self.weights.width)
