import importlib.util
import subprocess
import sys
from pathlib import Path

import weakspot

ROOT = Path(__file__).parent.parent


def _public_surface():
    path = ROOT / "tools" / "public_surface.py"
    spec = importlib.util.spec_from_file_location("public_surface", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_public_surface__is_as_promised():
    module = _public_surface()
    promised = module.LIST.read_text(encoding="utf-8").splitlines()
    message = "The public surface changed. If that is meant: python tools/public_surface.py, and the changelog says so."
    assert module.surface() == promised, message


def test_public_surface__every_name_is_on_the_page_and_has_an_example():
    module = _public_surface()
    grouped = [name for names in module.GROUPS.values() for name in names]
    assert sorted(grouped) == weakspot.__all__
    code = module.cells()
    assert set(code) - {""} == set(grouped)
    assert [name for name in grouped if name not in code[name] and name != "Settings"] == []


def test_public_names__end_as_the_rule_says():
    endings = ("Call", "Outcome", "Report", "Summary", "Facts")
    assert [name for name in weakspot.__all__ if name.endswith(endings)] == []
