"""How often every image is read and decoded on its way through a run, and what that costs.

    python benchmarks/one_pass.py --set 2000x4000x3000 --set 5000x320x240 [--way run] [--way stages] [--json figures.json]

A set is NUMBERxWIDTHxHEIGHT: so many JPEGs of that size in a temporary folder. Forty different photographs are encoded once; every
further file gets a comment segment of its own, so that no two contents are the same. The project has a small ONNX classifier and a
small ONNX embedder without text, so that reading and decoding is most of the work. It fails on some images, so that the report
has a slice to show.

`run`: what `weakspot run` does, in a fresh process: all stages, then the report. `stages`: the same through `ingest`, `embed`,
`discover`, `verify` and `report` one after the other, in a fresh process and a fresh project. Opened files are counted by an audit
hook and decodes where Pillow and OpenCV decode, so nothing here depends on how weakspot is built inside.
"""

import argparse
import importlib.util
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageFile

N_BASES, N_COLD = 40, 6
CLASSES = ("warm", "cold")
SIDE, QUALITY = 224, 85
FULL_SHARE = 0.75
WAYS = ("run", "stages")
SETTINGS = """\
seed = 1
[data]
source = "{images}"
kind = "image-folder"
[classifier]
name = "onnx"
options = {{path = "classifier.onnx", class_names = ["cold", "warm"], mean = [0.0, 0.0, 0.0], std = [1.0, 1.0, 1.0]}}
[embedder]
name = "onnx-pair"
options = {{folder = "embedder"}}
[discover]
methods = ["directions"]
[engine]
name = "local"
"""


# --- images and models


