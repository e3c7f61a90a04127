"""What an ONNX graph says of itself, and the same graph with another last linear layer, proven to be the same elsewhere."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.models.class_scores import in_kind, labels_in, not_verified, score_slack
from weakspot.models.loading import file_hash, first_line
from weakspot.models.onnx.session import CPU, make_session


def external_places(model: Any) -> list[str]:
    """Return the files, relative to the graph, in which a model's tensors are kept."""
    places = {
        entry.value
        for tensor in _tensors(model.graph)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sorted(places)


def readers(graph: Any) -> Counter[str]:
    """Return how often every tensor is read by a node, at any depth, or given as an output."""
    counts = Counter(output.name for output in graph.output)
    for node in graph.node:
        counts.update(node.input)
        for inner in _inner_graphs(node):
            counts.update(readers(inner))
    return counts


def names_in(graph: Any) -> set[str]:
    names = (
        set(readers(graph))
        | {tensor.name for tensor in graph.initializer}
        | {given.name for given in graph.input}
    )
    for node in graph.node:
        names.update(node.output)
        for inner in _inner_graphs(node):
            names |= names_in(inner)
    return names


def depending_on(graph: Any, name: str) -> set[str]:
    found = {name}
    for node in graph.node:
        read = set(node.input).union(*(names_in(inner) for inner in _inner_graphs(node)))
        if found & read:
            found.update(node.output)
    return found


def number_kind(graph: Any, name: str) -> int:
    kept = next((tensor for tensor in graph.initializer if tensor.name == name), None)
    if kept is not None:
        return int(kept.data_type)
    maker = next(node for node in graph.node if name in node.output)
    settings = {item.name: item for item in maker.attribute}
    if maker.op_type == "Constant":
        return int(settings["value"].t.data_type)
    return int(settings["to"].i) if maker.op_type == "Cast" else number_kind(graph, maker.input[0])


def _inner_graphs(node: Any) -> list[Any]:
    return [
        inner
        for item in node.attribute
        for inner in (*([item.g] if item.HasField("g") else ()), *item.graphs)
    ]


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for item in node.attribute:
            yield from (*([item.t] if item.HasField("t") else ()), *item.tensors)
        for inner in _inner_graphs(node):
            yield from _tensors(inner)


PASSED_THROUGH = frozenset(
    {
        "Softmax",
        "LogSoftmax",
        "Sigmoid",
        "Identity",
        "Flatten",
        "Reshape",
        "Squeeze",
        "Cast",
        "Dropout",
    }
)
GIVES_PROBABILITIES = frozenset({"Softmax", "Sigmoid"})
QUANTISED = frozenset(
    {
        "DequantizeLinear",
        "QuantizeLinear",
        "QLinearMatMul",
        "QGemm",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul",
        "MatMulNBits",
        "DynamicQuantizeLinear",
    }
)
ROUNDING = {"float64": 2.3e-16, "float16": 9.8e-4, "bfloat16": 7.9e-3}
LABEL_KEYS = ("class_names", "labels", "classes", "names", "id2label")
_MATRIX = 2


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """The image input of a graph; None where the graph leaves a size open."""

    name: str
    dtype: str
    batch: int | None
    channels: int | None
    height: int | None
    width: int | None
    layout: str


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearLayer:
    """The last linear layer: scores = features @ weights.T + bias, weights [c, d].

    Args:
        feature_name: the tensor that it reads.
        weights: [c, d], scaled as the graph scales them.
        bias: [c], zeros if the graph has none.
        product: output of the Gemm or MatMul node.
        total: output of the Add node behind a MatMul, or None.
        kind: the kind of number that weights are kept in.
    """

    feature_name: str
    weights: AnyArray
    bias: AnyArray
    product: str
    kind: str
    total: str | None = None

    @property
    def epsilon(self) -> float:
        """Return how far numbers of the layer's kind are apart, relative to their size."""
        return ROUNDING.get(self.kind, float(np.finfo(np.float32).eps))


class NoLayerError(Exception):
    """The graph has no last linear layer that can be read; the text says why."""


class OnnxGraph:
    """An ONNX file, read without loading weights that stand in other files.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        import onnx

        if not path.is_file():
            raise ModelError(
                "There is no such ONNX file.", where=str(path), fix="Correct the path."
            )
        try:
            self.model: Any = onnx.load(str(path), load_external_data=False)
        except Exception as error:
            raise ModelError(
                "This is no ONNX file, or it is cut short.", where=str(path), fix="Export it again."
            ) from error
        self.path = path
        self._initialisers = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self._producers = {name: node for node in self.model.graph.node for name in node.output}
        if not self.model.graph.output:
            raise ModelError(
                "This is no ONNX file, or it is empty.", where=str(path), fix="Export it again."
            )

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.model.graph.output)

    def external_files(self) -> list[Path]:
        """Return the files beside the graph that hold weights; a missing one, or one outside the folder, is an error."""
        folder = self.path.parent.resolve()
        files = [(folder / place).resolve() for place in external_places(self.model)]
        for file in files:
            if not file.is_relative_to(folder):
                raise ModelError(
                    "The graph points to a weight file outside its own folder.",
                    where=str(self.path),
                    given=str(file),
                )
            if not file.is_file():
                raise ModelError(
                    f"A weight file of the graph is missing: {file.name}.",
                    where=str(self.path),
                    fix="Copy it beside the .onnx file.",
                )
        return files

    def input_facts(self) -> InputFacts:
        """Return the image input; several inputs, or one that takes no images, are an error."""
        inputs = [found for found in self.model.graph.input if found.name not in self._initialisers]
        if len(inputs) != 1:
            names = [found.name for found in inputs]
            raise ModelError(
                "The graph must have exactly one input, the images.",
                where=str(self.path),
                given=names,
                fix="Export it with one input, or wrap it in a function and use the callable classifier.",
            )
        return _input_facts(inputs[0], where=str(self.path))

    def score_output(self, output: str | None, feature_output: str | None) -> str:
        """Return which output holds the scores, the only one if none is named."""
        names = [name for name in self.output_names if name != feature_output]
        if output is not None and output not in self.output_names:
            raise ModelError(
                "The graph has no such output.",
                where="output",
                given=output,
                fix=f"Choose one of {names}.",
            )
        if output is None and len(names) != 1:
            raise ModelError(
                "The graph has several outputs, and it is not said which one classifies.",
                where=str(self.path),
                given=names,
                fix=f"Set output to one of {names}.",
            )
        return output if output is not None else names[0]

    def end(self, output: str) -> tuple[LinearLayer | None, str | None, str | None]:
        """Return the last linear layer before an output, what its scores are, and why there is no layer.

        Scores are `logits` or `probabilities` where the graph tells, else None.
        """
        name, scores = output, None
        while name in self._producers and self._producers[name].op_type in PASSED_THROUGH:
            node = self._producers[name]
            if scores is None and node.op_type in GIVES_PROBABILITIES:
                scores = "probabilities"
            name = node.input[0]
        try:
            layer = self._linear_layer(name)
        except NoLayerError as error:
            return None, scores, str(error)
        return layer, scores or "logits", None

    def metadata_labels(self) -> tuple[str, ...] | None:
        """Return class names that the file carries in its metadata, or None."""
        found = {entry.key: entry.value for entry in self.model.metadata_props}
        for key in LABEL_KEYS:
            if key in found and (names := labels_in(found[key])) is not None:
                return names
        return None

    def tapped(self, *inner: str) -> bytes:
        import onnx

        outputs = self.model.graph.output
        further = [name for name in dict.fromkeys(inner) if name not in self.output_names]
        if not further:
            return bytes(self.model.SerializeToString())
        unknown = [name for name in further if name not in self._producers]
        if unknown:
            raise ModelError(
                "The graph has no such tensor.", where="feature_output", given=unknown[0]
            )
        outputs.extend(onnx.ValueInfoProto(name=name) for name in further)
        try:
            return bytes(self.model.SerializeToString())
        finally:
            del outputs[-len(further) :]

    def _linear_layer(self, name: str) -> LinearLayer:
        node = self._producers.get(name)
        kind = node.op_type if node is not None else "nothing"
        if kind == "Gemm":
            return self._from_gemm(node)
        if kind == "MatMul":
            return self._from_matmul(node)
        if kind == "Add":
            return self._from_add(node)
        raise NoLayerError(_ends_in(kind))

    def _from_gemm(self, node: Any) -> LinearLayer:
        settings = {
            item.name: item.f if item.name in {"alpha", "beta"} else item.i
            for item in node.attribute
        }
        if settings.get("transA", 0):
            raise NoLayerError("the last Gemm transposes its features")
        matrix = self._constant(node.input[1])
        weights = (matrix if settings.get("transB", 0) else matrix.T) * np.float32(
            settings.get("alpha", 1.0)
        )
        has_bias = len(node.input) > _MATRIX and node.input[2]
        bias = (
            self._constant(node.input[2]) * np.float32(settings.get("beta", 1.0))
            if has_bias
            else np.zeros(1, np.float32)
        )
        return self._layer(node, weights, bias)

    def _from_matmul(self, node: Any) -> LinearLayer:
        weights = self._constant(node.input[1]).T
        return self._layer(node, weights, np.zeros(1, np.float32))

    def _from_add(self, node: Any) -> LinearLayer:
        for one, other in (node.input, tuple(node.input)[::-1]):
            product = self._producers.get(one)
            if product is not None and product.op_type == "MatMul":
                layer = self._from_matmul(product)
                return self._layer(
                    product, layer.weights, self._constant(other), total=node.output[0]
                )
            if product is not None and product.op_type in QUANTISED:
                raise NoLayerError(_ends_in(product.op_type))
        raise NoLayerError("the graph ends in a sum that is not the bias of a linear layer")

    def _layer(
        self, product: Any, weights: AnyArray, bias: AnyArray, *, total: str | None = None
    ) -> LinearLayer:
        from onnx import helper

        if weights.ndim != _MATRIX or bias.size not in {1, len(weights)}:
            raise NoLayerError("the last product is not a linear layer on one embedding an image")
        numbers = np.broadcast_to(np.asarray(bias, np.float32).reshape(-1), (len(weights),))
        kind = helper.tensor_dtype_to_np_dtype(number_kind(self.model.graph, product.input[1]))
        return LinearLayer(
            feature_name=product.input[0],
            weights=np.asarray(weights, np.float32),
            bias=np.array(numbers),
            product=product.output[0],
            total=total,
            kind=np.dtype(kind).name,
        )

    def _constant(self, name: str) -> AnyArray:
        from onnx import numpy_helper

        if name in self._initialisers:
            return np.asarray(
                numpy_helper.to_array(self._initialisers[name], base_dir=str(self.path.parent))
            )
        node = self._producers.get(name)
        if node is None or (node.op_type not in {"Constant", "Identity", "Transpose", "Cast"}):
            raise NoLayerError(
                _ends_in(node.op_type)
                if node is not None
                else "the weights of the last layer are an input"
            )
        if node.op_type == "Constant":
            held = next((item.t for item in node.attribute if item.name == "value"), None)
            if held is None:
                raise NoLayerError("the numbers of the last layer are not kept as a tensor")
            return np.asarray(numpy_helper.to_array(held, base_dir=str(self.path.parent)))
        value = self._constant(node.input[0])
        if node.op_type == "Transpose":
            order = next((list(item.ints) for item in node.attribute if item.name == "perm"), None)
            return value.transpose(order)
        return value


def _ends_in(kind: str) -> str:
    if kind in QUANTISED:
        return f"the last layer is quantised ({kind})"
    return f"the graph ends in {kind}, not in a linear layer (Gemm or MatMul)"


def _input_facts(given: Any, *, where: str) -> InputFacts:
    from onnx import helper

    kind = given.type.tensor_type
    sizes = [
        size.dim_value if size.HasField("dim_value") and size.dim_value > 0 else None
        for size in kind.shape.dim
    ]
    dtype = (
        np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)).name
        if kind.elem_type
        else "unknown"
    )
    if len(sizes) != 4 or dtype not in {"float32", "float16", "float64", "uint8"}:  # noqa: PLR2004 - batch, channels, height, width
        raise ModelError(
            "The input of the graph takes no images: four axes of numbers or bytes are needed.",
            where=where,
            given=f"{given.name}: {dtype} {sizes}",
        )
    last = sizes[3] in {1, 3} and sizes[1] not in {1, 3}
    channels, height, width = (
        (sizes[3], sizes[1], sizes[2]) if last else (sizes[1], sizes[2], sizes[3])
    )
    layout = "channels-last" if last else "channels-first"
    return InputFacts(
        name=given.name,
        dtype=dtype,
        batch=sizes[0],
        channels=channels,
        height=height,
        width=width,
        layout=layout,
    )


PLACED_BY = frozenset({"Constant", "Identity", "Transpose", "Cast"})
_BIAS_INPUT = 2


@dataclass(kw_only=True, eq=False)
class GraphEdit:
    """A copy of a model whose last layer is being replaced.

    Args:
        model: the copy, changed in place.
        where: the file, for messages.
        initialisers: names of tensors that were replaced, added or left out.
        nodes: first outputs of nodes that were changed, added or left out.
    """

    model: Any
    where: str
    initialisers: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def replace_layer(self, layer: LinearLayer, head: Head) -> None:
        product = self._node(layer.product)
        is_gemm = product.op_type == "Gemm"
        settings = {item.name: item.i for item in product.attribute}
        kind = number_kind(self.model.graph, product.input[1])
        self._place(
            product, 1, head.weights if is_gemm and settings.get("transB", 0) else head.weights.T
        )
        if is_gemm:
            self._unscale(product)
            self._place_bias(product, head, kind)
        elif layer.total is not None:
            total = self._node(layer.total)
            self._place(total, 1 if total.input[0] == layer.product else 0, head.bias)
        elif head.bias.any():
            self._add_bias(product, head, kind)

    def _place(self, node: Any, number: int, values: AnyArray) -> None:
        """Give a node its own constant input, under the old name if nobody else reads that."""
        old = node.input[number]
        kind = number_kind(self.model.graph, old)
        kept = self._initialiser(old)
        shape = tuple(kept.dims) if kept is not None else values.shape
        shaped = values.reshape(shape) if int(np.prod(shape)) == values.size else values
        if kept is not None and readers(self.model.graph)[old] == 1 and shaped.shape == shape:
            kept.CopyFrom(self._tensor(old, shaped, kind))
            self.initialisers.add(old)
            return
        node.input[number] = self._add(f"{old}_repaired", shaped, kind)
        self.nodes.add(node.output[0])
        self._leave_out(old)

    def _place_bias(self, gemm: Any, head: Head, kind: int) -> None:
        if len(gemm.input) > _BIAS_INPUT and gemm.input[_BIAS_INPUT]:
            self._place(gemm, _BIAS_INPUT, head.bias)
            return
        if head.bias.any():
            name = self._add(f"{gemm.output[0]}_bias_repaired", head.bias, kind)
            del gemm.input[_BIAS_INPUT:]
            gemm.input.append(name)
            self.nodes.add(gemm.output[0])

    def _add_bias(self, product: Any, head: Head, kind: int) -> None:
        from onnx import helper

        scores = product.output[0]
        bias = self._add(f"{scores}_bias_repaired", head.bias, kind)
        inner = self._unused(f"{scores}_without_bias")
        place = next(
            number for number, node in enumerate(self.model.graph.node) if scores in node.output
        )
        product.output[0] = inner
        added = helper.make_node(
            "Add", [inner, bias], [scores], name=f"{product.name or scores}_bias"
        )
        self.model.graph.node.insert(place + 1, added)
        self.nodes.update({scores, inner})

    def _unscale(self, gemm: Any) -> None:
        kept = [
            item for item in gemm.attribute if item.name not in {"alpha", "beta"} or item.f == 1.0
        ]
        if len(kept) < len(gemm.attribute):
            del gemm.attribute[:]
            gemm.attribute.extend(kept)
            self.nodes.add(gemm.output[0])

    def _leave_out(self, name: str) -> None:
        """Drop a constant, and what it was made by, if nobody reads it any longer."""
        graph = self.model.graph
        if readers(graph)[name] or any(given.name == name for given in graph.input):
            return
        kept = self._initialiser(name)
        if kept is not None:
            graph.initializer.remove(kept)
            self.initialisers.add(name)
            return
        maker = next((node for node in graph.node if name in node.output), None)
        if maker is not None and maker.op_type in PLACED_BY:
            source = list(maker.input)
            graph.node.remove(maker)
            self.nodes.add(name)
            for each in source:
                self._leave_out(each)

    def _add(self, wished: str, values: AnyArray, kind: int) -> str:
        name = self._unused(wished)
        self.model.graph.initializer.append(self._tensor(name, values, kind))
        self.initialisers.add(name)
        return name

    def _tensor(self, name: str, values: AnyArray, kind: int) -> Any:
        from onnx import helper, numpy_helper

        numbers = in_kind(
            np.ascontiguousarray(values), helper.tensor_dtype_to_np_dtype(kind), where=self.where
        )
        return numpy_helper.from_array(numbers, name)

    def _unused(self, wished: str) -> str:
        taken = names_in(self.model.graph)
        candidates = (wished, *(f"{wished}_{number}" for number in range(len(taken))))
        return next(name for name in candidates if name not in taken)

    def _initialiser(self, name: str) -> Any:
        return next(
            (tensor for tensor in self.model.graph.initializer if tensor.name == name), None
        )

    def _node(self, output: str) -> Any:
        return next(node for node in self.model.graph.node if output in node.output)


def edited(model: Any, layer: LinearLayer, head: Head, *, where: str) -> GraphEdit:
    """Return a copy of a model with a head in place of its last linear layer; the model itself stays as it is."""
    import onnx

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    edit = GraphEdit(model=changed, where=where)
    edit.replace_layer(layer, head)
    return edit


def changed_elsewhere(before: Any, after: Any, edit: GraphEdit) -> str | None:
    """Return what differs between two models beside what was touched, None if nothing does; everything is compared as bytes."""
    pairs = {
        "the model's own fields": (_without(before, "graph"), _without(after, "graph")),
        "inputs, outputs or notes of the graph": (
            _without(before.graph, "node", "initializer"),
            _without(after.graph, "node", "initializer"),
        ),
        "a constant": (_tensors_beside(before, edit), _tensors_beside(after, edit)),
        "a node": (_nodes_beside(before, edit), _nodes_beside(after, edit)),
    }
    return next((f"{name} changed" for name, (one, other) in pairs.items() if one != other), None)


def _without(message: Any, *fields: str) -> bytes:
    rest = type(message)()
    for described, value in message.ListFields():
        if described.name in fields:
            continue
        if isinstance(value, str | bytes | int | float):
            setattr(rest, described.name, value)
        else:
            getattr(rest, described.name).MergeFrom(value)
    return bytes(rest.SerializeToString(deterministic=True))


def _tensors_beside(model: Any, edit: GraphEdit) -> list[str]:
    return [
        _digest(tensor)
        for tensor in model.graph.initializer
        if tensor.name not in edit.initialisers
    ]


def _nodes_beside(model: Any, edit: GraphEdit) -> list[str]:
    return [_digest(node) for node in model.graph.node if not edit.nodes & set(node.output)]


def _digest(message: Any) -> str:
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()


def write_graph(
    graph: OnnxGraph, layer: LinearLayer, head: Head, folder: Path
) -> tuple[Path, GraphEdit]:
    """Write a graph with another last layer, and copies of the weight files that it still needs, into an empty folder.

    Args:
        graph: the user's graph.
        layer: its last linear layer.
        head: one row a row of the layer.
        folder: where to.
    """
    edit = edited(graph.model, layer, head, where=str(graph.path))
    path = folder / f"{graph.path.stem}_repaired{graph.path.suffix}"
    try:
        path.write_bytes(edit.model.SerializeToString())
    except ValueError as error:
        raise ModelError(
            "The graph with its new layer is too large for one file.",
            where=str(graph.path),
            fix="Keep its weights in other files.",
        ) from error
    graph.external_files()
    for place in external_places(edit.model):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(graph.path.parent / place, folder / place)
    return path, edit


def check_graph(
    graph: OnnxGraph,
    layer: LinearLayer,
    head: Head,
    written: tuple[Path, GraphEdit],
    batches: Sequence[AnyArray],
) -> None:
    """Read a written graph back and compare it with the user's: bytes of the file, and what both compute.

    Args:
        graph: the user's graph.
        layer: its last linear layer.
        head: one row a row of the layer.
        written: what `write_graph` gave.
        batches: inputs that the graph takes.

    Raises:
        ModelError: if anything but the layer changed, or the layer gives other scores than the head.
    """
    path, edit = written
    found = OnnxGraph(path)
    problem = changed_elsewhere(graph.model, found.model, edit)
    copies = external_places(found.model)
    if problem is None and any(
        file_hash(graph.path.parent / place) != file_hash(path.parent / place) for place in copies
    ):
        problem = "a copied weight file differs"
    if problem is not None:
        raise not_verified(problem)
    later = depending_on(graph.model.graph, layer.product)
    same = [layer.feature_name, *(name for name in graph.output_names if name not in later)]
    for batch in batches:
        _compare(
            _answers(graph, [*same], batch),
            _answers(found, [*same, layer.total or layer.product], batch),
            head,
            layer.epsilon,
        )


def _compare(before: list[AnyArray], after: list[AnyArray], head: Head, epsilon: float) -> None:
    if any(
        one.dtype != other.dtype or one.tobytes() != other.tobytes()
        for one, other in zip(before, after, strict=False)
    ):
        raise not_verified("an output that does not depend on the layer changed")
    features = np.asarray(after[0], np.float64).reshape(len(after[0]), -1)
    scores = np.asarray(after[-1], np.float64).reshape(len(features), -1)
    expected = features @ head.weights.T.astype(np.float64) + head.bias
    if (
        scores.shape != expected.shape
        or (np.abs(scores - expected) > score_slack(head, features, epsilon) + 1e-6).any()
    ):
        raise not_verified("the layer's scores are not those of the head")


def _answers(graph: OnnxGraph, names: list[str], batch: AnyArray) -> list[AnyArray]:
    try:
        session = make_session(graph.path, threads=1, providers=[CPU], graph=graph.tapped(*names))
        return [
            np.asarray(answer) for answer in session.run(names, {graph.input_facts().name: batch})
        ]
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"The graph cannot be checked on the processor: {first_line(error)}",
            where=str(graph.path),
        ) from error
