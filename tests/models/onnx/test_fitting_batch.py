import sys

import pytest

from weakspot.models.onnx import session as module
from weakspot.models.onnx.session import PROCESSOR, PROVIDERS, fitting_batch, memory_of

CUDA, ROCM, DIRECTML = (
    next(one for one in PROVIDERS if one.name == name) for name in ("cuda", "rocm", "directml")
)


@pytest.mark.parametrize(
    ("provider", "gigabytes", "side", "expected"),
    [
        (CUDA, 8, 224, 32),
        (CUDA, 80, 224, 256),
        (CUDA, 24, 448, 16),
        (CUDA, 0.01, 224, 1),
        (PROCESSOR, 64, 224, 8),
        (PROCESSOR, 64, None, 8),
        (PROCESSOR, 0.5, 224, 2),
    ],
)
def test_fitting_batch__by_memory_and_side(provider, gigabytes, side, expected):
    assert fitting_batch(provider, side=side, memory=int(gigabytes * 2**30)) == expected


def test_fitting_batch__memory_that_nothing_tells():
    assert fitting_batch(DIRECTML, side=224) == 32


def test_memory_of__asks_the_card(monkeypatch, tmp_path):
    said = (sys.executable, "-c", "print('24576\\n8192')")
    monkeypatch.setattr(module, "_NVIDIA", said)
    assert memory_of(CUDA) == 24 << 30
    monkeypatch.setattr(module, "_NVIDIA", ("no-such-program",))
    assert memory_of(CUDA) is None
    for number, size in (("0", "1000"), ("1", "9000"), ("2", "unknown")):
        folder = tmp_path / f"card{number}" / "device"
        folder.mkdir(parents=True)
        (folder / "mem_info_vram_total").write_text(size)
    assert memory_of(ROCM, cards=tmp_path) == 1000
    assert memory_of(ROCM, cards=tmp_path / "none") is None


def test_memory_of__the_processor_has_that_of_the_machine():
    assert memory_of(PROCESSOR) > 1 << 28
