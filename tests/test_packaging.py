"""What an installation holds, with and without a way to the npm registry."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "weakspot/web/built/index.html"
NOWHERE = "http://127.0.0.1:9/"


def _wheel(source: Path, folder: Path) -> set[str]:
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(folder),
    ]
    environment = {**os.environ, "npm_config_registry": NOWHERE}
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


@pytest.fixture
def checkout(tmp_path):
    """A copy of the project as a new user gets it: nothing built, nothing installed for the pages."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    needed = (
        "src/",
        "frontend/",
        "tools/",
        "hatch_build.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "THIRD_PARTY.md",
    )
    folder = tmp_path / "checkout"
    for name in listed.stdout.splitlines():
        if name.startswith(needed) and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return folder


def test_wheel__pages_are_built__holds_them_with_the_licences_of_what_they_bundle(tmp_path):
    names = _wheel(ROOT, tmp_path)
    assert PAGE in names
    assert "weakspot/web/built/licences.md" in names
    assert any(
        name.startswith("weakspot/web/built/assets/") and name.endswith(".js") for name in names
    )


def test_wheel__npm_registry_cannot_be_reached__is_made_without_pages(checkout, tmp_path):
    names = _wheel(checkout, tmp_path / "wheels")
    assert PAGE not in names
    assert "weakspot/web/application.py" in names
    assert "weakspot/web/state/versions/0001_first_tables.py" in names
    assert "weakspot/py.typed" in names


def test_wheel__made_twice__is_the_same_file(checkout, tmp_path):
    for name in ("first", "second"):
        _wheel(checkout, tmp_path / name)
    first, second = (next((tmp_path / name).glob("*.whl")) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


def test_containerfile__the_linter_says_nothing():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [linter, "--no-color", ROOT / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_containerfile__its_command_and_extras_exist():
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    extras = re.search(r"\$\{wheel\}\[([^]]+)\]", text)[1].split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras) <= set(known["optional-dependencies"])
    assert 'ENTRYPOINT ["weakspot"]' in text
    assert "weakspot" in known["scripts"]


def test_build_pages__npm_registry_cannot_be_reached__says_what_to_do(checkout):
    environment = {**os.environ, "npm_config_registry": NOWHERE}
    command = [sys.executable, "tools/build_pages.py"]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "error: The pages cannot be built" in done.stderr
    assert "to do: Install Node.js" in done.stderr
    assert "Traceback" not in done.stderr


def test_modules__need_no_heavy_library_outside_models():
    """Whoever installs no extra imports every room but that of models; a module that needs torch is imported when torch is meant."""
    rooms = sorted(path for path in (ROOT / "src" / "weakspot").rglob("*.py"))
    names = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in rooms
    ]
    outside = [name for name in names if not name.startswith(("weakspot.models", "weakspot.__"))]
    code = (
        "import importlib, sys\n"
        "for name in ('torch', 'torchvision', 'open_clip', 'transformers', 'timm', 'diffusers', 'ray'):\n"
        "    sys.modules[name] = None\n"
        f"for name in {outside!r}:\n"
        "    importlib.import_module(name)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
