"""How long the first pages take at a million samples: the real server on a planted project, asked what pages ask.

    python benchmarks/first_page.py [--rows 1000000] [--folder ~/.cache/weakspot/bench/first-page] [--build-only]

The project is built once and kept: samples with labels, predictions and probabilities but without images, embeddings in the cache,
one run with slices. Then a server is started in a process of its own, and every route that a page asks for is asked twice, one
after the other: the first time nothing is in the server's memory but what start-up put there.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weakspot.core.dataset import SPLIT_ORDER
from weakspot.project.project import Project
from weakspot.store.array_files import packed_hashes
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import CHUNK, plant, rare

TOKEN = "benchmark-of-the-first-page"
MAX_SECONDS = 1.0
SETTINGS = """\
[data]
source = "predictions.parquet"
[embedder]
name = "planted"
[discover]
methods = ["keywords"]
"""
PAGES = {
    "overview": ("/api/session", "/api/overview", "/api/jobs"),
    "classes": ("/api/classes",),
    "one class": ("/api/classes/samples?title=disc", "/api/classes/suggestions?title=disc"),
    "slices": ("/api/slices",),
    "attributes": ("/api/attributes",),
    "map": ("/api/map", "/api/map/colourings", "/api/map/colours?by=result"),
    "repair": ("/api/repair/options", "/api/repair/results"),
    "studies": ("/api/studies",),
}


def build(folder: Path, n_rows: int) -> None:
    """Write the project, unless it is there."""
    done = folder / "built.json"
    if done.exists() and json.loads(done.read_text())["rows"] == n_rows:
        return
    begun = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    world = plant(rare(0.01), n_rows, seed=3)
    dataset = world.dataset
    columns = {name: dataset.metadata(name) for name in dataset.metadata_names}
    names = np.array(dataset.class_names)
    columns |= {
        f"prob_{name}": pa.array(dataset.probabilities[:, code])
        for code, name in enumerate(dataset.class_names)
    }
    columns |= {
        "key": pa.array([f"sample-{row:08d}" for row in range(n_rows)]),
        "label": pa.array(names[dataset.labels]),
        "prediction": pa.array(names[dataset.predictions]),
        "split": pa.array(np.array([split.value for split in SPLIT_ORDER])[dataset.splits]),
    }
    pq.write_table(pa.table(columns), folder / "predictions.parquet")
    (folder / "weakspot.toml").write_text(SETTINGS)
    project = Project.open(folder)
    project.ingest()
    print(f"ingested after {time.perf_counter() - begun:.0f} s", flush=True)
    stored = project.store.dataset()
    place = {key: row for row, key in enumerate(columns["key"].to_pylist())}
    order = np.array([place[key] for key in stored.table.column("key").to_pylist()])
    keys, cache = (
        packed_hashes(stored.table.column("content_hash")),
        project.store.embeddings(PlantedEmbedder().encoder_id),
    )
    for start in range(0, n_rows, CHUNK):
        cache.append(keys[start : start + CHUNK], world.embeddings(order[start : start + CHUNK]))
    record = project.discover()
    print(
        f"{len(record.slices)} slices found after {time.perf_counter() - begun:.0f} s", flush=True
    )
    project.verify(record.run_id)
    seconds = round(time.perf_counter() - begun)
    done.write_text(json.dumps({"rows": n_rows, "build_seconds": seconds}))
    print(f"built in {seconds} s", flush=True)


class Browser:
    """Asks the server as a page does."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def enter(self) -> None:
        """Come in."""
        body = json.dumps({"token": TOKEN}).encode()
        request = urllib.request.Request(
            self._address + "/api/session", body, {"Content-Type": "application/json"}
        )
        self._opener.open(request, timeout=600).read()

    def ask(self, path: str) -> tuple[int, float, int]:
        """Return status, seconds and bytes of an answer."""
        begun = time.perf_counter()
        try:
            with self._opener.open(self._address + path, timeout=600) as answer:
                content, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            content, status = error.read(), error.code
        return status, time.perf_counter() - begun, len(content)


def resident(pid: int) -> dict[str, int]:
    """Return resident memory now and at its highest, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {
        line.split(":")[0]: int(line.split()[1]) // 1024
        for line in lines
        if line.startswith(("VmRSS", "VmHWM"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache/weakspot/bench/first-page"
    )
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument(
        "--settle",
        type=float,
        default=0.0,
        help="seconds to wait after the server answers, for work in the background",
    )
    chosen = parser.parse_args()
    build(chosen.folder, chosen.rows)
    if chosen.build_only:
        return
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
    begun = time.perf_counter()
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        measure(server, begun, chosen.settle)
    finally:
        server.terminate()
        server.wait(timeout=30)


def measure(server: subprocess.Popen, begun: float, settle: float) -> None:
    """Ask for every page and print how long it took."""
    for line in server.stdout:
        found = re.search(r"http://[\d.]+:\d+", line)
        if found:
            break
    else:
        raise SystemExit("The server did not start.")
    browser = Browser(found[0])
    browser.enter()
    printed = time.perf_counter() - begun
    while browser.ask("/api/overview")[0] == 503:
        time.sleep(0.2)
    print(
        f"address after {printed:.1f} s, first overview after {time.perf_counter() - begun:.1f} s, {resident(server.pid)} MB"
    )
    time.sleep(settle)
    slow = []
    for page, paths in PAGES.items():
        for path in paths:
            status, first, n_bytes = browser.ask(path)
            again = browser.ask(path)[1]
            note = "" if first <= MAX_SECONDS else "  <-- longer than a second"
            print(
                f"{page:11s} {path:38s} {status}  first {first:7.3f} s  again {again:7.3f} s  {n_bytes / 1000:9.1f} kB{note}"
            )
            if note:
                slow.append(path)
    print(f"memory at the end: {resident(server.pid)} MB")
    print(json.dumps({"over_a_second": slow}))


if __name__ == "__main__":
    main()
