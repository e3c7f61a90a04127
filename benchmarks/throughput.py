"""Embedding throughput from JPEG files against onnxruntime alone on tensors already decoded, in the same run.

    python benchmarks/throughput.py --tower image_tower.onnx

Without a tower a graph with random weights and about the cost of a CLIP ViT-B/32 is built. Batches of both are taken in turn, as
other work on the machine changes the speed from second to second.
"""

import argparse
import io
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.backends.onnx_session import make_session
from weakspot.embed.encode import PictureRequest, encode_pictures
from weakspot.engine.local import LocalEngine
from weakspot.media.pictures import content_hash, decode_picture

SIDE = 224
WARM_UP = 2
SIZES = {"12 megapixels": (4000, 3000), "small": (500, 375)}
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32)


class Tower:
    """An ONNX image tower as an embedder."""

    encoder_id = "benchmark"
    picture_side = SIDE
    has_text = False

    def __init__(self, path, *, spin):
        self._session = make_session(Path(path), spin=spin)
        self._input = self._session.get_inputs()[0].name
        self.dimension = self.embed_prepared([np.zeros((3, SIDE, SIDE), dtype=np.float32)]).shape[1]

    def prepare(self, picture):
        """Resize, crop and normalise as CLIP does."""
        scale = SIDE / min(picture.size)
        size = (max(SIDE, round(picture.width * scale)), max(SIDE, round(picture.height * scale)))
        left, top = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
        resized = picture.resize(size, Image.Resampling.BICUBIC).crop((left, top, left + SIDE, top + SIDE))
        scaled = (np.asarray(resized, dtype=np.float32) * np.float32(1 / 255) - MEAN) / DEVIATION
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))

    def embed_prepared(self, prepared):
        """Run the graph."""
        return self._session.run(None, {self._input: np.stack(prepared)})[0].reshape(len(prepared), -1)


@dataclass
class Round:
    """How long one round took."""

    seconds: float
    processor_seconds: float


