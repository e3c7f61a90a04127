"""A table without images from CSV to report: wall and processor seconds and peak memory of every step.

    python benchmarks/tables/scale.py [--rows 200000 2000000] [--columns 40]

The table has yes/no columns behind which one hidden number stands, four classes, a prediction, a split (half of the rows are
validation), and failures that depend on one column and on a pair of columns. Method `attributes`, combinations of up to three.
Every step is a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLASSES = np.array(["cat", "dog", "owl", "fox"])
BLOCK_ROWS = 100_000
GOAL_SECONDS, GOAL_MB = 60, 1000
STEPS = ("ingest", "run", "report")


def write_table(path: Path, n_rows: int, n_columns: int) -> None:
    """Write the table in blocks; the same numbers give the same file."""
    import pyarrow as pa
    from pyarrow import csv

    random = np.random.default_rng(2026)
    edges = random.uniform(-0.5, 2.0, n_columns)
    writer = None
    for start in range(0, n_rows, BLOCK_ROWS):
        n_here = min(BLOCK_ROWS, n_rows - start)
        hidden = random.normal(size=(n_here, 1))
        has = 0.6 * hidden + 0.8 * random.normal(size=(n_here, n_columns)) > edges
        labels = random.integers(0, len(CLASSES), n_here)
        chance = np.full(n_here, 0.05)
        chance[has[:, 1] & (labels == 1)] = 0.3
        chance[has[:, 2] & has[:, 3] & (labels == 0)] = 0.5
        wrong = random.random(n_here) < chance
        predicted = np.where(wrong, (labels + 1) % len(CLASSES), labels)
        columns = {
            "key": [f"s{number:08d}" for number in range(start, start + n_here)],
            "label": CLASSES[labels],
            "prediction": CLASSES[predicted],
            "split": np.array(["train", "validation"])[random.integers(0, 2, n_here)],
        }
        columns |= {
            f"has{number:02d}": np.array(["no", "yes"])[has[:, number].astype(np.int64)]
            for number in range(n_columns)
        }
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        writer = writer or csv.CSVWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def work(step: str, table: str, folder: str) -> None:
    """Do one step and print what it took as one line of JSON."""
    begun = time.perf_counter()
    import weakspot

    told = ""
    if step == "ingest":
        settings = {"discover": {"methods": ["attributes"]}}
        project = weakspot.Project.create(
            folder, data=table, settings=weakspot.Settings.model_validate(settings)
        )
        told = f"{project.ingest().n_samples:,} samples"
    else:
        project = weakspot.Project.open(folder, methods=("attributes",))
        if step == "run":
            record = project.run()
            stages = ", ".join(
                f"{stage.stage} {stage.seconds:.1f} s" for stage in record.stages if stage.seconds
            )
            told = f"{len(record.published())} of {len(record.slices)} confirmed ({stages})"
        else:
            told = f"{project.report()[0].stat().st_size / 1000:.0f} kB"
    status = Path("/proc/self/status").read_text().splitlines()
    spent = os.times()
    measured = {
        "step": step,
        "seconds": time.perf_counter() - begun,
        "cpu": spent.user + spent.system,
        "memory": next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) >> 10,
        "told": told,
    }
    sys.stdout.write(json.dumps(measured) + "\n")


def measure(n_rows: int, n_columns: int) -> list[dict[str, object]]:
    """Make a table and go from it to the report."""
    measured = []
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "table.csv"
        write_table(table, n_rows, n_columns)
        for step in STEPS:
            command = [sys.executable, __file__, "--work", step, str(table), name + "/project"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{step} failed:\n{done.stderr[-4000:]}")
            measured.append(json.loads(done.stdout.splitlines()[-1]))
            sys.stderr.write(json.dumps(measured[-1]) + "\n")
    return measured


def main() -> None:
    """Measure all sizes and print a table for each."""
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 2_000_000])
    parser.add_argument("--columns", type=int, default=40)
    given = parser.parse_args()
    for n_rows in given.rows:
        measured = measure(n_rows, given.columns)
        lines = [
            f"{n_rows:,} rows, {given.columns} columns; load of the machine {os.getloadavg()[0]:.1f}",
            "",
            "| step | seconds | of processor | peak memory (MB) | what came out |",
            "|---|---:|---:|---:|---|",
        ]
        lines += [
            f"| {one['step']} | {one['seconds']:.1f} | {one['cpu']:.1f} | {one['memory']:,} | {one['told']} |"
            for one in measured
        ]
        seconds, cpu = (sum(one[name] for one in measured) for name in ("seconds", "cpu"))
        most = max(one["memory"] for one in measured)
        lines.append(
            f"| all | {seconds:.1f} | {cpu:.1f} | {most:,} | goal at 200,000 rows: {GOAL_SECONDS} s, {GOAL_MB:,} MB |"
        )
        sys.stdout.write("\n".join(lines) + "\n\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
