"""What listing and reading of large sources costs: memory a row, time a row, resuming, and a second reading after a change.

    python benchmarks/listing.py                     # 0.5 and 2 million rows, about five minutes on an idle core
    python benchmarks/listing.py --rows 100000 400000

Every ingest runs in a process of its own, whose peak of resident memory is what the system tells of it.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

N_IMAGES = 3000
LONG_AGO = 1_500_000_000
LARGEST = 100_000_000
INGEST = """
import sys, time
from pathlib import Path
from weakspot.run.ingestion import ingest
from weakspot.data.engine.local import LocalEngine
from weakspot.data.open_source import open_source
from weakspot.store.project import ProjectStore
begun = time.perf_counter()
summary = ingest(ProjectStore.create(Path(sys.argv[1])), open_source(sys.argv[2]), engine=LocalEngine())
seconds = time.perf_counter() - begun
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(summary.n_samples, peak, seconds, summary.n_read, summary.n_reused)
"""
RESUME = """
import sys, time
from weakspot.data.open_source import open_source
source = open_source(sys.argv[1])
next(iter(source.read()))
begun = time.perf_counter()
next(iter(source.read(int(sys.argv[2]))))
print(time.perf_counter() - begun)
"""


def run(code: str, *arguments: object) -> list[float]:
    """Return the numbers that a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [float(word) for word in done.stdout.split()]


def write_rows(path: Path, n_rows: int) -> None:
    """Write a table without images: keys, labels, predictions."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sample_id", "label", "prediction"])
        writer.writerows((f"k{row}", f"c{row % 10}", f"c{row % 7}") for row in range(n_rows))


def as_parquet(path: Path) -> Path:
    """Write the same table as Parquet."""
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    other = path.with_suffix(".parquet")
    pq.write_table(arrow_csv.read_csv(path), other, row_group_size=1 << 16)
    return other


def growth(sizes: Sequence[int], folder: Path) -> None:
    """Print memory and time of ingests without images."""
    print(
        "| rows | peak, MB | time, s | microseconds a row | to row n - 1 of CSV, s | of Parquet, s |"
    )
    print("|---|---|---|---|---|---|")
    peaks = []
    for n_rows in sizes:
        table = folder / f"{n_rows}.csv"
        write_rows(table, n_rows)
        _, peak, seconds, *_ = run(INGEST, folder / f"project-{n_rows}", table)
        peaks.append(peak * 1024)
        late = [run(RESUME, path, n_rows - 1)[0] for path in (table, as_parquet(table))]
        row = f"{n_rows:,} | {peak / 1024:.0f} | {seconds:.1f} | {1e6 * seconds / n_rows:.0f} | {late[0]:.2f} | {late[1]:.2f}"
        print(f"| {row} |", flush=True)
    a_row = (peaks[-1] - peaks[0]) / (sizes[-1] - sizes[0])
    whole = peaks[0] + a_row * (LARGEST - sizes[0])
    print(f"\n{a_row:.0f} bytes a row; {LARGEST:,} rows need {whole / 2**30:.1f} GB.\n")


def second_readings(folder: Path) -> None:
    """Print what a changed folder costs, against reading all of it."""
    images = folder / "images"
    for number in range(N_IMAGES):
        path = images / f"class {number % 5}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = (number % 256, number // 256, 90)
        Image.effect_noise((480, 360), 40).convert("RGB").point(
            lambda value, c=colour: (value + c[0]) % 256
        ).save(path)
        os.utime(path, (LONG_AGO, LONG_AGO))
    print("| reading of a folder | images read | taken over | time, s | share of the first |")
    print("|---|---|---|---|---|")
    first = _reading(folder, images, f"the first, {N_IMAGES:,} images", None)
    changed = sorted(images.rglob("*.jpg"))[:: N_IMAGES // 30]
    for path in changed:
        os.utime(path, (LONG_AGO + 9, LONG_AGO + 9))
    _reading(folder, images, "1 % changed", first)
    _reading(folder, images, "nothing changed", first)


def _reading(folder: Path, images: Path, name: str, first: float | None) -> float:
    _, _, seconds, n_read, n_taken = run(INGEST, folder / "project", images)
    share = "" if first is None else f"{100 * seconds / first:.0f} %"
    print(f"| {name} | {n_read:.0f} | {n_taken:.0f} | {seconds:.2f} | {share} |", flush=True)
    return seconds


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000])
    given = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        second_readings(Path(temporary))
        print()
        growth(given.rows, Path(temporary))
    print(f"All of it took {time.perf_counter() - begun:.0f} s.")


if __name__ == "__main__":
    main()
