"""Text in images: where it stands and what it says, with the detection and recognition networks of PP-OCR.

After Liao and others, *Real-time Scene Text Detection with Differentiable Binarization* (2020): the detector gives a map of text
cores, of which every connected part is a line once it is grown by its own thickness; recognition reads a line as a sequence of
characters with blanks between (Graves and others, *Connectionist Temporal Classification*, 2006).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.registry import Sendable
from weakspot.core.run import Progress
from weakspot.models.loading import LoadedOnce
from weakspot.models.onnx.session import make_session, run_session
from weakspot.models.packages.registry_source import fetch_together
from weakspot.models.packages.wheel_member import RegistryFile

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
FILES = (DETECTOR, RECOGNISER)
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


class TextReader(Sendable):
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
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._providers = providers
        self._side = side
        self._progress = progress

    @property
    def witness_id(self) -> str:
        parts = "+".join(file.sha256[:12] for file in FILES)
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
            self._sessions[0], {"x": _numbers(small)[None]}, where="the text detector"
        )
        boxes = list(_boxes(np.asarray(given[0])[0, 0]))
        return sorted(boxes, key=lambda box: -box[1])

    def _recognise(self, image: Image.Image, box: _Box) -> TextLine:
        corners, share = box
        pixels = _numbers(_cut_out(image, corners))
        given = run_session(self._sessions[1], {"x": pixels[None]}, where="the text recogniser")
        text, confidence = read_characters(np.asarray(given[0])[0], self._characters)
        across, down = corners.mean(axis=0)
        return TextLine(
            text=text, confidence=confidence, share=share, centre=(float(across), float(down))
        )

    @LoadedOnce
    def _sessions(self) -> tuple[Any, Any]:
        paths = fetch_together(FILES, cache_dir=self._cache_dir, progress=self._progress)
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


def _numbers(image: Image.Image) -> FloatArray:
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
