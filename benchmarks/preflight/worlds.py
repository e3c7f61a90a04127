"""Planted answers, and planted images with a real ONNX classifier that expects them prepared in a known way."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from weakspot.models.preprocessing import Preprocessing
from weakspot.run.preflight.classifier import CAFFE, NORMALISATIONS, LabelledAnswers

SIDE = 32
PLAIN = Preprocessing(height=SIDE, width=SIDE)
NAMES = ("brick", "copper", "forest", "lemon", "navy", "plum", "rust", "sky")
COLOURS = np.array(
    [
        (0.70, 0.25, 0.20),
        (0.80, 0.50, 0.25),
        (0.15, 0.45, 0.20),
        (0.90, 0.85, 0.30),
        (0.15, 0.20, 0.50),
        (0.50, 0.20, 0.45),
        (0.60, 0.30, 0.10),
        (0.45, 0.70, 0.90),
    ]
)
SPREAD = (0.04, 0.3)
HEALTHY = (
    "good",
    "imbalanced",
    "look-alike",
    "dead class",
    "two dead",
    "one answer",
    "half swapped",
    "tiny",
    "other kind",
)
ORDERS = ("next", "before", "reversed", "sorted", "any")
WAYS = {
    "as set": PLAIN,
    "BGR": replace(PLAIN, colour="bgr"),
    **{
        name: replace(PLAIN, scale=scale, mean=mean, std=std)
        for name, (scale, mean, std) in NORMALISATIONS.items()
        if (scale, mean, std) != (PLAIN.scale, PLAIN.mean, PLAIN.std)
    },
    "Caffe": replace(PLAIN, scale=CAFFE[0], mean=CAFFE[1], std=CAFFE[2], colour="bgr"),
    "squeezed": replace(PLAIN, crop="none"),
}


def healthy_answers(kind: str, seed: int) -> LabelledAnswers:
    """Return answers of a classifier whose class names are right, however bad it is."""
    draws = np.random.default_rng([seed, HEALTHY.index(kind)])
    n_classes = int(draws.choice([2, 3, 4, 6, 10, 20, 50]))
    n_classes = max(n_classes, 3) if kind != "good" else n_classes
    n_samples = (
        int(draws.choice([12, 16, 24, 40]))
        if kind == "tiny"
        else int(draws.choice([60, 200, 1000, 5000]))
    )
    shares = (
        draws.dirichlet(np.full(n_classes, 0.5))
        if kind in ("imbalanced", "dead class", "one answer")
        else None
    )
    labels = draws.choice(n_classes, n_samples, p=shares)
    accuracy = float(draws.uniform(max(0.3, 1.3 / n_classes), 0.99))
    wrong = (labels + draws.integers(1, n_classes, n_samples)) % n_classes
    predictions = np.where(draws.random(n_samples) < accuracy, labels, wrong)
    is_training = draws.random(n_samples) < draws.choice([0.0, 0.5])
    first, second = draws.permutation(n_classes)[:2]
    pair = np.isin(labels, (first, second))
    other = np.where(labels == first, second, first)
    if kind == "look-alike":
        either = np.where(draws.random(n_samples) < 0.5, other, labels)
        predictions = np.where(pair & np.isin(predictions, (first, second)), either, predictions)
    elif kind == "half swapped":
        swapped = pair & (draws.random(n_samples) < 0.6) & ~is_training
        predictions = np.where(swapped, other, np.where(pair, labels, predictions))
    elif kind == "dead class":
        predictions = np.where(labels == first, second, predictions)
    elif kind == "two dead":
        predictions = np.where(pair, (second + 1) % n_classes, predictions)
    elif kind == "one answer":
        predictions = np.where(draws.random(n_samples) < 0.9, first, predictions)
    elif kind == "other kind":
        is_training = draws.random(n_samples) < 0.5
        predictions = np.where(pair & ~is_training, other, predictions)
    return _answers(n_classes, labels, predictions, is_training)


def disordered_answers(order: str, seed: int):
    """Return answers of a usable classifier whose outputs are named in a wrong order, what every name means, and the names."""
    draws = np.random.default_rng([seed, 100 + ORDERS.index(order)])
    n_classes = int(draws.choice([2, 3, 4, 6, 10, 20]))
    n_classes = max(n_classes, 3) if order in ("sorted", "any") else n_classes
    n_samples = int(draws.choice([100, 200, 1000]))
    labels = draws.integers(0, n_classes, n_samples)
    accuracy = float(draws.uniform(max(0.5, 1.3 / n_classes), 0.99))
    wrong = (labels + draws.integers(1, n_classes, n_samples)) % n_classes
    meant = np.where(draws.random(n_samples) < accuracy, labels, wrong)
    named = {
        "next": np.roll(np.arange(n_classes), 1),
        "before": np.roll(np.arange(n_classes), -1),
        "reversed": np.arange(n_classes)[::-1],
    }.get(order)
    if named is None:
        named = draws.permutation(n_classes)
        while (named == np.arange(n_classes)).mean() > 0.5:
            named = draws.permutation(n_classes)
    is_training = draws.random(n_samples) < 0.5
    answers = _answers(n_classes, labels, named[meant], is_training)
    # Sorted: output j means the j-th class and is called by another name.
    outputs = [
        answers.class_names[code] for code in (named if order == "sorted" else range(n_classes))
    ]
    return answers, np.argsort(named), outputs


def _answers(n_classes, labels, predictions, is_training) -> LabelledAnswers:
    return LabelledAnswers(
        class_names=tuple(f"class {number:02d}" for number in range(n_classes)),
        labels=np.asarray(labels),
        predictions=np.asarray(predictions),
        is_training=np.asarray(is_training),
    )


@dataclass(frozen=True, kw_only=True)
class ImageWorld:
    """Images of a few colours on disk, their rows, and a classifier.

    Args:
        folder: holds images, `manifest.csv`, `embeddings.npy` and `model.onnx`.
        rows: file, label and split of every image.
        class_names: the classes in the order of the outputs.
    """

    folder: Path
    rows: tuple[tuple[str, str, str], ...]
    class_names: tuple[str, ...]


def write_images(
    folder: Path,
    *,
    way: Preprocessing = PLAIN,
    seed: int = 0,
    n_classes: int = 4,
    n_samples: dict[str, int] | None = None,
    spread: float = 0.08,
) -> ImageWorld:
    """Write a world whose classifier is right if its images are prepared in one way.

    Args:
        folder: where.
        way: how the classifier expects them.
        seed: of the colours.
        n_classes: at most eight.
        n_samples: images by split.
        spread: how far colours scatter: the larger, the more often the classifier is wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(seed)
    rows, means = [], []
    for split, number in (n_samples or {"train": 120, "validation": 160}).items():
        for place in range(number):
            code = place % n_classes
            colour = np.clip(COLOURS[code] + draws.normal(0, spread, 3), 0, 1)
            name = f"{split}-{place:04d}.png"
            Image.fromarray(_drawn(colour, draws, is_wide=way.crop == "none")).save(
                folder / name, compress_level=1
            )
            rows.append((name, NAMES[code], split))
            means.append(colour)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "split"), *rows])
    embeddings = np.concatenate(
        [np.array(means) - 0.5, draws.normal(0, 0.15, (len(rows), 8))], axis=1
    )
    np.save(folder / "embeddings.npy", _unit(embeddings).astype(np.float32))
    (folder / "model.onnx").write_bytes(colour_network(COLOURS[:n_classes], way))
    return ImageWorld(folder=folder, rows=tuple(rows), class_names=NAMES[:n_classes])


