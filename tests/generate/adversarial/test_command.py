"""The command `lab adversarial` as a user types it, on planted images and a classifier that is a Python function."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, UnavailableError, WeakspotError
from weakspot.project.project import Project
from weakspot.testing.planted import plant, rare

CLASSIFIER = '''
import numpy as np
from PIL import Image
from weakspot.testing.scenes import read_marker

class_names = ("disc", "square", "star")


def classify(images):
    """Everything green is a star, and {also} is a square."""
    rows = []
    for pixels in images:
        scene = read_marker(Image.fromarray(pixels))
        said = "star" if scene.colour == "green" else "square" if scene.background == "{also}" else scene.kinds[0]
        rows.append([0.9 if name == said else 0.05 for name in class_names])
    return np.array(rows)


classify.class_names = class_names
'''
SETTINGS = """[data]
source = "{manifest}"
[embedder]
name = "planted"
[captioner]
name = "planted"
[generator]
name = "planted"
[classifier]
name = "callable"
[classifier.options]
target = "{module}:classify"
folder = "{folder}"
"""


def _weakspot(*arguments):
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "100", "NO_COLOR": "1"}
    )


def _project(folder, manifest, *, also):
    folder.mkdir()
    module = f"planted_{folder.name}"
    (folder / f"{module}.py").write_text(CLASSIFIER.format(also=also))
    (folder / "weakspot.toml").write_text(
        SETTINGS.format(manifest=manifest, module=module, folder=folder)
    )
    return folder


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Two projects on the same images; the first has read its samples."""
    folder = tmp_path_factory.mktemp("lab", "adversarial")
    world = plant(rare(0.2), 160, seed=3, classes=("disc", "square", "star"))
    manifest = world.write_images(folder / "world", rows=np.arange(len(world))).manifest
    first, second = (
        _project(folder / name, manifest, also=also)
        for name, also in (("first", "brick"), ("second", "wavy"))
    )
    Project.open(first).ingest()
    return first, second


def _run(projects, folder, *arguments):
    few = ("--most-per-caption", 8, "--keep", 2, "--most-captions", 4, "--baseline", 8)
    return _weakspot(
        "lab", "adversarial", "-p", projects[0], "--to", folder / "set", *few, *arguments
    )


def test_adversarial__says_what_was_kept_and_where_the_page_is(projects, tmp_path):
    result = _run(projects, tmp_path, "--models", projects[1])
    assert result.exit_code == 0, result.output
    assert "set on first (made for it): 100 %" in result.stdout
    assert "set on second" in result.stdout
    assert "Distance to the test samples, in the space of planted-1:" in result.stdout
    assert "training samples: Frechet" in result.stdout
    assert (tmp_path / "set" / "adversarial.html").is_file()
    assert (tmp_path / "set" / "adversarial.png").is_file()
    beside = _run(projects, tmp_path / "again", "--beside", tmp_path / "set")
    assert isinstance(beside.exception, ConfigError)
    shutil.copytree(tmp_path / "set", tmp_path / "earlier")
    beside = _run(projects, tmp_path / "again", "--beside", tmp_path / "earlier", "--json")
    found = json.loads(beside.stdout)
    assert [row["name"] for row in found["distances"]] == ["set", "earlier", "training samples"]
    assert found["transfer"]["made_for"] == {"set": "first", "earlier": "first"}


def test_adversarial__what_is_not_there(projects, tmp_path):
    assert isinstance(
        _run(projects, tmp_path, "--images", tmp_path / "absent").exception, UnavailableError
    )
    assert isinstance(_run(projects, tmp_path, "--models", tmp_path).exception, ConfigError)
    assert isinstance(
        _run(projects, tmp_path, "--inception", "no_such_network").exception, WeakspotError
    )
    assert isinstance(
        _run(projects, tmp_path, "--beside", tmp_path / "absent").exception, UnavailableError
    )
    assert isinstance(_run(projects, tmp_path, "--generator", "absent").exception, ConfigError)
    assert _weakspot("lab", "adversarial", "-p", projects[0]).exit_code == 2
    assert not (tmp_path / "set").exists()
