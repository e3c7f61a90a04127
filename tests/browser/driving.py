"""Starting servers as a person would, and driving their pages with a real Chromium."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
QUIET = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SOFTWARE_GRAPHICS = (
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
PAGES = (
    ("/", "Overview"),
    ("/images", "Images"),
    ("/classes", "Classes"),
    ("/slices", "Slices"),
    ("/attributes", "Attributes"),
    ("/map", "Map"),
    ("/marks", "Marks"),
    ("/repair", "Repair"),
    ("/compare", "Two classifiers"),
    ("/search", "Generated images"),
    ("/studies", "Studies"),
    ("/activity", "Activity"),
)
ADDRESS = re.compile(r"(http://\S+/)#token=(\S+)")
PATIENCE = 120_000
"""Milliseconds that anything is waited for: a machine may be busy, and what waits costs nothing where it is fast."""


@contextmanager
def serving(*command_line: str) -> Iterator[str]:
    """Start a command that serves, as a person would, and give the address that it prints."""
    command = [sys.executable, "-m", "weakspot", *command_line, "--port", "0", "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        found = next((match for line in server.stdout if (match := ADDRESS.search(line))), None)
        assert found, f"the server ended with {server.wait()}"
        yield found[0]
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        server.stdout.close()


@dataclass
class Visit:
    """A page that is being driven, and everything that it complained of."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Note errors and warnings of the console, and requests that failed or were refused."""

        def heard(message: ConsoleMessage) -> None:
            # Software graphics of a machine without a graphics card say that they are slow; the pages cannot do anything about it.
            if (
                message.type in ("error", "warning")
                and "GPU stall" not in message.text
                and "swiftshader" not in message.text.lower()
            ):
                self.complaints.append(f"{message.type}: {message.text}")

        self.page.on("console", heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def go(self, place: str, heading: str) -> None:
        """Open a page of the app by its hash and wait for its heading."""
        self.page.goto(f"{self.address.split('#')[0]}#{place}")
        self.page.get_by_role("heading", level=1, name=heading).first.wait_for()

    def settle(self) -> None:
        """Wait until nothing is loading."""
        self.page.wait_for_load_state("networkidle")
        expect(self.page.locator(".loading")).to_have_count(0)

    def check(self) -> None:
        """Hold that the console was silent and that axe finds nothing serious, in light and in dark."""
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            found = self.violations()
            assert not found, (scheme, found)
        self.page.emulate_media(color_scheme="light")
        assert not self.complaints, self.complaints

    def violations(self) -> list[str]:
        """Return what axe finds that is serious or worse."""
        found = self.page.evaluate(
            f"(() => {{ {AXE.read_text()} }})() || window.axe.run(document, {{resultTypes: ['violations']}})"
        )
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in found["violations"]
            if one["impact"] in SERIOUS
        ]


@contextmanager
def visiting(
    chromium: Browser,
    address: str,
    *,
    width: int = 1280,
    height: int = 900,
    arrives: Callable[[Page], None] = lambda _page: None,
) -> Iterator[Visit]:
    """Log in with a new browser window; `arrives` does what a person has to do before the pages are there."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, accept_downloads=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    visit = Visit(page=context.new_page(), address=address)
    visit.listen()
    visit.page.goto(address)
    arrives(visit.page)
    visit.page.get_by_role("navigation", name="Pages").wait_for()
    yield visit
    context.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; for what no locator can be asked."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not is_so():
        assert time.monotonic() < deadline, "it never was so"
        time.sleep(0.1)


def wait_for_image(image: Locator, *, wider_than: int = 0) -> None:
    """Wait until an image is loaded. It is looked for again each time: a page may have made it anew meanwhile."""
    wait_until(
        lambda: image.evaluate(
            "(one, least) => one.complete && one.naturalWidth > least", wider_than
        )
    )
