"""How fast the nearest embeddings are found, held against one pass over the same memory by as many threads.

    python benchmarks/nearest.py [--rows 1000000] [--dimension 512] [--repeats 7] [--folder FOLDER] [--index-rows 50000]

Embeddings are planted around a thousand centres, in four files of different size, read as memory maps. All ways are timed in turn,
again and again, so that a busy machine slows all of them alike; ratios are of medians. A pass adds up every number once.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from weakspot.core.arrays import FloatArray
from weakspot.project.nearest_rows import (
    EmbeddingShards,
    Nearest,
    approximate,
    nearest_rows,
    quantise_shards,
    recall,
    rows_above,
)

N_CENTRES = 1000
N_WANTED = 20
MAX_TIMES_A_PASS = 1.5
SHARES = (0.4, 0.3, 0.2, 0.1)


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def _sum(rows: FloatArray) -> float:
    total = np.float32(0.0)
    for row in range(len(rows)):
        for place in range(rows.shape[1]):
            total += rows[row, place]
    return total


def one_pass(shards: EmbeddingShards, threads: int) -> None:
    """Add up every number, pieces and threads as in a scan."""
    pieces = shards.pieces

    def work(number: int) -> None:
        for piece in pieces[number::threads]:
            _sum(shards.arrays[piece.shard][piece.start : piece.stop])

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def write_embeddings(folder: Path, n_rows: int, dimension: int) -> EmbeddingShards:
    """Write planted embeddings to files, unless they are there, and open them."""
    draws = np.random.default_rng(7)
    centres = draws.standard_normal((N_CENTRES, dimension), dtype=np.float32)
    arrays, left = [], n_rows
    for number, share in enumerate(SHARES):
        size = left if number == len(SHARES) - 1 else round(n_rows * share)
        left -= size
        path = folder / f"embeddings-{number}-{n_rows}x{dimension}.npy"
        if not path.exists():
            target = np.lib.format.open_memmap(
                path, mode="w+", dtype=np.float32, shape=(size, dimension)
            )
            for start in range(0, size, 50_000):
                part = draws.standard_normal(
                    (min(50_000, size - start), dimension), dtype=np.float32
                )
                target[start : start + len(part)] = (
                    part + centres[draws.integers(0, N_CENTRES, len(part))]
                )
            target.flush()
            del target
        arrays.append(np.load(path, mmap_mode="r"))
    return EmbeddingShards(arrays)


def resident_megabytes(kind: str) -> int:
    """Return resident memory of this process that is of one kind: RssAnon or RssFile."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(kind))


