"""How long it takes until the overview shows its first image: the real server, a real Chromium, a new window each time.

    python benchmarks/first_image.py PROJECT [--times 7]

Counted is from opening the address, signed in, to the moment at which the first image of a sample is decoded. The server has
opened the project before; thumbnails are made in the first window and kept, so the first time is given apart.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ADDRESS = re.compile(r"(http://\S+/)#token=(\S+)")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FIRST_IMAGE = """() => new Promise((resolve) => {
    const look = () => {
        const found = [...document.querySelectorAll('main img')].find((one) => one.complete && one.naturalWidth > 0);
        if (found) resolve(performance.now()); else requestAnimationFrame(look);
    };
    look();
})"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("--times", type=int, default=7)
    given = parser.parse_args()
    command = [sys.executable, "-m", "weakspot", "serve", "-p", str(given.project)]
    command += ["--port", "0", "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        address = next(found[0] for line in server.stdout if (found := ADDRESS.search(line)))
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            taken = [_milliseconds(browser, address) for _ in range(given.times + 1)]
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)
    print(f"first window: {taken[0]:.0f} ms")
    print(f"median of {given.times} more: {statistics.median(taken[1:]):.0f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return 0


def _milliseconds(browser: Browser, address: str) -> float:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.goto(address)
    page.get_by_role("navigation", name="Pages").wait_for(timeout=600_000)
    page.close()
    # Signed in and open: now as somebody comes back to it.
    time.sleep(0.5)
    page = context.new_page()
    page.goto(address.split("#", maxsplit=1)[0], wait_until="commit")
    taken = float(page.evaluate(FIRST_IMAGE))
    context.close()
    return taken


if __name__ == "__main__":
    sys.exit(main())
