"""Planted projects for tests: images whose green discs are rare in training, and settings with which anybody can open them."""

from pathlib import Path

from weakspot.project.project import Project
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

SEED = 3
SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "planted"
[classifier.options]
problem = "rare"
strength = {share}
n_samples = {n_samples}
seed = {seed}
[embedder]
name = "planted"
"""


def planted_settings(n_samples: int, *, share: float = 0.01, seed: int = SEED) -> str:
    """Return the settings of a planted project."""
    return SETTINGS.format(share=share, n_samples=n_samples, seed=seed)


def planted_project(
    parent: Path, n_samples: int, *, share: float = 0.01, more: str = ""
) -> Project:
    """Make a project called `shapes` in a folder, with its samples ingested and nothing more.

    Args:
        parent: where the project's folder is made.
        n_samples: how many images.
        share: of green ones among the discs in training.
        more: further settings.
    """
    folder = parent / "shapes"
    folder.mkdir()
    plant(rare(share), n_samples, seed=SEED).write_images(folder)
    (folder / "weakspot.toml").write_text(planted_settings(n_samples, share=share) + more)
    project = Project.open(folder)
    project.ingest()
    return project
