"""Makes what a real repository would have already: images with labels, the model in use, and a candidate for its place.

Apples and pears as coloured tiles. The model in use was trained on red and green apples. For the candidate somebody cleaned the
training set, and hardly a green apple is left. Its overall accuracy hides that.

Run it with `python make_models.py [FOLDER]`; it needs no download and takes seconds.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.linear_model import LogisticRegression

COLOURS = {"red": (200, 40, 40), "green": (95, 170, 60), "yellow": (200, 185, 65)}
NOISE, SIDE, SEED, FEATURE_SCALE = 20.0, 16, 5, 8.0
SPLITS = {"train": 400, "validation": 480, "test": 240}
GREEN_EVERY = {"train": 80, "validation": 4, "test": 4}
OLD_TRAINING = 400


def kind_of(place: int, green_every: int) -> tuple[str, str]:
    """Return class and kind of a sample by its number."""
    if place % 2:
        return "pear", "yellow"
    return "apple", "green" if place % green_every == 0 else "red"


def colours(kinds: list[str], draws: np.random.Generator) -> np.ndarray:
    """Return one colour a sample, 0 to 255, scattered around that of its kind."""
    plain = np.array([COLOURS[kind] for kind in kinds])
    return np.clip(plain + draws.normal(0, NOISE, plain.shape), 0, 255).astype(np.uint8)


def trained(shown: np.ndarray, labels: list[str]) -> bytes:
    """Return a classifier in an ONNX file: the mean colour of an image, and a last layer that was trained on these samples."""
    model = LogisticRegression(C=1.0, max_iter=2000).fit(
        FEATURE_SCALE * shown, [label == "pear" for label in labels]
    )
    constants = {
        "scale": np.array(FEATURE_SCALE),
        "weights": np.concatenate([-model.coef_, model.coef_]) / 2,
        "bias": np.concatenate([-model.intercept_, model.intercept_]) / 2,
    }
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["colour"]),
        helper.make_node("Mul", ["colour", "scale"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "mean-colour",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 2])],
        [
            numpy_helper.from_array(value.astype(np.float32), name)
            for name, value in constants.items()
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def write_samples(folder: Path, draws: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """Write images, manifest and embeddings, and return what the candidate is trained on."""
    entries = [
        (split, *kind_of(place, GREEN_EVERY[split]))
        for split, count in SPLITS.items()
        for place in range(count)
    ]
    pixels = colours([kind for _, _, kind in entries], draws)
    (folder / "tiles").mkdir(parents=True, exist_ok=True)
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split", "kind"])
        for number, ((split, label, kind), pixel) in enumerate(zip(entries, pixels, strict=True)):
            path = f"tiles/{number:04d}.png"
            Image.new("RGB", (SIDE, SIDE), tuple(pixel.tolist())).save(
                folder / path, compress_level=1
            )
            writer.writerow([path, label, split, kind])
    shown = pixels.astype(np.float32) / 255
    embeddings = np.concatenate([shown - 0.5, np.full((len(shown), 1), 0.2)], axis=1)
    np.save(
        folder / "embeddings.npy",
        (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(np.float32),
    )
    n_train = SPLITS["train"]
    return shown[:n_train], [label for _, label, _ in entries[:n_train]]


def main(folder: Path) -> None:
    draws = np.random.default_rng(SEED)
    shown, labels = write_samples(folder / "data", draws)
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    old = [kind_of(place, 4) for place in range(OLD_TRAINING)]
    old_shown = colours([kind for _, kind in old], draws).astype(np.float32) / 255
    (models / "in_use.onnx").write_bytes(trained(old_shown, [label for label, _ in old]))
    (models / "candidate.onnx").write_bytes(trained(shown, labels))
    print(
        f"{len(list((folder / 'data' / 'tiles').iterdir()))} images, models: in_use.onnx, candidate.onnx"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
