import subprocess
import sys

import pytest
from tests.build import write_fruit_table

TESTS = """\
def test_by_options(weakspot_check):
    assert weakspot_check().is_kept

def test_by_arguments(weakspot_check, request):
    folder = request.config.rootpath
    weakspot_check(folder / "fruit", folder / "strict.toml")

def test_bad_input(weakspot_check):
    weakspot_check("fruit", "none.toml")

def test_without_a_baseline(weakspot_check):
    weakspot_check("fruit", "compared.toml", baseline="none.json")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a run of pytest beside weakspot says of tests that use the fixture."""
    folder = tmp_path_factory.mktemp("plugin")
    write_fruit_table(folder / "fruit")
    (folder / "strict.toml").write_text("[slice_accuracy]\nmin = 0.9\n")
    (folder / "mild.toml").write_text("[overall_accuracy]\nmin = 0.5\n")
    (folder / "compared.toml").write_text("[new_slices]\nmax = 0\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_model.py").write_text(TESTS)
    options = [
        "--weakspot-project=fruit",
        "--weakspot-policy=mild.toml",
        "-p",
        "no:cacheprovider",
        "-rA",
        "-q",
    ]
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_plugin__the_fixture_passes_and_fails_tests(said):
    assert "PASSED test_model.py::test_by_options" in said
    assert "3 failed, 1 passed" in said


def test_plugin__a_failure_names_the_violations_and_shows_no_code(said):
    assert "The policy is violated: 1 of 1 checks." in said
    assert "slice_accuracy: “apple: green” is right on" in said
    assert "Traceback" not in said
    assert "pytest_plugin.py" not in said


def test_plugin__bad_input_fails_in_one_sentence(said):
    assert "weakspot could not judge the model. There is no policy file here." in said
    assert "The baseline cannot be read" in said


def test_plugin__loading_it_brings_no_heavy_library():
    code = "import sys, weakspot.pytest_plugin; print(sorted(set(sys.modules) & {heavy}))"
    heavy = {
        "numpy",
        "pandas",
        "torch",
        "pyarrow",
        "scipy",
        "sklearn",
        "pydantic",
        "onnxruntime",
        "rich",
        "typer",
    }
    result = subprocess.run(
        [sys.executable, "-c", code.format(heavy=heavy)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
