"""The same work on the local engine and on a Ray cluster of this machine, in alternating rounds of one run.

    python benchmarks/ray_overhead.py

Two kinds of work: embedding JPEG files with an ONNX tower of random weights (`--blocks` sets its cost), and a plain map that
decodes files. What Ray costs is said with its start, and without it; starting workers and loading the model in them always counts.
Beside it stands how much of onnxruntime's own speed, on tensors already decoded, each engine reaches between its first and its last
batch.
"""

import argparse
import functools
import hashlib
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.data.engine.cluster import RayEngine, connect_ray
from weakspot.data.engine.local import LocalEngine
from weakspot.data.images import decode_image
from weakspot.models.onnx.session import make_session

SIDE = 224
WIDTH = 768
HEADER = """\
| work | local, s | Ray, s | Ray against local | with Ray's start | local / onnxruntime alone | Ray / onnxruntime alone |
|---|---|---|---|---|---|---|"""


class Embedding:
    """An ONNX tower, with reading and scaling of files before it."""

    def __init__(self, path):
        self.session = make_session(Path(path))

    def prepare(self, path):
        """Read, decode and scale one file."""
        image = decode_image(Path(path).read_bytes(), image_side=SIDE).image.resize(
            (SIDE, SIDE), Image.Resampling.BICUBIC
        )
        return (np.asarray(image, dtype=np.float32).transpose(2, 0, 1) - 127.5) / 64

    def run(self, ready):
        """Run the graph."""
        return self.session.run(None, {"pixels": np.stack(ready)})[0]


def digest_of_pixels(path):
    """Decode one file as a plain map would."""
    return hashlib.blake2b(
        decode_image(Path(path).read_bytes(), image_side=None).image.tobytes()
    ).hexdigest()


def random_tower(path, n_blocks):
    """Write a chain of matrix products; twelve blocks are about the work of a ViT-B/32."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    held = {
        "patch": draw.normal(0, 0.02, size=(WIDTH, 3, 32, 32)).astype(np.float32),
        "flat": np.array([0, WIDTH, -1]),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "patch"], ["patches"], strides=[32, 32]),
        helper.make_node("Reshape", ["patches", "flat"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["x0"], perm=[0, 2, 1]),
    ]
    for block in range(n_blocks):
        for name, shape in (("up", (WIDTH, 6 * WIDTH)), ("down", (6 * WIDTH, WIDTH))):
            held[f"{name}{block}"] = draw.normal(0, 0.02, size=shape).astype(np.float32)
        nodes += [
            helper.make_node("MatMul", [f"x{block}", f"up{block}"], [f"u{block}"]),
            helper.make_node("Tanh", [f"u{block}"], [f"t{block}"]),
            helper.make_node("MatMul", [f"t{block}", f"down{block}"], [f"x{block + 1}"]),
        ]
    nodes.append(
        helper.make_node("ReduceMean", [f"x{n_blocks}"], ["embeddings"], axes=[1], keepdims=0)
    )
    inputs = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])]
    outputs = [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["n", WIDTH])]
    graph = helper.make_graph(
        nodes,
        "tower",
        inputs,
        outputs,
        [numpy_helper.from_array(held[name], name) for name in held],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )


def photographs(folder, count):
    """Write JPEG files with detail at several scales."""
    paths = []
    for seed in range(count):
        draw = np.random.default_rng(seed)
        total = np.zeros((375, 500, 3), dtype=np.float32)
        for cells, strength in ((8, 60.0), (64, 25.0), (250, 14.0)):
            noise = (
                draw.normal(128, 50, size=(cells * 3 // 4, cells, 3)).clip(0, 255).astype(np.uint8)
            )
            layer = Image.fromarray(noise).resize((500, 375), Image.Resampling.BICUBIC)
            total += (np.asarray(layer, dtype=np.float32) - 128) * strength / 50
        paths.append(str(Path(folder) / f"{seed}.jpg"))
        Image.fromarray((total + 128).clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
    return paths


@dataclass
class Measured:
    """One pass: the whole of it, and results a second between the first and the last."""

    seconds: float
    per_second: float
    results: list


def measured(results):
    started = time.perf_counter()
    found, times = [], []
    for result in results:
        found.append(result)
        times.append(time.perf_counter())
    return Measured(times[-1] - started, (len(times) - 1) / (times[-1] - times[0]), found)


def alone(work, tensors, n_batches):
    """Return batches a second of onnxruntime on tensors already decoded."""
    started = time.perf_counter()
    for _ in range(n_batches):
        work.run(tensors)
    return n_batches / (time.perf_counter() - started)


def row(name, local, ray, start, reference):
    seconds = [statistics.median(turn.seconds for turn in turns) for turns in (local, ray)]
    overhead = statistics.median(
        after.seconds / before.seconds - 1 for before, after in zip(local, ray, strict=True)
    )
    shares = ["-", "-"]
    if reference:
        shares = [
            f"{statistics.median(turn.per_second / speed for turn, speed in zip(turns, reference, strict=True)):.1%}"
            for turns in (local, ray)
        ]
    with_start = (seconds[1] + start) / seconds[0] - 1
    return f"| {name} | {seconds[0]:.1f} | {seconds[1]:.1f} | {overhead:+.1%} | {with_start:+.1%} | {shares[0]} | {shares[1]} |"


def compare_embedding(settings, paths, tower):
    build = functools.partial(Embedding, tower)
    items = [paths[number % len(paths)] for number in range(settings.images)]
    work = build()
    tensors = [work.prepare(path) for path in paths[: settings.batch]]
    local, ray, reference = [], [], []
    for number in range(settings.rounds):
        engines = [(LocalEngine(), local), (RayEngine(), ray)]
        for engine, kept in engines if number % 2 == 0 else reversed(engines):
            kept.append(measured(engine.map_batches(build, items, batch_size=settings.batch)))
        reference.append(alone(work, tensors, max(4, settings.images // settings.batch // 4)))
        same = all(
            np.array_equal(one, other)
            for one, other in zip(local[-1].results, ray[-1].results, strict=True)
        )
        if not same:
            raise SystemExit("The embeddings differ between the engines.")
    return local, ray, reference


def compare_map(settings, paths):
    items = [paths[number % len(paths)] for number in range(settings.images * settings.times)]
    local, ray = [], []
    for number in range(settings.rounds):
        engines = [(LocalEngine(), local), (RayEngine(), ray)]
        for engine, kept in engines if number % 2 == 0 else reversed(engines):
            kept.append(measured(engine.map(digest_of_pixels, items)))
        if local[-1].results != ray[-1].results:
            raise SystemExit("The digests differ between the engines.")
    return local, ray


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=400, help="images a round")
    parser.add_argument(
        "--times", type=int, default=30, help="the plain map does so many times as many"
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tower = str(Path(folder) / "tower.onnx")
        random_tower(tower, settings.blocks)
        paths = photographs(folder, 32)
        started = time.perf_counter()
        library = connect_ray("")
        start = time.perf_counter() - started
        print(
            f"Ray's start took {start:.1f} s; {settings.rounds} rounds; results of both engines are compared bit for bit.\n"
        )
        print(HEADER, flush=True)
        try:
            local, ray, reference = compare_embedding(settings, paths, tower)
            print(row(f"embed {settings.images} JPEGs", local, ray, start, reference), flush=True)
            local, ray = compare_map(settings, paths)
            print(
                row(f"decode {settings.images * settings.times} JPEGs", local, ray, start, None),
                flush=True,
            )
        finally:
            library.shutdown()


if __name__ == "__main__":
    main()
