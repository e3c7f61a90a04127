"""Adding a method is one file and one line: done here in a new package, and in a copy of weakspot itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.build import planted_project
from tests.plugin_package.installing import install

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
METHOD_FILE = GUIDE.split("```python\n")[1].split("```")[0]
LINE = GUIDE.split("```toml\n")[1].split("```")[0].splitlines()[1] + "\n"
PYPROJECT = """
[project]
name = "weakspot-scratch"
version = "1"
[project.entry-points."weakspot.discoverers"]
one-value = "weakspot_scratch.one_value:OneValueDiscoverer"
"""
ROWS = """
import importlib.util
spec = importlib.util.spec_from_file_location("make_reference", "tools/make_reference.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.method_rows({package!r}))
"""


def _python(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def in_a_package(tmp_path_factory) -> Path:
    """A path with a new package: one module and one line."""
    package, site = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    code = package / "src" / "weakspot_scratch"
    code.mkdir(parents=True)
    (code / "__init__.py").write_text("")
    (code / "one_value.py").write_text(
        METHOD_FILE.replace('method = "', 'method = "weakspot-scratch/')
    )
    (package / "pyproject.toml").write_text(PYPROJECT)
    install(package, site)
    return site


@pytest.fixture(scope="module")
def in_weakspot(tmp_path_factory) -> Path:
    """A path with a copy of weakspot that has one more file, and one more line in pyproject.toml."""
    copy, site = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("site")
    skipped = shutil.ignore_patterns("__pycache__", "built")
    shutil.copytree(ROOT / "src", copy / "src", ignore=skipped)
    (copy / "src/weakspot/discover/one_value.py").write_text(METHOD_FILE)
    group = '[project.entry-points."weakspot.discoverers"]\n'
    project = (ROOT / "pyproject.toml").read_text().replace(group, group + LINE)
    (copy / "pyproject.toml").write_text(project)
    install(copy, site)
    return site


CASES = [
    ("in_a_package", "weakspot-scratch/one-value", "weakspot-scratch"),
    ("in_weakspot", "one-value", "weakspot"),
]


@pytest.mark.parametrize(("where", "name", "package"), CASES)
def test_new_method__is_checked_without_a_line_in_the_tests(request, where, name, package):
    del package
    options = ["-q", "-p", "no:cacheprovider", "-n", "0", "tests/test_conformance.py"]
    printed = _python(
        request.getfixturevalue(where),
        "-m",
        "pytest",
        *options,
        "-k",
        f"discoverers-{name}- or builders",
    )
    passed = int(printed.strip().splitlines()[-1].split(" passed")[0].split()[-1])
    assert passed > 15


@pytest.mark.parametrize(("where", "name", "package"), CASES)
def test_new_method__runs_by_name_and_its_row_is_made(request, tmp_path, where, name, package):
    site = request.getfixturevalue(where)
    project = planted_project(tmp_path, 600, share=0.01)
    command = [
        "-m",
        "weakspot",
        "run",
        "--project",
        str(project.folder),
        "--method",
        name,
        "--json",
    ]
    record = json.loads(_python(site, *command))
    assert [(one["method"], one["n_found"] > 0) for one in record["methods"]] == [(name, True)]
    rows = _python(site, "-c", ROWS.format(package=package))
    assert f"| `{name}` | Takes the samples with one value of one column. |" in rows
    assert "| `column` | colour | the column. |" in rows