def measured(ways: dict[str, Callable[[], object]], n_repeats: int) -> dict[str, list[float]]:
    """Time all ways in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(n_repeats):
        for name, way in ways.items():
            begun = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - begun)
    return times


def query_near(shards: EmbeddingShards, seed: int, m: int = 1) -> FloatArray:
    """Return embeddings as far from any row as a phrase is."""
    draws = np.random.default_rng(seed)
    rows = draws.integers(0, len(shards.arrays[0]), m)
    noise = draws.standard_normal((m, shards.dimension), dtype=np.float32)
    return np.asarray(shards.arrays[0][rows] + 2 * noise, dtype=np.float32)


def same(one: list[Nearest], other: list[Nearest]) -> bool:
    """Return whether two answers are equal to the last bit."""
    pairs = zip(one, other, strict=True)
    return all(
        np.array_equal(a.rows, b.rows) and np.array_equal(a.scores, b.scores) for a, b in pairs
    )


def scans(shards: EmbeddingShards, threads: int, n_repeats: int) -> bool:
    """Print what a scan takes; return whether the bar is held."""
    begun = time.perf_counter()
    rough = quantise_shards(shards)
    made = time.perf_counter() - begun
    query, several = query_near(shards, 1), query_near(shards, 2, 16)
    within = np.zeros(len(shards), dtype=np.bool_)
    within[np.random.default_rng(3).permutation(len(shards))[: len(shards) // 10]] = True
    best = nearest_rows(shards, query, N_WANTED, threads=threads)
    near = float(best[0].scores[-1])
    assert same(best, nearest_rows(rough, query, N_WANTED, threads=1)), (
        "the smaller copy must not change the answer"
    )
    ways: dict[str, Callable[[], object]] = {
        "one pass": lambda: one_pass(shards, threads),
        f"exact, best {N_WANTED}": lambda: nearest_rows(shards, query, N_WANTED, threads=threads),
        f"int8 copy, best {N_WANTED}, same answer": lambda: nearest_rows(
            rough, query, N_WANTED, threads=threads
        ),
        "all above a threshold, exact": lambda: sum(
            map(len, rows_above(shards, query, near / 2, threads=threads))
        ),
        "all above a threshold, int8 copy": lambda: sum(
            map(len, rows_above(rough, query, near / 2, threads=threads))
        ),
        f"exact, best {N_WANTED} within a tenth of the rows": lambda: nearest_rows(
            shards, query, N_WANTED, threads=threads, within=within
        ),
        "16 phrases at once, exact": lambda: nearest_rows(
            shards, several, N_WANTED, threads=threads
        ),
        "16 phrases at once, int8 copy": lambda: nearest_rows(
            rough, several, N_WANTED, threads=threads
        ),
    }
    times = measured(ways, n_repeats)
    whole = statistics.median(times["one pass"])
    print(
        f"\n| {len(shards):,} x {shards.dimension}, {threads} threads | least s | median s | times a pass |\n|---|---|---|---|"
    )
    for name, taken in times.items():
        print(
            f"| {name} | {min(taken):.3f} | {statistics.median(taken):.3f} | {statistics.median(taken) / whole:.2f} |"
        )
    paired = [
        one / other
        for one, other in zip(times[f"exact, best {N_WANTED}"], times["one pass"], strict=True)
    ]
    gigabytes = len(shards) * shards.dimension * 4 / 1e9
    print(
        f"\nOne pass reads {gigabytes / whole:.1f} GB/s. The int8 copy was opened, or made, in {made:.1f} s."
    )
    print(
        f"Memory of its own {resident_megabytes('RssAnon')} MB, pages of files {resident_megabytes('RssFile')} MB."
    )
    print(
        f"Exact best {N_WANTED}: median of {n_repeats} ratios to the pass just before {statistics.median(paired):.2f}."
    )
    return statistics.median(paired) <= MAX_TIMES_A_PASS


def index(folder: Path, n_rows: int, dimension: int) -> None:
    """Print what the approximate index takes and how much it finds."""
    shards = write_embeddings(folder, n_rows, dimension)
    begun = time.perf_counter()
    found = approximate(shards)
    built = time.perf_counter() - begun
    queries = query_near(shards, 5, 50)
    exact = nearest_rows(shards, queries, N_WANTED)
    begun = time.perf_counter()
    some = found.nearest_rows(queries, N_WANTED)
    taken = (time.perf_counter() - begun) / len(queries)
    shares = [recall(one, other) for one, other in zip(some, exact, strict=True)]
    begun = time.perf_counter()
    nearest_rows(shards, queries[:1], N_WANTED)
    alone = time.perf_counter() - begun
    print(f"\n| approximate index, {n_rows:,} x {dimension} | |\n|---|---|")
    print(f"| built in one thread, or opened | {built:.1f} s |")
    print(f"| one query | {1000 * taken:.2f} ms (exact {1000 * alone:.1f} ms) |")
    print(
        f"| share of the exact best {N_WANTED} found, mean and least of {len(queries)} | {np.mean(shares):.3f}, {min(shares):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--folder",
        type=Path,
        default=None,
        help="keep the embeddings here; a temporary folder by default",
    )
    parser.add_argument(
        "--index-rows", type=int, default=50_000, help="rows of the approximate index; 0 for none"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = chosen.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        is_held = scans(
            write_embeddings(folder, chosen.rows, chosen.dimension), chosen.threads, chosen.repeats
        )
        if chosen.index_rows:
            index(folder, chosen.index_rows, chosen.dimension)
    assert is_held, f"an exact best {N_WANTED} must take at most {MAX_TIMES_A_PASS} times a pass"


if __name__ == "__main__":
    main()
