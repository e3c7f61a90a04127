"""Real servers on real projects, driven with a real Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.browser.driving import CHROMIUM, PATIENCE, QUIET, SOFTWARE_GRAPHICS, serving
from tests.browser.large_project import write_large_project

N_LARGE = 50_000
# Five seconds, as it is without this, are too few on a machine that does other things.
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*QUIET, *SOFTWARE_GRAPHICS]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def demo_folder(demo_result, tmp_path_factory) -> Path:
    """A copy of the finished demo that browser tests may change."""
    return Path(
        shutil.copytree(
            demo_result.report.parent, tmp_path_factory.mktemp("browser") / "weakspot-demo"
        )
    )


@pytest.fixture(scope="session")
def demo_address(demo_folder) -> Iterator[str]:
    with serving("demo", "--serve", "--folder", str(demo_folder)) as address:
        yield address


@pytest.fixture(scope="session")
def large_folder(shared_folder, tmp_path_factory) -> Path:
    """A project of 50,000 planted images whose green discs are mostly wrong; a copy that browser tests may change."""
    with shared_folder("large") as folder:
        if not (folder / "whole").exists():
            (folder / "shapes").mkdir()
            write_large_project(folder / "shapes", N_LARGE)
            (folder / "whole").touch()
        own = tmp_path_factory.mktemp("large") / "shapes"
        own.mkdir()
        # Images are many and never changed: they are linked.
        for images in (folder / "shapes").iterdir():
            if images.is_dir() and images.name != ".weakspot":
                (own / images.name).symlink_to(images)
        shutil.copytree(folder / "shapes" / ".weakspot", own / ".weakspot")
        for name in ("weakspot.toml", "manifest.csv"):
            shutil.copy(folder / "shapes" / name, own / name)
        return own


@pytest.fixture(scope="session")
def large_address(large_folder) -> Iterator[str]:
    with serving("serve", "--project", str(large_folder)) as address:
        yield address
