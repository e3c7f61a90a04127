"""Where the tensors of an ONNX model are kept and who reads them, also in graphs inside graphs."""

from collections import Counter
from collections.abc import Iterator
from typing import Any


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
