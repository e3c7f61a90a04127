"""Teaches the mask gate of the embedded segmenter on scenes whose true masks are known, and writes its weights.

    PYTHONPATH=benchmarks python tools/learn_mask_gate.py WORK [n_scenes]

Half of the scenes teach the choice among regions, the other half the quality of finished masks, so that neither is judged on what
it has learnt. Objects and grounds of the half that figures are reported on (`benchmarks/segment.py`) take no part.
"""

import hashlib
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from segment_scenes import TrueScene, material, scenes
from sklearn.neural_network import MLPRegressor

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.models.embedded.segmenter import (
    GATE_PATH,
    GRID,
    PATCH_MODEL,
    WIDTH,
    Estimator,
    MaskGate,
    PatchTokens,
    found_object,
    known_tokens,
    seen,
    token_graph_path,
    window_around,
    write_token_graph,
)
from weakspot.models.onnx.session import make_session
from weakspot.models.packages import fetch

LEARNING_HALF = 0
SEED = 1
N_SCENES = 360
WANTED_OVERLAP = 0.8
CHOICE = {"n_hidden": 20, "decay": 0.3}
QUALITY = {"n_hidden": 8, "decay": 3.0}


class KeptTokens:
    """Tokens by content, on disk, so that learning again costs no second pass over the images."""

    def __init__(self, tokens: PatchTokens, folder: Path) -> None:
        self._tokens = tokens
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, image: Image.Image) -> FloatArray:
        path = self._folder / f"{hashlib.sha1(image.tobytes()).hexdigest()}.npy"
        if not path.exists():
            np.save(path, self._tokens.of(image).astype(np.float16))
        return np.load(path).astype(np.float32)


def regions_of(given: list[TrueScene], tokens_of: KeptTokens) -> tuple[FloatArray, FloatArray]:
    """Return the figures of all regions of scenes, seen whole and from nearer by, and their overlap with the truth."""
    figures, overlaps = [], []
    for scene in given:
        looks = [(scene.pixels, scene.truth)]
        window = window_around(on_grid(scene.truth) > 0.25, scene.pixels.shape)
        if window is not None:
            part = slice(window[0], window[2]), slice(window[1], window[3])
            looks.append((np.ascontiguousarray(scene.pixels[part]), scene.truth[part]))
        for pixels, truth in looks:
            regions, known = seen(pixels, tokens_of)
            figures += list(known)
            overlaps += [soft_overlap(one.cells, on_grid(truth)) for one in regions]
    return np.array(figures), np.array(overlaps)


def masks_of(
    given: list[TrueScene], tokens_of: KeptTokens, gate: MaskGate
) -> tuple[FloatArray, FloatArray]:
    figures, overlaps = [], []
    for scene in given:
        found = found_object(scene.pixels, tokens_of, gate)
        if found is not None:
            figures.append(found.figures)
            overlaps.append(overlap(found.coverage(scene.pixels) > 0.5, scene.truth > 0.5))
    return np.array(figures), np.array(overlaps)


def fitted(figures: FloatArray, overlaps: FloatArray, *, n_hidden: int, decay: float) -> Estimator:
    mean, spread = figures.mean(axis=0), figures.std(axis=0) + 1e-3
    network = MLPRegressor(
        hidden_layer_sizes=(int(n_hidden),),
        activation="tanh",
        alpha=decay,
        solver="lbfgs",
        max_iter=2000,
        random_state=0,
    ).fit((figures - mean) / spread, overlaps)
    return Estimator(
        mean=mean,
        spread=spread,
        hidden=network.coefs_[0],
        hidden_bias=network.intercepts_[0],
        out=network.coefs_[1][:, 0],
        out_bias=network.intercepts_[1],
    )


def least_quality(estimated: FloatArray, overlaps: FloatArray) -> float:
    """Return the lowest quality, in steps of 0.05, from which on masks overlap with the truth as wanted on the average."""
    steps = np.arange(0.3, 0.9, 0.05)
    enough = [
        step
        for step in steps
        if (estimated >= step).any() and overlaps[estimated >= step].mean() >= WANTED_OVERLAP
    ]
    return float(round(min(enough, default=steps[-1]), 2))


def on_grid(truth: FloatArray) -> FloatArray:
    return np.asarray(cv2.resize(truth, (GRID, GRID), interpolation=cv2.INTER_AREA))


def soft_overlap(cells: BoolArray, truth: FloatArray) -> float:
    own = cells.astype(np.float32)
    return float(np.minimum(own, truth).sum() / max(1e-6, np.maximum(own, truth).sum()))


def overlap(found: BoolArray, truth: BoolArray) -> float:
    return float((found & truth).sum() / max(1, (found | truth).sum()))


def main() -> None:
    work = Path(sys.argv[1])
    n_scenes = int(sys.argv[2]) if len(sys.argv) > 2 else N_SCENES
    if not token_graph_path().is_file():
        write_token_graph(fetch(PATCH_MODEL), token_graph_path())
    known = known_tokens(make_session(token_graph_path()))
    tokens_of = KeptTokens(PatchTokens(known=known, threads=1), work / "tokens")
    given = list(scenes(material(work, LEARNING_HALF), n_scenes, seed=SEED))
    half = len(given) // 2
    choice = fitted(*regions_of(given[:half], tokens_of), **CHOICE)
    blank = MaskGate(choice=choice, quality=choice, least_quality=0.0, known=known)
    figures, overlaps = masks_of(given[half:], tokens_of, blank)
    quality = fitted(figures, overlaps, **QUALITY)
    limit = least_quality(quality(figures), overlaps)
    named = {"choice": choice, "quality": quality}
    arrays = {
        f"{name}_{field}": np.asarray(getattr(one, field), dtype=np.float32)
        for name, one in named.items()
        for field in Estimator.__dataclass_fields__
    }
    np.savez(
        GATE_PATH,
        **arrays,
        known=known.astype(np.float32),
        least_quality=np.float32(limit),
    )
    used = quality(figures) >= limit
    sys.stdout.write(
        f"{len(overlaps)} masks, mean overlap {overlaps.mean():.3f}; used from {limit:g} on: {used.mean():.0%}, {overlaps[used].mean():.3f}"
        f" ({WIDTH} numbers a token)\n"
    )


if __name__ == "__main__":
    main()
