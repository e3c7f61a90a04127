"""A small network that says one thing of images, built once from the arrays of pinned wheels and run with onnxruntime.

It has the form of an embedder, so that the store of embeddings remembers what it said of each image.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from PIL import Image

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import settings_hash
from weakspot.backends.onnx_layers import INPUT
from weakspot.backends.onnx_session import make_session, run_session
from weakspot.backends.preprocessing import Preprocessing
from weakspot.backends.registry_source import RegistryFile, cache_folder, fetch_together
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ModelError
from weakspot.core.run import Progress
from weakspot.core.sending import Sendable


@dataclass(frozen=True, kw_only=True)
class NetworkSource:
    """Where a network comes from.

    Args:
        name: what it is called in messages and in ids.
        files: what is fetched; the first holds the weights.
        built: name and number of the graph; another one is built anew.
        images: how images become numbers.
        dimension: how many numbers it gives for an image.
    """

    name: str
    files: tuple[RegistryFile, ...]
    built: str
    images: Preprocessing
    dimension: int


class WitnessNetwork(Sendable, ABC):
    """Images to numbers in [0, 1]; nothing is fetched or loaded before the first image.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        progress: told the downloaded bytes and how many there are.
    """

    source: ClassVar[NetworkSource]

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._progress = progress

    @abstractmethod
    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        """Write the ONNX graph from what was fetched."""

    @property
    def encoder_id(self) -> str:
        weights = self.source.files[0].sha256[:12]
        images = settings_hash(self.source.images.as_settings())[:8]
        return f"witness:{self.source.name}:{self.source.built}@{weights}+images@{images}"

    @property
    def dimension(self) -> int:
        return self.source.dimension

    @property
    def image_side(self) -> int | None:
        return self.source.images.needed_side

    @property
    def has_text(self) -> bool:
        return False

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.source.images.apply(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return what the network says of prepared images [n, d]; they are no unit vectors."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        given = run_session(
            self._session, {INPUT: np.stack(prepared)}, where=f"the {self.source.name} network"
        )
        return np.concatenate([np.asarray(one, dtype=np.float32) for one in given], axis=1)

    def embed_texts(self, texts: Sequence[str]) -> NoReturn:
        raise ModelError(
            "This network takes no phrases.", where=self.encoder_id, given=list(texts)
        )

    @LoadedOnce
    def _session(self) -> Any:
        weights = self.source.files[0].sha256
        path = cache_folder(self._cache_dir) / "made" / f"{weights}-{self.source.built}.onnx"
        if path.is_file():
            try:
                return make_session(path, threads=self._threads)
            except ModelError:
                path.unlink()
        fetched = fetch_together(
            self.source.files, cache_dir=self._cache_dir, progress=self._progress
        )
        self.build(fetched, path)
        return make_session(path, threads=self._threads)
