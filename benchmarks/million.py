"""A million samples end to end: every stage of the loop in a process of its own, with its time, memory and disk.

    python benchmarks/million.py --features [--rows 1000000] [--quick] [--methods] [--out features.md]
    python benchmarks/million.py --files [--rows 1000000] [--quick] [--out files.md]

`--features`: planted samples without images; embeddings and features of 512 numbers come as files, go through the store as shards,
and everything after that is the real loop. Four sizes, each twice the one before, and a fit of how cost grows with size.
`--files`: 20,000 image files listed 50 times, decoded and hashed 1,000,000 times; every different image is embedded and
classified once. `--methods` also runs every other discoverer at the largest size. `--quick` is a tenth of the rows.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from million_worlds import WIDTH, make_features, make_files, make_images

HOME = Path.home() / ".cache/weakspot/bench/million"
LOOP = ("ingest", "embed", "classify", "discover", "verify", "repair", "report")
METHODS = ("attributes", "keywords", "mixture", "spotlight", "uncommon-attributes")
LISTED = 50
MAX_MB = 8 * 1024


def run_stage(folder: Path, stage: str) -> dict:
    """Run one stage and return what it took, with what it added to the project folder."""
    before = disk_mb(folder)
    command = [
        sys.executable,
        str(Path(__file__).with_name("million_stage.py")),
        str(folder),
        stage,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{stage} failed:\n{done.stderr[-4000:]}")
    measured = json.loads(done.stdout.splitlines()[-1]) | {"disk": disk_mb(folder) - before}
    print(json.dumps(measured), file=sys.stderr, flush=True)
    return measured


def disk_mb(folder: Path) -> int:
    """Return what the project's own data takes, in MB."""
    return (
        sum(
            path.stat().st_blocks * 512
            for path in (folder / ".weakspot").rglob("*")
            if path.is_file()
        )
        >> 20
    )


