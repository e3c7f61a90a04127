"""Real servers on real projects, driven with a real Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.driving import CHROMIUM, QUIET, SOFTWARE_GRAPHICS, serving
from tests.browser.large_project import write_large_project

N_LARGE = 50_000


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *SOFTWARE_GRAPHICS])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def demo_folder(demo_outcome, tmp_path_factory) -> Path:
    """A copy of the finished demo that browser tests may change."""
    return Path(shutil.copytree(demo_outcome.report.parents[3], tmp_path_factory.mktemp("browser") / "weakspot-demo"))


@pytest.fixture(scope="session")
def demo_address(demo_folder) -> Iterator[str]:
    with serving("demo", "--serve", "--folder", str(demo_folder)) as address:
        yield address


@pytest.fixture(scope="session")
def large_address(tmp_path_factory) -> Iterator[str]:
    """A server on 50,000 planted pictures whose green discs are mostly wrong."""
    folder = tmp_path_factory.mktemp("large") / "shapes"
    folder.mkdir()
    write_large_project(folder, N_LARGE)
    with serving("serve", "--project", str(folder)) as address:
        yield address
