"""A package of somebody else, installed for real, is found and keeps the same contracts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weakspot.testing.checks import checks_for

HERE = Path(__file__).parent
DISCOVERER = "weakspot-centroids/centroids"
EMBEDDER = "weakspot-centroids/thumbnail"
SCRIPT = """
import json, sys
from weakspot.core.errors import WeakspotError
from weakspot.core.registry import part_class, registered
from weakspot.testing.checks import checks_for
found = {role: list(registered(role)) for role in ("discoverers", "embedders")}
results = {}
for role, name in (("discoverers", sys.argv[1]), ("embedders", sys.argv[2])):
    for check_name, check in checks_for(role).items():
        try:
            check(part_class(role, name))
            results[f"{role}: {check_name}"] = "kept"
        except Exception as error:
            results[f"{role}: {check_name}"] = repr(error)
try:
    part_class("discoverers", "weakspot-centroids/broken")
except WeakspotError as error:
    broken = str(error)
print(json.dumps({"found": found, "results": results, "broken": broken}))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory) -> dict:
    """What a fresh interpreter says that has the package on its path, as pip lays it out."""
    target = tmp_path_factory.mktemp("site")
    _install(target)
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, DISCOVERER, EMBEDDER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _install(target: Path) -> None:
    """Lay the package out as an installer does, with one more entry point that cannot be imported."""
    import shutil
    import tomllib

    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    shutil.copytree(HERE / "src" / "weakspot_centroids", target / "weakspot_centroids")
    information = target / f"weakspot_centroids-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = {**project["entry-points"]}
    groups["weakspot.discoverers"] = {**groups["weakspot.discoverers"], "broken": "weakspot_centroids.missing:Nothing"}
    lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups.items()]
    (information / "entry_points.txt").write_text("\n".join(lines))


def test_registered__other_packages_are_named_with_their_package(answer):
    assert DISCOVERER in answer["found"]["discoverers"]
    assert EMBEDDER in answer["found"]["embedders"]
    assert "directions" in answer["found"]["discoverers"]


@pytest.mark.parametrize(("role", "check"), [(role, check) for role in ("discoverers", "embedders") for check in checks_for(role)])
def test_plugin__keeps_the_contracts(answer, role, check):
    assert answer["results"][f"{role}: {check}"] == "kept"


def test_part_class__a_plugin_that_cannot_be_imported_is_named(answer):
    assert "'weakspot-centroids/broken' cannot be imported" in answer["broken"]
    assert "Reinstall its package." in answer["broken"]
