import subprocess
import sys

import weakspot


def test_public_names__are_sorted_and_all_resolve():
    assert weakspot.__all__ == sorted(weakspot.__all__)
    assert dir(weakspot) == weakspot.__all__
    assert all(getattr(weakspot, name) is not None for name in weakspot.__all__)


def test_public_names__list_equals_what_can_be_loaded():
    assert set(weakspot._HOMES) == set(weakspot.__all__) - {"__version__"}


def test_import__brings_no_heavy_library():
    code = "import weakspot, weakspot.cli.main, sys; print(sorted(set(sys.modules) & {heavy}))"
    heavy = {
        "torch",
        "transformers",
        "onnxruntime",
        "onnx",
        "sklearn",
        "scipy",
        "pyarrow",
        "pandas",
        "jinja2",
        "fsspec",
        "numpy",
    }
    result = subprocess.run(
        [sys.executable, "-c", code.format(heavy=heavy)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