def run_loop(folder: Path, n_rows: int) -> list[dict]:
    """Run all stages in order."""
    print(f"{n_rows:,} rows, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return [run_stage(folder, stage) | {"rows": n_rows} for stage in LOOP]


def stage_table(measured: list[dict]) -> str:
    """Return what every stage took, as Markdown."""
    lines = [
        "| stage | seconds | of processor | resident (MB) | of it own (MB) | of it mapped (MB) | written (MB) | what came out |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {one['stage']} | {one['seconds']:.1f} | {one['cpu']:.1f} | {one['VmHWM']:,} | {one['RssAnon']:,} | {one['RssFile']:,} "
        f"| {one['disk']:,} | {one['told']} |"
        for one in measured
    ]
    seconds, cpu = (sum(one[name] for one in measured) for name in ("seconds", "cpu"))
    most, disk = max(one["VmHWM"] for one in measured), sum(one["disk"] for one in measured)
    verdict = f"within {MAX_MB:,} MB" if most <= MAX_MB else f"MORE than {MAX_MB:,} MB"
    lines.append(f"| all | {seconds:.1f} | {cpu:.1f} | {most:,} | | | {disk:,} | {verdict} |")
    return "\n".join(lines)


def fitted(rows: np.ndarray, cost: np.ndarray) -> tuple[float, float, float]:
    """Return the slope of log cost over log rows, its standard error, and R^2 of a line of cost over rows."""
    x, y = np.log(rows) - np.log(rows).mean(), np.log(cost) - np.log(cost).mean()
    slope = float((x @ y) / (x @ x))
    error = float(np.sqrt(np.sum((y - slope * x) ** 2) / max(1, len(x) - 2) / (x @ x)))
    line = np.polyval(np.polyfit(rows, cost, 1), rows)
    spread = float(np.sum((cost - cost.mean()) ** 2))
    return slope, error, 1.0 - float(np.sum((cost - line) ** 2)) / spread if spread else 1.0


def fit_table(runs: dict[int, list[dict]]) -> str:
    """Return how the cost of every stage grows with the number of rows, as Markdown."""
    sizes = np.array(sorted(runs), dtype=np.float64)
    head = " | ".join(f"{int(size):,}" for size in sizes)
    lines = [
        f"| seconds | {head} | exponent | standard error | R² of a line | exponent of processor seconds | of resident memory |",
        "|---|" + "---:|" * (len(sizes) + 5),
    ]
    for place, stage in enumerate((*LOOP, "all")):
        picked = [
            runs[int(size)][place : place + 1] if stage != "all" else runs[int(size)]
            for size in sizes
        ]
        seconds, cpu = (
            np.array([sum(one[name] for one in each) for each in picked])
            for name in ("seconds", "cpu")
        )
        memory = np.array([max(one["VmHWM"] for one in each) for each in picked], dtype=np.float64)
        slope, error, r2 = fitted(sizes, seconds)
        shown = " | ".join(f"{one:.1f}" for one in seconds)
        others = f"{fitted(sizes, cpu)[0]:.2f} | {fitted(sizes, memory)[0]:.2f}"
        lines.append(f"| {stage} | {shown} | {slope:.2f} | {error:.2f} | {r2:.3f} | {others} |")
    return "\n".join(lines)


def measure_features(chosen: argparse.Namespace) -> str:
    """Run the loop on planted embeddings at several sizes and return the tables."""
    sizes = [chosen.rows >> shift for shift in reversed(range(chosen.sizes))]
    runs: dict[int, list[dict]] = {}
    others: list[dict] = []
    for n_rows in sizes:
        folder = chosen.folder / f"features-{n_rows}"
        shutil.rmtree(folder, ignore_errors=True)
        make_features(folder, n_rows, chosen.width)
        runs[n_rows] = run_loop(folder, n_rows)
        if n_rows == sizes[-1] and chosen.methods:
            others = [
                run_stage(folder, stage)
                for stage in ("embed given", *(f"discover:{method}" for method in METHODS))
            ]
        if not chosen.keep:
            shutil.rmtree(folder)
    text = f"### {sizes[-1]:,} planted samples, embeddings and features of width {chosen.width}\n\n{stage_table(runs[sizes[-1]])}\n"
    text += f"\n### How cost grows\n\n{fit_table(runs)}\n"
    if others:
        text += f"\n### Embeddings given as a file, and other discoverers, at {sizes[-1]:,} samples\n\n{stage_table(others)}\n"
    return text


def measure_files(chosen: argparse.Namespace) -> str:
    """Run the loop on listed image files and return the table."""
    n_files = max(1, chosen.rows // LISTED)
    images, folder = chosen.folder / f"images-{n_files}", chosen.folder / f"files-{chosen.rows}"
    make_images(images, n_files)
    shutil.rmtree(folder, ignore_errors=True)
    make_files(folder, chosen.rows, images, n_files)
    measured = run_loop(folder, chosen.rows)
    if not chosen.keep:
        shutil.rmtree(folder)
    return f"### {n_files:,} image files listed as {chosen.rows:,} samples\n\n{stage_table(measured)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", action="store_true", help="planted embeddings")
    parser.add_argument("--files", action="store_true", help="image files")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--sizes",
        type=int,
        default=4,
        help="how many sizes the fit is made from, each twice the one before",
    )
    parser.add_argument("--width", type=int, default=WIDTH, help="numbers in a planted embedding")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument(
        "--methods", action="store_true", help="also the other discoverers, at the largest size"
    )
    parser.add_argument("--keep", action="store_true", help="leave the projects where they are")
    parser.add_argument("--folder", type=Path, default=HOME)
    parser.add_argument("--out", type=Path, help="also write the Markdown here")
    chosen = parser.parse_args()
    chosen.rows //= 10 if chosen.quick else 1
    begun, load = time.perf_counter(), os.getloadavg()[0]
    both = not chosen.features and not chosen.files
    pieces = [measure_features(chosen)] if chosen.features or both else []
    pieces += [measure_files(chosen)] if chosen.files or both else []
    minutes = (time.perf_counter() - begun) / 60
    text = (
        "\n".join(pieces)
        + f"\n{os.cpu_count()} cores, load {load:.1f} at the start; {minutes:.1f} minutes in all, making worlds included.\n"
    )
    print(text)
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
