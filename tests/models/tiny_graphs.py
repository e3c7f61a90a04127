"""Tiny ONNX graphs: a pooled convolution with any ending, and towers of embedders."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(0)
CONV = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((4, 5)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)
NAMES = ["cat", "dog", "owl", "yak"]
node = helper.make_node


def entry(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def save_graph(path, nodes, inputs, outputs, constants, *, metadata=None, external=None, info=()):
    """Save a graph; constants by name, metadata by key, weights in another file if one is named."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, held, value_info=list(info))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, producer_name="maker"
    )
    helper.set_model_props(model, metadata or {})
    options = {"save_as_external_data": True, "location": external, "size_threshold": 0}
    onnx.save(model, str(path), **(options if external else {}))
    return path


def pooled(image="x"):
    """Return the mean over all places of a convolution, as `f`."""
    return [
        node("Conv", [image, "conv"], ["c"], pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", ["c"], ["p"]),
        node("Flatten", ["p"], ["f"]),
    ]


def gemm(output="z", *, end=None, **settings):
    """Return a linear layer on `f`, and what follows it, which gives `y`."""
    layer = node("Gemm", ["f", "w", "b"], [output], **{"transB": 1, **settings})
    return [layer] if end is None else [layer, node(end, [output], ["y"])]


def mean_tower(path, *, side=4, batch="n", weights=None):
    """Save an image tower whose embedding is the mean of every channel, times weights [3, d]."""
    weights = np.eye(3, dtype=np.float32) if weights is None else weights
    nodes = [
        node("GlobalAveragePool", ["pixel_values"], ["mean"]),
        node("Flatten", ["mean"], ["flat"]),
        node("MatMul", ["flat", "weights"], ["image_embeds"]),
    ]
    maps = entry("mean", shape=[batch, 3, 1, 1])
    embeds = entry("image_embeds", shape=[batch, weights.shape[1]])
    given = entry("pixel_values", shape=[batch, 3, side, side])
    return save_graph(path, nodes, [given], [maps, embeds], {"weights": weights})


def word_tower(path, embeddings, *, kind=TensorProto.INT64):
    """Save a text tower that adds the embeddings [w, d] of the words that are no padding."""
    nodes = [
        node("Gather", ["words", "input_ids"], ["each"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["wide"]),
        node("Mul", ["each", "wide"], ["kept"]),
        node("ReduceSum", ["kept", "tokens"], ["embeddings"], keepdims=0),
    ]
    inputs = [entry("input_ids", kind, ["n", "t"])]
    inputs += [entry("attention_mask", TensorProto.INT64, ["n", "t"])]
    constants = {"words": embeddings, "last": np.array([2]), "tokens": np.array([1])}
    outputs = [entry("embeddings", shape=["n", embeddings.shape[1]])]
    return save_graph(path, nodes, inputs, outputs, constants)
