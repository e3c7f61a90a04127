"""A small network that says one thing of images, built once from the arrays of pinned wheels and run with onnxruntime."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import settings_hash
from weakspot.backends.onnx.layers import INPUT
from weakspot.backends.onnx.session import make_session, run_session
from weakspot.backends.packages.registry_source import RegistryFile, cache_folder, fetch_together
from weakspot.backends.preprocessing import Preprocessing
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
    """

    name: str
    files: tuple[RegistryFile, ...]
    built: str
    images: Preprocessing


class WitnessNetwork(Sendable, ABC):
    """Images to numbers, and to texts that the store keeps; nothing is fetched or loaded before the first image.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.
    """

    source: ClassVar[NetworkSource]

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._providers = providers
        self._progress = progress

    @abstractmethod
    def build(self, fetched: Mapping[RegistryFile, Path], target: Path) -> None:
        """Write the ONNX graph from what was fetched."""

    @abstractmethod
    def write_row(self, numbers: FloatArray) -> str:
        """Return what is kept of the numbers of one image."""

    @property
    def witness_id(self) -> str:
        weights = self.source.files[0].sha256[:12]
        images = settings_hash(self.source.images.as_settings())[:8]
        return f"witness:{self.source.name}:{self.source.built}@{weights}+images@{images}"

    @property
    def image_side(self) -> int | None:
        return self.source.images.needed_side

    def look(self, images: Sequence[Image.Image]) -> FloatArray:
        """Return what the network gives for images [n, d], one by one, so that no image depends on its neighbours."""
        return np.stack([self._numbers(self.source.images.apply(image)) for image in images])

    def speak(self, images: Sequence[Image.Image]) -> list[str]:
        """Return what the network says of each image, as one text."""
        return [self.write_row(numbers) for numbers in self.look(images)] if images else []

    def _numbers(self, prepared: AnyArray) -> FloatArray:
        where = f"the {self.source.name} network"
        given = run_session(self._session, {INPUT: prepared[None]}, where=where)
        return np.concatenate([np.asarray(one, dtype=np.float32)[0] for one in given])

    @LoadedOnce
    def _session(self) -> Any:
        weights = self.source.files[0].sha256
        path = cache_folder(self._cache_dir) / "made" / f"{weights}-{self.source.built}.onnx"
        if path.is_file():
            try:
                return make_session(path, threads=self._threads, providers=self._providers)
            except ModelError:
                path.unlink()
        fetched = fetch_together(
            self.source.files, cache_dir=self._cache_dir, progress=self._progress
        )
        self.build(fetched, path)
        return make_session(path, threads=self._threads, providers=self._providers)


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
