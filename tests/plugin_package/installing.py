"""A package laid out as an installer does it, without a network or a build."""

import shutil
import tomllib
from pathlib import Path


def install(package: Path, target: Path) -> None:
    """Copy a package's code below `target` with the metadata that its pyproject.toml asks for.

    Args:
        package: a folder with pyproject.toml and src.
        target: a folder to put on PYTHONPATH.
    """
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    shutil.copytree(
        package / "src", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    information = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (information / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in project["entry-points"].items()
        )
    )
