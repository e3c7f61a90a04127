"""Take a picture of every page of the browser, in light and in dark, at 1440 and at 800 pixels.

    python tools/take_screenshots.py OUT           everything, as PNG files in OUT
    python tools/take_screenshots.py OUT --docs    and those that the documents show, small, in docs/pictures

The demo is run in OUT/projects, with the repaired classifier beside it, marks, a study and attributes (screenshot_project.py); a second
call finds them there. They are served as a person would serve them. Chromium is driven by Playwright, as in tests/browser.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from screenshot_project import fill_project, make_projects

DOCS = Path(__file__).parent.parent / "docs" / "pictures"
ALSO = ("overview-1440-dark", "viewer-1440-dark", "slices-800-light")
"""What the documents show beside every page in light at 1440 pixels."""
SHOWN_WIDTH, QUALITY = 1080, 62
PAGES = {
    "overview": "/",
    "images": "/images?result=wrong&order=loss",
    "classes": "/classes/apple?phrase=green",
    "slices": "/slices",
    "attributes": "/attributes",
    "map": "/map",
    "repair": "/repair",
    "generated": "/search",
    "studies": "/studies",
    "marks": "/marks",
    "activity": "/activity",
    "compare": "/compare",
}
SCHEMES, WIDTHS, HEIGHT = ("light", "dark"), (1440, 800), 1000
ADDRESS = re.compile(r"(http://\S+/)#token=(\S+)")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
PATIENCE, STEPS = 120_000, 60
HIDE_PLACE = """(place) => document.querySelectorAll('dd code').forEach((one) => {
    one.textContent = one.textContent.replace(`${place}/projects/`, '/home/ada/');
})"""
"""Where the pictures were taken is nobody's business."""
IS_SETTLED = """!document.querySelector('.loading')
    && [...document.images].every((one) => one.complete || one.loading === 'lazy')"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--docs", action="store_true", help="Also write docs/pictures.")
    given = parser.parse_args()
    (given.out / "projects").mkdir(parents=True, exist_ok=True)
    demo, repaired = make_projects(given.out / "projects")
    command = ("serve", "-p", str(demo), "--compare", str(repaired))
    with serving(*command) as address, sync_playwright() as play:
        study = fill_project(address)
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in WIDTHS:
            for scheme in SCHEMES:
                take_all(browser, address, given.out, f"{width}-{scheme}", study)
        browser.close()
    if given.docs:
        write_small(given.out)
    return 0


def write_small(out: Path) -> None:
    """Write the pictures of the documents: scaled down, as WebP."""
    DOCS.mkdir(exist_ok=True)
    for picture in sorted(out.glob("*.png")):
        name = picture.stem.removesuffix("-1440-light")
        if name == picture.stem and name not in ALSO:
            continue
        with Image.open(picture) as image:
            ratio = min(1.0, SHOWN_WIDTH / image.width)
            size = (round(image.width * ratio), round(image.height * ratio))
            image.resize(size, Image.Resampling.LANCZOS).save(
                DOCS / f"{name}.webp", quality=QUALITY, method=6
            )


@contextmanager
def serving(*command_line: str) -> Iterator[str]:
    """Start a server and give the address that it prints."""
    command = [sys.executable, "-m", "weakspot", *command_line, "--port", "0", "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        found = next((match for line in server.stdout if (match := ADDRESS.search(line))), None)
        assert found, f"the server ended with {server.wait()}"
        yield found[0]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        server.stdout.close()


def take_all(browser: Browser, address: str, out: Path, kind: str, study: str) -> None:
    """Take every page in one width and scheme, for example `1440-light`."""
    width, scheme = kind.split("-")
    context = browser.new_context(
        viewport={"width": int(width), "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    page.get_by_role("navigation", name="Pages").wait_for(timeout=PATIENCE)
    root = address.split("#", maxsplit=1)[0]
    further = {**further_pages(page, root), "study": f"/studies/{study}"}
    for name, place in {**PAGES, **further}.items():
        page.goto(f"{root}#{place}")
        settle(page)
        if name == "viewer":
            page.keyboard.press("h")
            page.get_by_text("This is how this classifier answers").wait_for(timeout=PATIENCE)
            page.evaluate(HIDE_PLACE, str(out.resolve()))
        page.screenshot(path=out / f"{name}-{kind}.png")
    context.close()


def further_pages(page: Page, root: str) -> dict[str, str]:
    """Return the addresses of the first slice, of two slices, and of one image."""
    slices = page.request.get(f"{root}api/slices").json()["slices"]
    images = page.request.get(f"{root}api/images?result=wrong&limit=1").json()["images"]
    found = {"slice": f"/slices/{slices[0]['slice_id']}"} if slices else {}
    if len(slices) > 1:
        found["two-slices"] = f"/slices/{slices[0]['slice_id']}/beside/{slices[1]['slice_id']}"
    if images:
        found["viewer"] = f"/image/{images[0]['sample_id']}?result=wrong"
    return found


def settle(page: Page) -> None:
    """Wait until nothing is loading any more, but not for ever: live pages keep a line open."""
    for _ in range(STEPS):
        page.wait_for_timeout(400)
        if page.evaluate(IS_SETTLED):
            break
    page.wait_for_timeout(300)


if __name__ == "__main__":
    sys.exit(main())