def draw_photograph(number: int, width: int, height: int) -> bytes:
    """One of the different photographs as JPEG: soft shapes, grain, and a warm or a cold tint."""
    draws, size = np.random.default_rng(number), (width, height)
    soft = Image.fromarray(draws.integers(60, 190, (12, 16, 3), dtype=np.uint8))
    grain = draws.integers(0, 256, (height // 4 + 1, width // 4 + 1), dtype=np.uint8)
    rough = Image.fromarray(grain).resize(size, Image.Resampling.BILINEAR).convert("RGB")
    image = Image.blend(soft.resize(size, Image.Resampling.BICUBIC), rough, 0.12)
    # The tint is that of the class, but for some of the first class, on which the classifier fails.
    is_warm = number % 2 == 0 and number >= 2 * N_COLD
    tint = Image.new("RGB", size, (255, 120, 40) if is_warm else (40, 120, 255))
    stream = io.BytesIO()
    Image.blend(image, tint, 0.25).save(stream, format="jpeg", quality=QUALITY)
    return stream.getvalue()


def add_comment(data: bytes, number: int) -> bytes:
    """The JPEG with a comment of its own behind its first marker."""
    comment = f"image {number:09d}".encode()
    return data[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + data[2:]


def write_images(folder: Path, number: int, width: int, height: int) -> int:
    """Write so many JPEGs in a folder per class, and return their bytes."""
    total = 0
    for base in range(min(N_BASES, number)):
        place = folder / CLASSES[base % 2]
        place.mkdir(parents=True, exist_ok=True)
        data = draw_photograph(base, width, height)
        for one in range(base, number, N_BASES):
            total += (place / f"{one:07d}.jpg").write_bytes(add_comment(data, one))
    return total


def write_project(folder: Path, images: Path) -> None:
    (folder / "embedder").mkdir(parents=True)
    tint = np.array([[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]]) * 20
    (folder / "classifier.onnx").write_bytes(build_network(tint, cells=1, ends_in="Softmax"))
    mixed = np.random.default_rng(0).normal(size=(64, 48))
    (folder / "embedder" / "image.onnx").write_bytes(build_network(mixed, cells=4))
    settings = SETTINGS.format(images=images.as_posix())
    (folder / "weakspot.toml").write_text(settings, encoding="utf-8")


def build_network(weights: np.ndarray, *, cells: int, ends_in: str = "") -> bytes:
    """A network: the mean colour of so many by so many cells, and a linear layer on it."""
    constants = {"weights": weights, "bias": np.zeros(len(weights))}
    pool = [SIDE // cells] * 2
    nodes = [
        helper.make_node("AveragePool", ["pixels"], ["pooled"], kernel_shape=pool, strides=pool),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["scores"], transB=1),
    ]
    if ends_in:
        nodes.append(helper.make_node(ends_in, ["scores"], ["shares"], axis=1))
    shapes = {"pixels": ["batch", 3, SIDE, SIDE], nodes[-1].output[0]: ["batch", len(weights)]}
    given, answer = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    tensors = [
        numpy_helper.from_array(np.asarray(value, np.float32), name)
        for name, value in constants.items()
    ]
    graph = helper.make_graph(nodes, "small", [given], [answer], tensors)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


# --- counting, in the process that is measured


class Counts:
    """Counts what this process does with images below a folder, from when it is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder) + os.sep
        self._lock = threading.Lock()
        self._counts = Counter(dict.fromkeys(("reads", "decodes", "full decodes"), 0))
        sys.addaudithook(self._audit)
        self._watch_pillow()
        self._watch_opencv()

    def _count(self, *names: str) -> None:
        with self._lock:
            self._counts.update(names)

    def _audit(self, event: str, arguments: tuple) -> None:
        path = arguments[0] if event == "open" else None
        if isinstance(path, (str, os.PathLike)) and str(path).startswith(self._folder):
            self._count("reads")

    def _watch_pillow(self) -> None:
        start, load = ImageFile.ImageFile.__init__, ImageFile.ImageFile.load

        def start_counted(image: ImageFile.ImageFile, *arguments, **named):
            start(image, *arguments, **named)
            image._benchmark_width = image.size[0]

        def load_counted(image: ImageFile.ImageFile, *arguments, **named):
            if image.tile:
                whole = getattr(image, "_benchmark_width", image.size[0])
                is_full = image.size[0] >= FULL_SHARE * whole
                self._count("decodes", *(["full decodes"] if is_full else []))
            return load(image, *arguments, **named)

        ImageFile.ImageFile.__init__ = start_counted
        ImageFile.ImageFile.load = load_counted

    def _watch_opencv(self) -> None:
        if importlib.util.find_spec("cv2") is None:
            return
        import cv2

        def wrap(original):
            def decode(*arguments, **named):
                self._count("decodes", "full decodes")
                return original(*arguments, **named)

            return decode

        for name in ("imdecode", "imread", "imdecodemulti"):
            if hasattr(cv2, name):
                setattr(cv2, name, wrap(getattr(cv2, name)))

    def now(self) -> Counter:
        """Everything that is counted, up to now; processor seconds include child processes."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        io_lines = Path("/proc/self/io").read_text().splitlines()
        with self._lock:
            now = Counter(self._counts)
        now["seconds"] = time.perf_counter()
        now["cpu_seconds"] = sum(one.ru_utime + one.ru_stime for one in used)
        now["read_bytes"] = int(dict(line.split(": ") for line in io_lines)["rchar"])
        return now


def peak_mb() -> int:
    """The most memory that this process held since the last call, in MB."""
    status = Path("/proc/self/status").read_text()
    most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return most // 1024


def measure(folder: Path, images: Path, way: str) -> dict:
    """Run a project in this process and return what every step took, and every stage in it."""
    import weakspot

    counts = Counts(images)
    marks: list[tuple[str, Counter]] = []

    def progress(stage: str, _done: int, _total: int | None) -> None:
        if marks[-1][0] != stage:
            marks.append((stage, counts.now()))

    steps: dict[str, dict] = {}
    peak_mb()
    marks.append(("opening", counts.now()))
    project = weakspot.Project.open(folder, progress=progress)
    names = {"run": ("run",), "stages": ("ingest", "embed", "discover", "verify")}[way]
    answer = None
    for name in (*names, "report"):
        marks[:] = [("before the first stage", counts.now())]
        done = getattr(project, name)()
        answer = answer if name == "report" else done
        marks.append(("", counts.now()))
        steps[name] = {
            **subtract(marks[0][1], marks[-1][1]),
            "peak_mb": peak_mb(),
            "within": split_by_stage(marks),
        }
    return {"way": way, "steps": steps, "n_published": len(answer.published())}


def subtract(before: Counter, after: Counter) -> dict[str, float]:
    return {name: round(after[name] - before[name], 3) for name in after}


def split_by_stage(marks: list[tuple[str, Counter]]) -> dict[str, Counter]:
    """What came between the first words about one stage and the first about the next; the rest of a step goes to its last stage."""
    found: dict[str, Counter] = {}
    for (name, start), (_, end) in zip(marks, marks[1:], strict=False):
        found.setdefault(name, Counter()).update(subtract(start, end))
    return found


# --- the table


def run_set(asked: argparse.Namespace, described: str) -> list[dict]:
    """Make a set of images, measure every way on it, and remove it."""
    number, width, height = (int(part) for part in described.lower().split("x"))
    work = Path(tempfile.mkdtemp(prefix="one-pass-", dir=asked.folder))
    images, found = work / "images", []
    try:
        total = write_images(images, number, width, height)
        facts = {"n_images": number, "width": width, "height": height}
        facts["mean_bytes"] = round(total / number)
        for way in asked.way or WAYS:
            write_project(work / way, images)
            load = round(os.getloadavg()[0], 1)
            command = [sys.executable, __file__, "--child", way]
            command += ["--folder", str(work / way), "--images", str(images)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{way} failed:\n{done.stderr[-4000:]}")
            told = json.loads(done.stdout.splitlines()[-1])
            found.append({**facts, "load_before": load, **told})
            print_way(found[-1])
        return found
    finally:
        shutil.rmtree(work)


def print_way(one: dict) -> None:
    """Print what one way took, a line for each step and each stage in it."""
    number, steps = one["n_images"], one["steps"]
    print(
        f"\n{number:,} JPEGs of {one['width']} x {one['height']} ({one['mean_bytes'] / 1e6:.2f} MB each), {one['way']}, "
        f"load before {one['load_before']}, {one['n_published']} slices published; reads and decodes are per image"
    )
    heads = ("seconds", "CPU s", "reads", "decodes", "full", "MB read", "peak MB")
    print(" " * 24 + "".join(f"{head:>9}" for head in heads))
    total: Counter = Counter()
    for name, step in steps.items():
        within = step["within"]
        print_line(name, step, number, peak=step["peak_mb"])
        for stage, inner in within.items() if len(within) > 1 else ():
            print_line(f"  {stage}", inner, number)
        total.update({key: value for key, value in step.items() if key != "within"})
    print_line("all", total, number, peak=max(step["peak_mb"] for step in steps.values()))


def print_line(name: str, step: dict, number: int, *, peak: int | str = "") -> None:
    shares = (step[key] / number for key in ("reads", "decodes", "full decodes"))
    numbers = [step["seconds"], step["cpu_seconds"], *shares]
    cells = "".join(f"{value:>9.2f}" for value in numbers)
    print(f"{name[:23]:<24}{cells}{step['read_bytes'] / 1e6:>9.0f}{peak:>9}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    sets = ["200x4000x3000", "1000x320x240"]
    add("--set", action="append", dest="sets", help=f"repeatable; {' and '.join(sets)} by default")
    add("--way", action="append", choices=WAYS, help="repeatable; both by default")
    add("--folder", type=Path, help="where the temporary folder is made")
    add("--json", type=Path, help="also write everything to this file")
    add("--child", choices=WAYS, help=argparse.SUPPRESS)
    add("--images", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(measure(asked.folder, asked.images, asked.child)))
        return
    found = [one for described in asked.sets or sets for one in run_set(asked, described)]
    if asked.json:
        told = {"n_cores": os.cpu_count(), "sets": found}
        asked.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
