"""Learns the shifts and factors of the 8-bit image tower, and writes src/weakspot/models/embedded/weights/integer_tower.npz.

Images: sixteen training photographs of the groceries and eight views of the known image. None of them is used to judge
(benchmarks/integer_tower.py). Weights come from the registry file, activations from its float32 form.

    python tools/learn_integer_tower.py
"""

import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from PIL import Image

from weakspot.models.embedded.encoder import EmbeddedDefault, known_image
from weakspot.models.embedded.image_tower import (
    IMAGE_TOWER,
    RANGES_PATH,
    Product,
    dequantise,
    read_tower,
)
from weakspot.models.packages import fetch
from weakspot.project.demo import groceries

N_PHOTOGRAPHS = 16
LARGE_SHARE = 0.999
PLACES = {
    "qkv": ("self_attn/q_proj", "self_attn/k_proj", "self_attn/v_proj"),
    "out": ("self_attn/out_proj",),
    "fc1": ("mlp/fc1",),
}
THRESHOLDS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
POWERS = (0.5, 0.75, 1.0)


def images() -> np.ndarray:
    taken = [one for one in groceries() if one.split == "train"]
    taken = taken[:: len(taken) // N_PHOTOGRAPHS][:N_PHOTOGRAPHS]
    pictures = [Image.open(io.BytesIO(one.data)).convert("RGB") for one in taken]
    drawn = known_image()
    views = [np.rot90(view, turn) for turn in range(4) for view in (drawn, drawn[:, ::-1])]
    pictures += [Image.fromarray(np.ascontiguousarray(view)) for view in views]
    prepare = EmbeddedDefault().prepare
    return np.stack([prepare(picture) for picture in pictures])


def activations(source: Path, inputs: dict[str, str], given: np.ndarray) -> dict[str, np.ndarray]:
    model = onnx.load(str(source))
    dequantise(model)
    for name in inputs.values():
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found: dict[str, list[np.ndarray]] = {place: [] for place in inputs}
    for start in range(0, len(given), 4):
        values = session.run(list(inputs.values()), {"pixel_values": given[start : start + 4]})
        for place, value in zip(inputs, values, strict=True):
            found[place].append(value.reshape(-1, value.shape[-1]))
    return {place: np.concatenate(parts) for place, parts in found.items()}


def rounded(rows: np.ndarray) -> np.ndarray:
    scale = np.maximum(rows.max(1) / 127, -rows.min(1) / 128)[:, None]
    return np.round(rows / scale) * scale


def learnt_factor(rows: np.ndarray, product: Product) -> np.ndarray:
    """Return whole factors [k] that lose least of the product on these rows."""
    truth, large = rows @ product.values, np.quantile(np.abs(rows), LARGE_SHARE, axis=0)

    def loss(factor: np.ndarray) -> float:
        made = rounded(rows / factor) @ product.with_rows_times(factor).values
        return float(((made - truth) ** 2).mean())

    tried = [np.ones(rows.shape[1], dtype=np.float32)]
    for threshold in np.quantile(large, THRESHOLDS):
        tried += [
            np.maximum(1, np.round((large / threshold) ** power)).astype(np.float32)
            for power in POWERS
        ]
    return min(tried, key=loss)


def main() -> None:
    source = fetch(IMAGE_TOWER)
    model = onnx.load(str(source))
    weights = read_tower(model)
    maker = {name: node for node in model.graph.node for name in node.output}
    feeds = {
        node.name.removesuffix("/MatMul_quant"): maker[node.input[0]].input[0]
        for node in model.graph.node
        if node.op_type == "MatMulInteger"
    }
    last = weights.n_layers - 1
    inputs = {
        f"{layer}.{place}": feeds[f"/vision_model/encoder/layers.{layer}/{names[0]}"]
        for layer in range(weights.n_layers)
        for place, names in PLACES.items()
        if place == "qkv" or layer < last
    }
    rows_of = activations(source, inputs, images())
    draw = np.random.default_rng(0)
    codes, steps, factors = [], [], []
    for place, rows in rows_of.items():
        layer, kind = place.split(".")
        parts = [
            weights.products[f"encoder.layers.{layer}.{name.replace('/', '.')}"]
            for name in PLACES[kind]
        ]
        middle = rows.mean(0)
        step = np.float32(np.abs(middle).max() / 127)
        code = np.round(middle / step).astype(np.int8)
        sample = np.concatenate([rows[:: weights.n_tokens], draw.permutation(rows)[:300]])
        factor = learnt_factor(sample - code * step, parts[0].beside(*parts[1:]))
        if kind == "out":  # what feeds it is no layer norm, so nothing can be divided for free
            factor = np.ones_like(factor)
        codes.append(code)
        steps.append(step)
        factors.append(factor.astype(np.uint8))
        print(place, int((factor > 1).sum()), "channels divided, by at most", int(factor.max()))
    np.savez_compressed(
        RANGES_PATH,
        places=np.array(list(rows_of)),
        shift_codes=np.stack(codes),
        shift_steps=np.array(steps),
        factors=np.stack(factors),
    )
    print(RANGES_PATH, RANGES_PATH.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
