"""An ONNX classifier written with another last layer, and proven to be the same elsewhere."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weakspot.backends.head_fitting import not_verified, score_slack
from weakspot.backends.model_hash import file_hash
from weakspot.backends.onnx.edit import Touched, changed_elsewhere, edited
from weakspot.backends.onnx.graph import LinearLayer, OnnxGraph
from weakspot.backends.onnx.providers import CPU
from weakspot.backends.onnx.session import make_session
from weakspot.backends.onnx.tensors import depending_on, external_places
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head


def write_graph(
    graph: OnnxGraph, layer: LinearLayer, head: Head, folder: Path
) -> tuple[Path, Touched]:
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
    return path, edit.touched


def check_graph(
    graph: OnnxGraph,
    layer: LinearLayer,
    head: Head,
    written: tuple[Path, Touched],
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
    path, touched = written
    found = OnnxGraph(path)
    problem = changed_elsewhere(graph.model, found.model, touched)
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
        line = str(error).strip().split("\n", maxsplit=1)[0][:300]
        raise ModelError(
            f"The graph cannot be checked on the processor: {line}", where=str(graph.path)
        ) from error