def photograph(size, seed):
    """A picture with detail at every scale, so that its JPEG is about as large as a photograph's."""
    draw = np.random.default_rng(seed)
    total = np.zeros((size[1], size[0], 3), dtype=np.float32)
    for cells, strength in ((8, 60.0), (64, 25.0), (400, 14.0), (1600, 7.0)):
        noise = draw.normal(128, 50, size=(cells * 3 // 4, cells, 3)).clip(0, 255).astype(np.uint8)
        total += (np.asarray(Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC), dtype=np.float32) - 128) * strength / 50
    return Image.fromarray((total + 128).clip(0, 255).astype(np.uint8))


def random_tower(path):
    """A chain of matrix products with about the work of a ViT-B/32: 50 tokens, 12 blocks of 768 x 9216."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    weights = [numpy_helper.from_array(draw.normal(0, 0.02, size=(768, 3, 32, 32)).astype(np.float32), "patch")]
    nodes = [
        helper.make_node("Conv", ["pixels", "patch"], ["patches"], strides=[32, 32]),
        helper.make_node("Reshape", ["patches", "flat"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["x0"], perm=[0, 2, 1]),
    ]
    weights.append(numpy_helper.from_array(np.array([0, 768, -1]), "flat"))
    for block in range(12):
        for name, shape in (("up", (768, 4608)), ("down", (4608, 768))):
            weights.append(numpy_helper.from_array(draw.normal(0, 0.02, size=shape).astype(np.float32), f"{name}{block}"))
        nodes += [
            helper.make_node("MatMul", [f"x{block}", f"up{block}"], [f"u{block}"]),
            helper.make_node("Tanh", [f"u{block}"], [f"t{block}"]),
            helper.make_node("MatMul", [f"t{block}", f"down{block}"], [f"x{block + 1}"]),
        ]
    nodes.append(helper.make_node("ReduceMean", ["x12"], ["vectors"], axes=[1], keepdims=0))
    inputs = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])]
    outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 768])]
    graph = helper.make_graph(nodes, "tower", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def timed(function):
    started, processor = time.perf_counter(), time.process_time()
    function()
    return Round(time.perf_counter() - started, time.process_time() - processor)


def decode_times(data, repeats=5):
    plain = min(timed(lambda: Image.open(io.BytesIO(data)).convert("RGB")).seconds for _ in range(repeats))
    scaled = min(timed(lambda: decode_picture(data, picture_side=SIDE)).seconds for _ in range(repeats))
    return plain, scaled


def compare(tower, alone, paths, settings):
    """Return times of batches through the pipeline, and through onnxruntime alone with resting and with spinning threads, in turn.

    When a batch comes out of the pipeline, its decoder threads have filled their queue again, so they rest in others' turns.
    """
    n_pictures = settings.batch * (settings.rounds + WARM_UP)
    # More than will be taken, so that for every picture taken another one is decoded, up to the last.
    hashes = [content_hash(path.read_bytes()) for path in paths]
    requests = [
        PictureRequest(position=number, location=str(paths[place]), content_hash=hashes[place])
        for number, place in enumerate(np.arange(n_pictures + settings.depth + 64) % len(paths))
    ]
    engine = LocalEngine(n_workers=settings.workers, queue_depth=settings.depth)
    batches = encode_pictures(requests, tower, engine=engine, batch_size=settings.batch)
    decoded = [tower.prepare(decode_picture(path.read_bytes(), picture_side=SIDE).picture) for path in paths]
    tensors = [decoded[number % len(paths)] for number in range(settings.batch)]
    turns = (lambda: next(batches), lambda: tower.embed_prepared(tensors), lambda: alone.embed_prepared(tensors))
    rounds = []
    for number in range(settings.rounds + WARM_UP):
        # Threads that spin go on for a moment after their turn, which must not always hit the same neighbour.
        order = ((0, 1, 2), (1, 0, 2))[number % 2]
        found = {place: timed(turns[place]) for place in order}
        time.sleep(0.2)
        rounds.append([found[place] for place in range(3)])
    batches.close()
    return rounds[WARM_UP:]


def report(name, rounds, batch, decode):
    """The reference is the faster of the two ways to run onnxruntime alone."""
    whole, resting, spinning = (sum(turn.seconds for turn in turns) for turns in zip(*rounds, strict=True))
    faster = 1 if resting < spinning else 2
    work = sum(turns[1].processor_seconds for turns in rounds) / sum(turns[0].processor_seconds for turns in rounds)
    plain, scaled = decode
    return {
        "pictures": name,
        "pictures_per_second": round(batch * len(rounds) / whole, 2),
        "onnxruntime_alone_per_second": round(batch * len(rounds) / min(resting, spinning), 2),
        "ratio": round(min(resting, spinning) / whole, 3),
        "median_ratio": round(statistics.median(turns[faster].seconds / turns[0].seconds for turns in rounds), 3),
        "processor_time_ratio": round(work, 3),
        "plain_decode_ms": round(plain * 1000, 1),
        "scaled_decode_ms": round(scaled * 1000, 1),
        "scaled_decode_speedup": round(plain / scaled, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tower", type=Path, help="ONNX image tower with input [n, 3, 224, 224]")
    parser.add_argument("--rounds", type=int, default=20, help="batches of each")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--spin", action="store_true", help="let idle threads of onnxruntime keep a core busy in the pipeline")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = settings.tower or Path(folder) / "tower.onnx"
        if settings.tower is None:
            random_tower(path)
        tower, alone = Tower(path, spin=settings.spin), Tower(path, spin=True)
        for name, size in SIZES.items():
            paths = []
            for seed in range(4):
                paths.append(Path(folder) / f"{size[0]}-{seed}.jpg")
                photograph(size, seed).save(paths[-1], quality=90)
            found = report(name, compare(tower, alone, paths, settings), settings.batch, decode_times(paths[0].read_bytes()))
            print(json.dumps({**found, "file_kilobytes": os.path.getsize(paths[0]) // 1024, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
