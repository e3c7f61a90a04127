"""The small classifier of the demo: a colour histogram as a network, in a real ONNX file."""

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.heads import Head

SIDE = 64
LEVELS = 4
SHARPNESS = 60.0
FEATURE_SCALE = 8.0


def prototypes() -> FloatArray:
    """Return the colours that pixels are assigned to [k, 3], in 0 to 1."""
    levels = np.linspace(0.1, 0.9, LEVELS)
    grid = np.meshgrid(levels, levels, levels, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 3).astype(np.float32)


def untrained_head(n_classes: int) -> Head:
    """Return a head of zeros that fits the network's features."""
    n_features = len(prototypes())
    return Head(
        weights=np.zeros((n_classes, n_features), np.float32), bias=np.zeros(n_classes, np.float32)
    )


def network(head: Head) -> bytes:
    """Return the classifier with this head as ONNX.

    A 1x1 convolution and a soft-max over channels assign every pixel softly to a colour; the mean over pixels is the feature; a
    linear layer and a soft-max classify. Pixels are expected in 0 to 1.
    """
    from onnx import TensorProto, checker, helper, numpy_helper

    colours = prototypes()
    constants = {
        "colour_weights": (2 * SHARPNESS * colours)[:, :, None, None],
        "colour_bias": -SHARPNESS * (colours**2).sum(axis=1),
        "feature_scale": np.array(FEATURE_SCALE, np.float32),
        "head_weights": head.weights,
        "head_bias": head.bias,
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "colour_weights", "colour_bias"], ["closeness"]),
        helper.make_node("Softmax", ["closeness"], ["shares"], axis=1),
        helper.make_node("GlobalAveragePool", ["shares"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["histogram"]),
        helper.make_node("Mul", ["histogram", "feature_scale"], ["features"]),
        helper.make_node("Gemm", ["features", "head_weights", "head_bias"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colour-histogram",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [
            helper.make_tensor_value_info(
                "probabilities", TensorProto.FLOAT, ["batch", len(head.bias)]
            )
        ],
        [
            numpy_helper.from_array(np.asarray(value, np.float32), name)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    return bytes(model.SerializeToString())
