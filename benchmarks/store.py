"""Time and memory to open a project of a million samples with embeddings, measured in a process of its own.

    python benchmarks/store.py --rows 1000000

The project is written the way a real one is: examined parts, assembled tables, embeddings and predictions in caches.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from weakspot.core.dataset import RawSample
from weakspot.data.engine.local import LocalEngine
from weakspot.data.settings import DataSettings
from weakspot.run.ingestion import ingest
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

ENCODER_ID = "benchmark"

OPEN = """
import json, sys, time
started = time.perf_counter()
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore
imported, processor = time.perf_counter(), time.process_time()
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines if line.startswith(("VmRSS", "VmHWM"))}
before = resident()["VmRSS"]
project = ProjectStore.open(sys.argv[1])
dataset = project.dataset()
counts = len(dataset), int((dataset.labels >= 0).sum()), int(dataset.splits.sum())
keys = packed_hashes(dataset.table.column("content_hash"))
matrix = project.embeddings(sys.argv[2]).matrix(keys)
embeddings = matrix.values[::100_000].sum() if matrix is not None else None
opened, used = time.perf_counter(), time.process_time() - processor
after = resident()
print(json.dumps({"rows": counts[0], "open_seconds": round(opened - imported, 3), "open_processor_seconds": round(used, 3),
    "import_seconds": round(imported - started, 3),
    "resident_mb": after["VmRSS"], "peak_resident_mb": after["VmHWM"], "resident_before_open_mb": before}))
"""


class FeatureSource:
    """Samples without images, as planted worlds and prediction tables are."""

    kind = "benchmark"
    location = "generated"

    def __init__(self, n_rows):
        self._n_rows = n_rows

    def fingerprint(self):
        """Return a name."""
        return f"benchmark {self._n_rows}"

    def count(self):
        """Return the number of rows."""
        return self._n_rows

    def read(self, start=0):
        """Yield the rows."""
        splits = ("train", "train", "validation", "test")
        for row in range(start, self._n_rows):
            yield RawSample(
                key=f"train/class {row % 100}/photograph-{row:08d}.jpg",
                labels=(f"class {row % 100}",),
                split=splits[row % 4],
                predictions=(f"class {row % 97}",),
                metadata={"site": f"site {row % 7}", "year": 2000 + row % 20},
            )


def fill(project, n_rows, dimension):
    started = time.perf_counter()
    ingest(project, FeatureSource(n_rows), engine=LocalEngine(), settings=DataSettings())
    ingested = time.perf_counter()
    keys = packed_hashes(project.dataset().table.column("content_hash"))
    cache = project.embeddings(ENCODER_ID)
    draw = np.random.default_rng(0)
    for start in range(0, n_rows, 65_536):
        chunk = keys[start : start + 65_536]
        cache.append(chunk, draw.normal(size=(len(chunk), dimension)).astype(np.float32))
    stored = time.perf_counter()
    cache.materialise(keys, width=dimension)
    made = time.perf_counter()
    return {
        "ingest_seconds": round(ingested - started, 1),
        "store_embeddings_seconds": round(stored - ingested, 1),
        "materialise_seconds": round(made - stored, 1),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument(
        "--folder", type=Path, help="where to put the project; a temporary folder by default"
    )
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        written = fill(ProjectStore.create(folder), settings.rows, settings.dimension)
        command = [sys.executable, "-c", OPEN, folder, ENCODER_ID]
        opened = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(3)
        ]
        best = min(opened, key=lambda found: found["open_seconds"])
        print(json.dumps({**best, "dimension": settings.dimension, **written}))


if __name__ == "__main__":
    main()
