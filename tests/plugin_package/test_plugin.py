"""A package of somebody else, installed for real, is found and keeps the same contracts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugin_package.installing import install

from weakspot.core.errors import DataError
from weakspot.core.slices import FailureSlice
from weakspot.testing.checks import checks_for

HERE = Path(__file__).parent
PACKAGE = "weakspot-centroids"
SCRIPT = """
import json
from weakspot.core.errors import WeakspotError
from weakspot.core.registry import part_class, registered
from weakspot.testing.checks import checks_for, checks_of
from weakspot.testing.examples import CRITERION, discovery_samples
found = {role: list(registered(role)) for role in ("discoverers", "embedders", "rules")}
discoverer = part_class("discoverers", "weakspot-centroids/centroids")
slice_ = discoverer().discover(discovery_samples(), CRITERION, seed=0).slices[0]
def own_rule():
    return slice_.rule.model_copy()
checks = checks_of("weakspot-centroids") | {
    f"rules: weakspot-centroids/nearer: {name}": (lambda check=check: check(own_rule))
    for name, check in checks_for("rules").items()
}
results = {}
for name, check in checks.items():
    try:
        check()
        results[name] = "kept"
    except Exception as error:
        results[name] = repr(error)
try:
    part_class("discoverers", "weakspot-broken/part")
except WeakspotError as error:
    broken = str(error)
print(json.dumps({"found": found, "results": results, "broken": broken, "slice": slice_.model_dump(mode="json"),
                  "sentence": slice_.rule.sentence}))
"""
BROKEN = """
[project]
name = "weakspot-broken"
version = "1"
[project.entry-points."weakspot.discoverers"]
part = "weakspot_broken.missing:Nothing"
"""
CASES = [
    f"{role}: {PACKAGE}/{name}: {check}"
    for role, name in (
        ("discoverers", "centroids"),
        ("embedders", "thumbnail"),
        ("rules", "nearer"),
    )
    for check in checks_for(role)
]


@pytest.fixture(scope="module")
def answer(tmp_path_factory) -> dict:
    """What a fresh interpreter answers that has the package on its path, and another one that cannot be imported."""
    target = tmp_path_factory.mktemp("site")
    install(HERE, target)
    broken = tmp_path_factory.mktemp("broken")
    (broken / "src").mkdir()
    (broken / "pyproject.toml").write_text(BROKEN)
    install(broken, target)
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_registered__other_packages_are_named_with_their_package(answer):
    assert f"{PACKAGE}/centroids" in answer["found"]["discoverers"]
    assert f"{PACKAGE}/thumbnail" in answer["found"]["embedders"]
    assert answer["found"]["rules"] == ["caption", f"{PACKAGE}/nearer"]
    assert "directions" in answer["found"]["discoverers"]


@pytest.mark.parametrize("case", CASES)
def test_plugin__keeps_the_contracts(answer, case):
    assert answer["results"][case] == "kept"


def test_part_class__a_plugin_that_cannot_be_imported_is_named(answer):
    assert "'weakspot-broken/part' cannot be imported" in answer["broken"]
    assert "Reinstall its package." in answer["broken"]


def test_rule__has_its_own_sentence(answer):
    assert answer["sentence"].startswith("Samples that lie nearer to the mean of the failures")


def test_rule__without_its_package__the_record_says_which_one_is_missing(answer):
    with pytest.raises(
        DataError, match=r"'weakspot-centroids/nearer'.*Install the package 'weakspot-centroids'"
    ):
        FailureSlice.model_validate(answer["slice"])


@pytest.mark.parametrize("name", ["discoverer.py", "rule.py"])
def test_guide__shows_the_code_of_this_package(name):
    guide = (HERE.parent.parent / "docs/guide/plug-ins.md").read_text(encoding="utf-8")
    assert (HERE / "src/weakspot_centroids" / name).read_text(encoding="utf-8") in guide
