"""Embedding throughput from JPEG files against onnxruntime alone on tensors already decoded, in the same run, on every engine.

    python benchmarks/throughput.py --tower image_tower.onnx --engine local --engine ray

Without a tower a graph with random weights and about the cost of a CLIP ViT-B/32 is built. Turns of a few batches of both are taken
one after the other, as other work on the machine changes the speed from second to second. Between its turns the pipeline rests: its
model waits at a gate, and its decoders have filled their queue. A turn ends when its batches are out and as many images decoded.
"""

import argparse
import io
import os
import select
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from weakspot.core.registry import Sendable, part_class
from weakspot.data.embed import EmbedderModel, ImageRequest, map_images
from weakspot.data.images import content_hash, decode_image
from weakspot.models.loading import LoadedOnce
from weakspot.models.onnx.session import make_session
from weakspot.models.preprocessing import Preprocessing

SIDE = 224
WARM_UP = 2
QUIET_SECONDS = 1.0
SIZES = {"12 megapixels": (4000, 3000), "small": (500, 375)}
PIXELS = Preprocessing(
    height=SIDE,
    width=SIDE,
    resize_side=SIDE,
    mean=(0.48145466, 0.4578275, 0.40821073),
    std=(0.26862954, 0.26130258, 0.27577711),
)


class Gate(Sendable):
    """Lets a batch through for every token, also in another process, and counts images that were prepared."""

    def __init__(self, folder):
        self._names = [str(Path(folder) / name) for name in ("go", "prepared")]
        for name in self._names:
            os.mkfifo(name)

    @LoadedOnce
    def _pipes(self):
        return [os.open(name, os.O_RDWR) for name in self._names]

    def open_for(self, n_batches):
        """Let so many batches through."""
        os.write(self._pipes[0], b"." * n_batches)

    def wait(self):
        """Wait for a token."""
        os.read(self._pipes[0], 1)

    def note_prepared(self):
        """Count an image."""
        os.write(self._pipes[1], b".")

    def take_prepared(self, n_images, *, patience=60.0):
        """Wait until so many more images were prepared, or for as long as nothing comes."""
        while n_images > 0 and select.select([self._pipes[1]], [], [], patience)[0]:
            n_images -= len(os.read(self._pipes[1], n_images))


class Tower(Sendable):
    """An ONNX image tower as an embedder."""

    encoder_id = "benchmark"
    image_side = SIDE
    has_text = False

    def __init__(self, path, *, spin, blocks=0, gate=None):
        self._path, self._spin, self._blocks, self._gate = str(path), spin, blocks, gate
        self.dimension = self.run([np.zeros((3, SIDE, SIDE), dtype=np.float32)]).shape[1]

    @LoadedOnce
    def _session(self):
        if not self._blocks:
            return make_session(Path(self._path), spin=self._spin)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry(
            "session.intra_op.allow_spinning", "1" if self._spin else "0"
        )
        options.add_session_config_entry("session.dynamic_block_base", str(self._blocks))
        return onnxruntime.InferenceSession(self._path, options)

    def prepare(self, image):
        """Resize, crop and normalise as CLIP does."""
        ready = PIXELS.apply(image)
        if self._gate is not None:
            self._gate.note_prepared()
        return ready

    def embed_prepared(self, prepared):
        """Run the graph when the gate is open."""
        if self._gate is not None:
            self._gate.wait()
        return self.run(prepared)

    def run(self, prepared):
        """Run the graph."""
        return self._session.run(None, {self._session.get_inputs()[0].name: np.stack(prepared)})[
            0
        ].reshape(len(prepared), -1)


