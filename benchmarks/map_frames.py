"""Frames a second of the map in a real browser while it is moved and zoomed, beside an empty page in the same run.

    python benchmarks/map_frames.py [--rows 160000] [--seconds 5] [--size 3]

A planted project is built once and kept; with all its parts switched on, 160,000 rows put 100,000 points on the map. The browser is
Debian's Chromium without a screen. Where there is no graphics card, which is the worst case, the page draws pixel by pixel, because
the browser's imitation of a card (SwiftShader) was many times slower.
Frames are counted by requestAnimationFrame; every frame moves the map or zooms it by the events that a hand would cause.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from first_page import TOKEN, build
from playwright.sync_api import Page, sync_playwright

MIN_FRAMES = 30.0
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
BARE = """(seconds) => new Promise((resolve) => {
  let frames = 0;
  const begun = performance.now();
  const step = () => {
    const passed = performance.now() - begun;
    if (passed < 1000 * seconds) { frames += 1; requestAnimationFrame(step); } else resolve(1000 * frames / passed);
  };
  requestAnimationFrame(step);
})"""
MOVED = """(seconds) => new Promise((resolve) => {
  const canvas = document.querySelector(".map-canvas");
  const box = canvas.getBoundingClientRect();
  const at = (x, y) => ({ clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true, cancelable: true });
  const pointer = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, { ...at(x, y), button: 0, pointerId: 1 }));
  const times = [];
  const draws = [];
  const plain = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (callback) => plain((now) => {
    const start = performance.now();
    callback(now);
    draws.push(performance.now() - start);
  });
  const begun = performance.now();
  let turn = 0;
  pointer("pointerdown", 0.5, 0.5);
  const step = () => {
    const now = performance.now();
    times.push(now);
    turn += 1;
    pointer("pointermove", 0.5 + 0.2 * Math.cos(turn / 15), 0.5 + 0.2 * Math.sin(turn / 11));
    canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0.5, 0.5), deltaY: turn % 120 < 60 ? -18 : 18 }));
    if (now - begun < 1000 * seconds) { plain(step); return; }
    window.requestAnimationFrame = plain;
    draws.sort((one, two) => one - two);
    pointer("pointerup", 0.5, 0.5);
    const gl = canvas.getContext("webgl2");
    const waits = performance.now();
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    const gaps = times.slice(1).map((time, place) => time - times[place]).sort((one, two) => one - two);
    resolve({
      frames_a_second: 1000 * (times.length - 1) / (times[times.length - 1] - times[0]),
      slowest_tenth_ms: gaps[Math.floor(0.9 * gaps.length)],
      drawing_ms: [draws[0], draws[Math.floor(draws.length / 2)]].map((value) => Math.round(10 * value) / 10),
      longest_ms: gaps[gaps.length - 1],
      left_to_draw_ms: performance.now() - waits,
      canvas: [canvas.width, canvas.height],
      painter: canvas.dataset.painter,
    });
  };
  plain(step);
})"""
RENDERER = """() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  const said = gl && gl.getExtension("WEBGL_debug_renderer_info");
  return said ? gl.getParameter(said.UNMASKED_RENDERER_WEBGL) : "none";
}"""

HIDE_IMITATION = """
const real = WebGL2RenderingContext.prototype.getParameter;
WebGL2RenderingContext.prototype.getParameter = function (name) {
  const answer = real.call(this, name);
  return typeof answer === "string" && /swiftshader/i.test(answer) ? "a graphics card" : answer;
};
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--size",
        type=int,
        default=3,
        help="diameter of points in pixels; 3 is what the page starts with",
    )
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache/weakspot/bench/map-frames"
    )
    parser.add_argument(
        "--as-card",
        action="store_true",
        help="draw with WebGL 2 also where the graphics card is imitated",
    )
    chosen = parser.parse_args()
    build(chosen.folder, chosen.rows)
    command = [
        sys.executable,
        "-m",
        "weakspot",
        "serve",
        "--project",
        str(chosen.folder),
        "--port",
        "0",
        "--no-browser",
    ]
    environment = {**os.environ, "WEAKSPOT_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        address = next(
            found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line))
        )
        with sync_playwright() as browsers:
            browser = browsers.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            figures = measured(
                browser.new_page(viewport={"width": 1280, "height": 900}), address, chosen
            )
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=30)
    print(json.dumps(figures))
    rate = figures["map"]["frames_a_second"]
    print(
        f"{rate:.1f} frames a second with {figures['points']} points (wanted: at least {MIN_FRAMES:.0f})"
    )


def measured(page: Page, address: str, chosen: argparse.Namespace) -> dict:
    """Open the map with everything on it, and move it."""
    if chosen.as_card:
        page.add_init_script(HIDE_IMITATION)
    page.goto("about:blank")
    bare = page.evaluate(BARE, chosen.seconds)
    page.goto(f"{address}/#token={TOKEN}")
    page.wait_for_selector("nav", timeout=300_000)
    page.goto(f"{address}/#/map")
    page.wait_for_selector(".map-legend .number", timeout=300_000)
    for part in ("training", "pool"):
        page.get_by_role("checkbox", name=part).check()
    page.get_by_role("slider", name="Point size").fill(str(chosen.size))
    page.wait_for_timeout(1500)
    label = page.locator(".map-canvas").get_attribute("aria-label") or ""
    moved = page.evaluate(MOVED, chosen.seconds)
    return {
        "points": int(re.sub(r"\D", "", label.split(".")[0])),
        "point_size": chosen.size,
        "empty_page_frames_a_second": round(bare, 1),
        "map": {
            name: round(value, 1) if isinstance(value, int | float) else value
            for name, value in moved.items()
        },
        "renderer": page.evaluate(RENDERER),
    }


if __name__ == "__main__":
    main()
