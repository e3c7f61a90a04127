"""An ONNX classifier written with another last linear layer, and proven to be the same elsewhere."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.models.head_fitting import in_kind, not_verified, score_slack
from weakspot.models.loading import first_line
from weakspot.models.model_hash import file_hash
from weakspot.models.onnx.graph import (
    LinearLayer,
    OnnxGraph,
    depending_on,
    external_places,
    names_in,
    number_kind,
    readers,
)
from weakspot.models.onnx.session import CPU, make_session

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
            _answers(found, [*same, layer.score_name], batch),
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