def photograph(size, seed):
    """An image with detail at every scale, so that its JPEG is about as large as a photograph's."""
    draw = np.random.default_rng(seed)
    total = np.zeros((size[1], size[0], 3), dtype=np.float32)
    for cells, strength in ((8, 60.0), (64, 25.0), (400, 14.0), (1600, 7.0)):
        noise = draw.normal(128, 50, size=(cells * 3 // 4, cells, 3)).clip(0, 255).astype(np.uint8)
        total += (
            (
                np.asarray(
                    Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC), dtype=np.float32
                )
                - 128
            )
            * strength
            / 50
        )
    return Image.fromarray((total + 128).clip(0, 255).astype(np.uint8))


def random_tower(path):
    """A chain of matrix products with about the work of a ViT-B/32: 50 tokens, 12 blocks of 768 x 9216."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(
            draw.normal(0, 0.02, size=(768, 3, 32, 32)).astype(np.float32), "patch"
        )
    ]
    nodes = [
        helper.make_node("Conv", ["pixels", "patch"], ["patches"], strides=[32, 32]),
        helper.make_node("Reshape", ["patches", "flat"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["x0"], perm=[0, 2, 1]),
    ]
    weights.append(numpy_helper.from_array(np.array([0, 768, -1]), "flat"))
    for block in range(12):
        for name, shape in (("up", (768, 4608)), ("down", (4608, 768))):
            weights.append(
                numpy_helper.from_array(
                    draw.normal(0, 0.02, size=shape).astype(np.float32), f"{name}{block}"
                )
            )
        nodes += [
            helper.make_node("MatMul", [f"x{block}", f"up{block}"], [f"u{block}"]),
            helper.make_node("Tanh", [f"u{block}"], [f"t{block}"]),
            helper.make_node("MatMul", [f"t{block}", f"down{block}"], [f"x{block + 1}"]),
        ]
    nodes.append(helper.make_node("ReduceMean", ["x12"], ["embeddings"], axes=[1], keepdims=0))
    inputs = [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])]
    outputs = [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["n", 768])]
    graph = helper.make_graph(nodes, "tower", inputs, outputs, weights)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )


def seconds_of(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def decode_times(data, repeats=5):
    plain = min(
        seconds_of(lambda: Image.open(io.BytesIO(data)).convert("RGB")) for _ in range(repeats)
    )
    scaled = min(seconds_of(lambda: decode_image(data, image_side=SIDE)) for _ in range(repeats))
    return plain, scaled


def requests_for(paths, n_images):
    hashes = [content_hash(path.read_bytes()) for path in paths]
    for number in range(n_images):
        place = number % len(paths)
        yield ImageRequest(position=number, location=str(paths[place]), content_hash=hashes[place])


def compare(engine, path, paths, settings, folder):
    """Return seconds of turns through the pipeline, and through onnxruntime alone with resting and with spinning threads."""
    gate = Gate(folder)
    resting, spinning = Tower(path, spin=False), Tower(path, spin=True)
    n_folds, turn = settings.rounds + WARM_UP, settings.turn
    # More than will be taken, so that for every image taken another one is decoded, up to the last.
    requests = requests_for(paths, settings.batch * turn * n_folds + 1000)
    gated = Tower(path, spin=settings.spin, blocks=settings.blocks, gate=gate)
    model = EmbedderModel(embedder=gated, batch_size=settings.batch)
    batches = map_images(requests, [model], engine=engine)
    decoded = [
        resting.prepare(decode_image(one.read_bytes(), image_side=SIDE).image) for one in paths
    ]
    tensors = [decoded[number % len(paths)] for number in range(settings.batch)]

    def through_pipeline(**patience):
        gate.open_for(turn)
        for _ in range(turn):
            next(batches)
        gate.take_prepared(settings.batch * turn, **patience)

    def alone(tower):
        for _ in range(turn):
            tower.run(tensors)

    through_pipeline()
    gate.take_prepared(10**6, patience=QUIET_SECONDS)
    turns = (through_pipeline, lambda: alone(resting), lambda: alone(spinning))
    found = []
    for number in range(n_folds):
        # Threads that spin go on for a moment after their turn, which must not always hit the same neighbour.
        order = ((0, 1, 2), (1, 0, 2))[number % 2]
        taken = {}
        for place in order:
            taken[place] = seconds_of(turns[place])
            time.sleep(0.2)
        found.append([taken[place] for place in range(3)])
    gate.open_for(1000)
    batches.close()
    return found[WARM_UP:]


def row(engine, name, rounds, settings):
    """The reference is the faster of the two ways to run onnxruntime alone."""
    whole, resting, spinning = (sum(seconds) for seconds in zip(*rounds, strict=True))
    faster = 1 if resting < spinning else 2
    n_images = settings.batch * settings.turn * len(rounds)
    ratio, median = (
        min(resting, spinning) / whole,
        statistics.median(turns[faster] / turns[0] for turns in rounds),
    )
    return f"| {engine} | {name} | {n_images / whole:.2f} | {n_images / min(resting, spinning):.2f} | {ratio:.3f} | {median:.3f} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tower", type=Path, help="ONNX image tower with input [n, 3, 224, 224]")
    parser.add_argument(
        "--engine",
        action="append",
        choices=("local", "processes", "ray"),
        help="repeatable; default: all",
    )
    parser.add_argument(
        "--size", action="append", choices=tuple(SIZES), help="repeatable; default: all"
    )
    parser.add_argument("--rounds", type=int, default=12, help="turns of each")
    parser.add_argument("--turn", type=int, default=4, help="batches a turn")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument(
        "--spin",
        action="store_true",
        help="let idle threads of onnxruntime keep a core busy in the pipeline",
    )
    parser.add_argument(
        "--blocks", type=int, default=0, help="session.dynamic_block_base of the pipeline's session"
    )
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = settings.tower or Path(folder) / "tower.onnx"
        if settings.tower is None:
            random_tower(path)
        print(
            f"{os.cpu_count()} cores, batches of {settings.batch}, turns of {settings.turn} batches, {settings.rounds} turns\n"
        )
        print(
            "| engine | images | pipeline, images/s | onnxruntime alone, images/s | ratio | median ratio |"
        )
        print("|---|---|---|---|---|---|")
        decoding = []
        for name in settings.size or SIZES:
            paths = [Path(folder) / f"{name}-{seed}.jpg" for seed in range(4)]
            for seed, place in enumerate(paths):
                photograph(SIZES[name], seed).save(place, quality=90)
            for engine in settings.engine or ("local", "processes", "ray"):
                built = part_class("engines", engine)(
                    n_workers=settings.workers, queue_depth=settings.depth
                )
                with tempfile.TemporaryDirectory() as gates:
                    print(
                        row(engine, name, compare(built, path, paths, settings, gates), settings),
                        flush=True,
                    )
            plain, scaled = decode_times(paths[0].read_bytes())
            decoding.append(
                f"| {name} | {os.path.getsize(paths[0]) // 1024} | {plain * 1000:.1f} | {scaled * 1000:.1f} |"
            )
        print(
            "\n| images | file, kB | whole decode, ms | scaled decode, ms |\n|---|---|---|---|\n"
            + "\n".join(decoding)
        )


if __name__ == "__main__":
    main()