def _drawn(colour, draws, *, is_wide: bool):
    """Return an image [height, width, 3] of one colour with some noise; of wide ones only the ends have the colour."""
    shape = (SIDE, 3 * SIDE, 3) if is_wide else (SIDE + 8, SIDE, 3)
    shown = colour + draws.normal(0, 0.05, shape)
    if is_wide:
        shown[:, SIDE : 2 * SIDE] = 0.5 + draws.normal(0, 0.05, (SIDE, SIDE, 3))
    return (255 * np.clip(shown, 0, 1)).astype(np.uint8)


def _unit(embeddings):
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


def colour_network(colours, way: Preprocessing) -> bytes:
    """Return an ONNX classifier by the nearest of some mean colours [c, 3], for images prepared in one way."""
    sharpness = 40.0
    shown = colours * 2 / 3 + 0.5 / 3 if way.crop == "none" else colours
    weights, bias = 2 * sharpness * shown, -sharpness * (shown**2).sum(axis=1)
    if way.colour == "bgr":
        weights = weights[:, ::-1]
    std, mean = np.array(way.std), np.array(way.mean)
    bias = bias + weights @ (mean / (255 * way.scale))
    weights = weights * std / (255 * way.scale)
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "nearest-colour",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [
            helper.make_tensor_value_info(
                "probabilities", TensorProto.FLOAT, ["batch", len(colours)]
            )
        ],
        [
            numpy_helper.from_array(np.ascontiguousarray(weights, np.float32), "weights"),
            numpy_helper.from_array(np.asarray(bias, np.float32), "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())
