import json
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from PIL import Image
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import Interval
from weakspot.core.heads import Head, TrainingSelection
from weakspot.core.repairs import GroupChange, GroupKind, RepairPlan
from weakspot.core.samples import SampleSet
from weakspot.data.images import decode_image
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.models.torch.classifier import TorchClassifier
from weakspot.repair.bench import RepairBench
from weakspot.repair.export import export_repair
from weakspot.run.settings import Settings

NAMES = ("apple", "pear")
SIDE = 12
AFTER = Head(
    weights=np.array([[-1.0, 2.0, 0.5], [1.0, -2.0, -1.0]], np.float32),
    bias=np.array([-0.2, 0.4], np.float32),
)
SLICE = slice_of("green", contrast="green")


def write_onnx(path, *, batch="n", layout="channels-first", channels=3, kind=np.float32):
    first = layout == "channels-first"
    shape = [batch, channels, SIDE, SIDE] if first else [batch, SIDE, SIDE, channels]
    nodes = [
        *([] if first else [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2])]),
        helper.make_node("Cast", ["x" if first else "t"], ["c"], to=onnx.TensorProto.FLOAT),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1),
    ]
    weights = np.array([[1, -1, 0.2], [-1, 1, 0.1]], np.float32)[:, :channels]
    constants = {"w": weights, "b": np.zeros(2, np.float32)}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(
                "x", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape
            )
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [batch, 2])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))
    return path


class _Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.last.weight.copy_(torch.tensor([[1, -1, 0.2], [-1, 1, 0.1]]))
            self.last.bias.zero_()

    def forward(self, x):
        return self.last(x.mean(dim=(2, 3)))


def write_images(folder):
    """Photographs of every sort: sizes, formats, turned by EXIF, transparent, grey, with a palette, and much too large."""
    folder.mkdir()
    numbers = np.random.default_rng(0)
    for place, (width, height) in enumerate([(40, 30), (31, 47), (200, 130), (12, 12), (13, 90)]):
        noise = numbers.integers(0, 256, (height, width, 3), dtype=np.uint8)
        noise[..., place % 2] //= 2
        image = Image.fromarray(noise)
        image.save(folder / f"{place}.png")
        exif = Image.Exif()
        exif[0x0112] = place + 2
        image.save(folder / f"{place}.jpg", exif=exif, quality=85)
        image.convert("L").save(folder / f"grey{place}.png")
        image.convert("P").save(folder / f"palette{place}.png")
        image.putalpha(Image.fromarray(noise[..., 2]))
        image.save(folder / f"clear{place}.png")
    return sorted(folder.iterdir())


def _answers(classifier, paths):
    images = [
        decode_image(path.read_bytes(), image_side=classifier.image_side).image for path in paths
    ]
    return classifier.classify([classifier.prepare(image) for image in images])


def _change(kind, group, before, after, rows):
    nothing = Interval(low=0.0, high=1.0)
    return GroupChange(
        group=group, kind=kind, n_samples=len(rows), right_before=int(before[rows].sum()), right_after=int(after[rows].sum()),
        gained=0, lost=0, interval_before=nothing, interval_after=nothing, p_value=1.0,
    )  # fmt: skip


def export(folder, classifier, paths, *, locations=None, off_by=0, head=AFTER, **columns):
    labels = np.arange(len(paths)) % 2
    green = np.arange(len(paths)) % 4 == 0
    given = {"splits": ["test"] * len(paths), "labels": labels.tolist(), **columns}
    dataset = dataset_from_columns(
        class_names=NAMES,
        locations=locations or [str(path) for path in paths],
        metadata={"green": green.tolist()},
        **given,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(len(paths)))
    answers = _answers(classifier, paths)
    order = [classifier.class_names.index(name) for name in NAMES]
    before = answers.probabilities[:, order].argmax(axis=1) == labels
    after = head.probabilities(answers.features).argmax(axis=1) == labels
    groups = {
        (GroupKind.OVERALL, "overall"): np.arange(len(paths)),
        (GroupKind.SLICE, SLICE.title): np.flatnonzero(green),
        (GroupKind.COMPLEMENT, "apple: the rest"): np.flatnonzero(~green & (labels == 0)),
        (GroupKind.CLASS, "apple"): np.flatnonzero(labels == 0),
        (GroupKind.CLASS, "pear"): np.flatnonzero(labels == 1),
    }
    changes = [_change(*key, before, after, rows) for key, rows in groups.items()]
    changes[0] = changes[0].model_copy(update={"right_after": changes[0].right_after + off_by})
    nothing = TrainingSelection(rows=np.zeros(0, np.int64), weights=np.zeros(0), note="")
    prepared = SimpleNamespace(samples=samples, classifier=classifier)
    bench = RepairBench(prepared, Settings(), (SLICE,))
    bench.__dict__["measured"] = samples
    exported = export_repair(
        folder,
        bench,
        head=head,
        selection=nothing,
        plan=RepairPlan(slice_ids=(SLICE.slice_id,), repairer="slice-balanced"),
        changes=changes,
    )
    return exported, changes


def run_script(folder, tmp_path):
    return subprocess.run(
        [sys.executable, "-I", str(folder / "reproduce.py")],
        capture_output=True, text=True, check=False, cwd=tmp_path.parent,
    )  # fmt: skip


