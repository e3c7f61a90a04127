"""How many images go through a network at once: by the memory of what computes."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from weakspot.backends.onnx.providers import Provider

PROCESSOR_BATCH = 8
GRAPHICS_BATCH = 32
LARGEST_BATCH = 256
_MEMORY_SHARE = 0.25
_BYTES_AN_IMAGE = 64 << 20  # activations of a vision transformer at 224 x 224, generously
_USUAL_SIDE = 224
_NVIDIA = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_PATIENCE_SECONDS = 10.0


def fitting_batch(provider: Provider, *, side: int | None, memory: int | None = None) -> int:
    """Return how many images share a call: a power of two, the same for the same machine whatever else runs on it.

    A processor gains nothing from more than 8.

    Args:
        provider: what computes.
        side: of the images, in pixels.
        memory: its bytes; by default those of the machine, None where it does not tell.

    >>> from weakspot.backends.onnx.providers import PROCESSOR
    >>> fitting_batch(PROCESSOR, side=224, memory=64 << 30), fitting_batch(PROCESSOR, side=224, memory=1 << 30)
    (8, 4)
    """
    most = LARGEST_BATCH if provider.has_half else PROCESSOR_BATCH
    known = memory if memory is not None else memory_of(provider)
    if known is None:
        return min(most, GRAPHICS_BATCH)
    scale = ((side or _USUAL_SIDE) / _USUAL_SIDE) ** 2
    n_images = int(_MEMORY_SHARE * known / (_BYTES_AN_IMAGE * scale))
    return min(most, 1 << max(n_images.bit_length() - 1, 0))


def memory_of(provider: Provider, *, cards: Path = Path("/sys/class/drm")) -> int | None:
    """Return the bytes of memory that a provider computes in, None if nothing tells."""
    if provider.name in ("cuda", "tensorrt"):
        return _nvidia_memory(_NVIDIA)
    if provider.name in ("rocm", "migraphx"):
        return _smallest(cards.glob("card*/device/mem_info_vram_total"))
    if provider.name == "directml":
        return None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _nvidia_memory(command: Sequence[str]) -> int | None:
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, check=True, timeout=_PATIENCE_SECONDS
        )
        # onnxruntime takes the first device.
        return int(done.stdout.split()[0]) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _smallest(files: Iterable[Path]) -> int | None:
    sizes = []
    for path in files:
        try:
            sizes.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return min(sizes, default=None)