SETTINGS = {
    "usual": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
    "squeezed, bgr": {"crop": "none", "resample": "bilinear", "colour": "bgr", "scale": 1.0},
    "from a larger one": {"resize_side": 17, "resample": "lanczos"},
}


@pytest.mark.parametrize("kind", ["onnx", "torchscript"])
@pytest.mark.parametrize("name", SETTINGS)
def test_reproduction__script_gives_the_claimed_figures(tmp_path, kind, name):
    paths, names = write_images(tmp_path / "photos"), ["pear", "apple"]
    if kind == "onnx":
        path = write_onnx(tmp_path / "model.onnx")
        classifier = OnnxClassifier(path=path, class_names=names, **SETTINGS[name])
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*torch.jit.*deprecated")
            torch.jit.script(_Pooled()).save(str(tmp_path / "model.pt"))
        classifier = TorchClassifier(
            path=tmp_path / "model.pt", class_names=names, image_side=SIDE, **SETTINGS[name]
        )
    exported, changes = export(tmp_path / "out", classifier, paths)
    assert exported[1] == ()
    done = run_script(tmp_path / "out", tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{one.group}: {one.right_before} of {one.n_samples} right before, {one.right_after} after; as claimed"
        for one in changes
        if one.kind is not GroupKind.COMPLEMENT
    ]
    assert done.returncode == 0
    assert len({one.right_before for one in changes} | {one.right_after for one in changes}) > 2


@pytest.mark.parametrize(
    ("graph", "settings"),
    [
        ({}, {"crop": "none", "resample": "nearest", "std": [0.3, 0.5, 0.7]}),
        ({"layout": "channels-last"}, {"colour": "bgr", "mean": [0.1, 0.2, 0.3]}),
        ({"kind": np.uint8}, {}),
        ({"channels": 1, "batch": 3}, {"mean": 0.4, "std": 0.2}),
        ({"kind": np.float16}, {"resize_side": 25, "resample": "hamming"}),
    ],
)
def test_reproduction__images_become_the_same_numbers_bit_for_bit(tmp_path, graph, settings):
    paths = write_images(tmp_path / "photos")
    classifier = OnnxClassifier(
        path=write_onnx(tmp_path / "model.onnx", **graph), class_names=NAMES, **settings
    )
    n_features = graph.get("channels", 3)
    export(
        tmp_path / "out", classifier, paths,
        head=Head(weights=AFTER.weights[:, :n_features], bias=AFTER.bias),
    )  # fmt: skip
    script = (tmp_path / "out" / "reproduce.py").read_text().split("def right")[0]
    space = {"__file__": str(tmp_path / "out" / "reproduce.py")}
    exec(compile(script, "reproduce.py", "exec"), space)  # noqa: S102 - it is our own text that is tested
    for path in paths:
        image = decode_image(path.read_bytes(), image_side=classifier.image_side).image
        expected = classifier.prepare(image)
        found = space["prepare"](path)[0]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=path.name)
    assert run_script(tmp_path / "out", tmp_path).returncode == 0


def test_reproduction__preprocessing_in_numbers_and_words(tmp_path):
    paths = write_images(tmp_path / "photos")
    classifier = OnnxClassifier(
        path=write_onnx(tmp_path / "model.onnx"), class_names=NAMES, resize_side=17, mean=0.5
    )
    export(tmp_path / "out", classifier, paths)
    facts = json.loads((tmp_path / "out" / "preprocessing.json").read_text())
    assert (facts["height"], facts["resize_side"], facts["resample"]) == (12, 17, "bicubic")
    assert (facts["mean"], facts["class_names"]) == ([0.5, 0.5, 0.5], list(NAMES))
    text = (tmp_path / "out" / "README.txt").read_text()
    assert "The shorter side is resized to 17 pixels (bicubic; the longer side is rounded" in text
    assert "minus [0.5, 0.5, 0.5], divided by [1.0, 1.0, 1.0]; float32" in text
    assert "reproduce.py: gives the figures before and after again" in text


def test_reproduction__images_in_an_archive_are_copied(tmp_path):
    paths = write_images(tmp_path / "photos")
    classifier = OnnxClassifier(path=write_onnx(tmp_path / "model.onnx"), class_names=NAMES)
    pack, places = tmp_path / "pack.bin", []
    with pack.open("wb") as stream:
        for path in paths:
            places.append(f"{pack}#bytes={stream.tell()}-{path.stat().st_size}")
            stream.write(path.read_bytes())
    export(tmp_path / "out", classifier, paths, locations=places)
    assert len(list((tmp_path / "out" / "test_images").iterdir())) == len(paths)
    assert run_script(tmp_path / "out", tmp_path).returncode == 0


def test_reproduction__no_image__says_why_there_is_no_script(tmp_path):
    paths = write_images(tmp_path / "photos")
    classifier = OnnxClassifier(path=write_onnx(tmp_path / "model.onnx"), class_names=NAMES)
    exported, _ = export(
        tmp_path / "out", classifier, paths, locations=[None, *map(str, paths[1:])]
    )
    assert exported[1] == (
        "reproduce.py was not written: not every measured sample has an image of its own.",
    )
    assert not (tmp_path / "out" / "reproduce.py").exists()
    assert (tmp_path / "out" / "preprocessing.json").exists()
