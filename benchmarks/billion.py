"""What a billion images take: the arithmetic of `capacity`, held against the real engine on planted rows.

    python benchmarks/billion.py [--rows 1e9] [--image-bytes 100000] [--model-ms 500] [--accelerator-ms 0.5] [--no-check]

1. What one image costs on this machine, as far as no model is needed: decoding, writing its embedding, its row in the tables.
2. Planted rows through `LocalEngine` and `ProcessEngine` with stages that wait for known times, with several workers: predicted
   and measured seconds. Waiting stands for the network and for an accelerator, so that two cores can play many machines.
3. The forecast for a billion, as a table. Prices and speeds that were not measured here are assumptions: give your own.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from capacity import SECONDS_AN_HOUR, Fleet, ImageCost, forecast, members_needed, scan_seconds
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.machine import available_cores
from weakspot.core.roles import Engine
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.images import decode_image
from weakspot.store.array_files import KEY_TYPE
from weakspot.store.embeddings import EmbeddingCache
from weakspot.testing.planted import plant, rare

BATCH = 8
MAX_ERROR = 0.15
CPU_PRICE, GPU_PRICE = 0.60, 1.20
CORES = 16
NETWORK = 1.25e9


@dataclass(frozen=True, kw_only=True)
class WaitingWork:
    """Planted rows whose reading and embedding take known times."""

    n_rows: int
    read_seconds: float
    model_seconds: float

    def prepare(self, item: int) -> int:
        """Wait as long as reading an image takes."""
        time.sleep(self.read_seconds)
        return item

    def run(self, ready: Sequence[int]) -> FloatArray:
        """Wait as long as a model takes, and give the planted embeddings."""
        time.sleep(self.model_seconds * len(ready))
        return planted_embeddings(self.n_rows)[list(ready)]


def planted_embeddings(n_rows: int, known: dict[int, FloatArray] = {}) -> FloatArray:  # noqa: B006 - one world a process
    """The embeddings of a planted world, made once."""
    if n_rows not in known:
        known[n_rows] = plant(rare(0.01), n_rows, seed=3).embeddings(np.arange(n_rows))
    return known[n_rows]


def measured_rate(engine: Engine, work: WaitingWork, table_seconds: float) -> float:
    """Return rows a second from the first result on, so that starting processes does not count; check every embedding."""
    expected, first, done = planted_embeddings(work.n_rows), 0.0, 0
    warm = 4 * BATCH * 8
    for embeddings in engine.map_batches(
        partial(replace, work), range(work.n_rows), batch_size=BATCH
    ):
        assert np.array_equal(embeddings, expected[done : done + len(embeddings)]), (
            "a row was lost, doubled or changed"
        )
        done += len(embeddings)
        time.sleep(table_seconds * len(embeddings))
        if done == warm:
            first = time.perf_counter()
    return (done - warm) / (time.perf_counter() - first)


def check(n_rows: int) -> bool:
    """Print predicted and measured times; return whether all agree."""
    cores, agreed = available_cores(), True
    print(
        "\n| engine | workers | reads at once | read ms | model ms | table ms | waits for | predicted s | measured s | error |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    cases = [
        ("threads", workers, read, model, table)
        for workers, read, model, table in (
            (2, 20, 1, 0.1),
            (4, 20, 1, 0.1),
            (8, 20, 1, 0.1),
            (8, 5, 4, 0.1),
            (8, 5, 1, 3),
        )
    ] + [
        ("processes", workers, read, model, table)
        for workers, read, model, table in (
            (1, 20, 1, 0.1),
            (2, 20, 1, 0.1),
            (4, 20, 1, 0.1),
            (1, 2, 8, 0.1),
            (2, 2, 8, 0.1),
            (4, 2, 8, 0.1),
            (4, 2, 2, 3),
        )
    ]
    for kind, workers, read, model, table in cases:
        engine: Engine = (
            LocalEngine(n_workers=workers)
            if kind == "threads"
            else ProcessEngine(n_workers=workers)
        )
        machines, streams = (
            (1, workers) if kind == "threads" else (workers, max(1, cores // workers))
        )
        cost = ImageCost(
            n_bytes=0,
            read_seconds=read / 1e3,
            decode_seconds=0.0,
            model_seconds=model / 1e3,
            table_seconds=table / 1e3,
        )
        fleet = Fleet(
            n_machines=machines,
            n_cores=cores,
            n_accelerators=1,
            n_streams=streams,
            network=1e12,
            shares_tables=True,
        )
        expected = forecast(n_rows, cost, fleet)
        work = WaitingWork(
            n_rows=n_rows, read_seconds=cost.read_seconds, model_seconds=cost.model_seconds
        )
        predicted, taken = (
            expected.hours * SECONDS_AN_HOUR,
            n_rows / measured_rate(engine, work, cost.table_seconds),
        )
        error = taken / predicted - 1
        agreed &= abs(error) <= MAX_ERROR
        print(
            f"| {kind} | {workers} | {machines * streams} | {read} | {model} | {table} | {expected.bottleneck} | {predicted:.2f} "
            f"| {taken:.2f} | {100 * error:+.0f} % |",
            flush=True,
        )
    return agreed


def decode_seconds(n_bytes: int) -> tuple[float, int]:
    """Return what decoding one JPEG of about so many bytes takes a core, for a model that wants 224 pixels; and its bytes."""
    draws = np.random.default_rng(0)
    small = draws.integers(0, 256, (48, 64, 3), dtype=np.uint8)
    image = Image.fromarray(small).resize((800, 600), Image.Resampling.BICUBIC)
    noise = draws.normal(0, 12, (600, 800, 1))
    image = Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))
    contents = []
    for quality in range(30, 96, 5):
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=quality)
        contents.append(stream.getvalue())
    data = min(contents, key=lambda content: abs(len(content) - n_bytes))
    begun = time.process_time()
    for _ in range(50):
        decode_image(data, image_side=224)
    return (time.process_time() - begun) / 50, len(data)


def table_seconds(dimension: int = 512, n_rows: int = 65_536) -> float:
    """Return what writing one embedding takes the process that writes, flushed to disk every 4,096."""
    keys = np.frombuffer(np.random.default_rng(0).bytes(16 * n_rows), dtype=KEY_TYPE)
    rows = np.ones((4096, dimension), dtype=np.float32)
    with tempfile.TemporaryDirectory() as place:
        cache = EmbeddingCache(Path(place), identity="benchmark")
        begun = time.perf_counter()
        for start in range(0, n_rows, 4096):
            cache.append(keys[start : start + 4096], rows)
        return (time.perf_counter() - begun) / n_rows


def bytes_a_row(n_rows: int = 100_000) -> float:
    """Return the memory of one row of the tables, with the columns every project has and a typical location."""
    columns = {
        "sample_id": pa.array([f"{row:032x}" for row in range(n_rows)]),
        "content_hash": pa.array([f"{row:032x}" for row in range(n_rows)]),
        "location": pa.array(
            [f"s3://bucket/shards/{row // 10_000:05d}/{row:012d}.jpg" for row in range(n_rows)]
        ),
        "key": pa.array([f"{row:012d}" for row in range(n_rows)]),
        "split": pa.array(np.zeros(n_rows, np.int8)),
        "label": pa.array(np.zeros(n_rows, np.int32)),
        "width": pa.array(np.zeros(n_rows, np.int32)),
        "height": pa.array(np.zeros(n_rows, np.int32)),
    }
    return pa.table(columns).nbytes / n_rows


def fleets(cost: ImageCost, accelerator_seconds: float, n_images: float) -> None:
    """Print hours and money for several fleets."""
    print(
        f"\n| {n_images:.0e} images | machines | images a second | hours | machine hours | money | waits for |"
    )
    print("|---|---|---|---|---|---|---|")
    cpu = Fleet(
        n_machines=1,
        n_cores=CORES,
        n_accelerators=0,
        n_streams=4 * CORES,
        network=NETWORK,
        price=CPU_PRICE,
    )
    gpu = replace(cpu, n_accelerators=1, price=GPU_PRICE)
    on_gpu = replace(cost, model_seconds=accelerator_seconds)
    kinds = (
        ("models on cores", cost, cpu),
        ("one accelerator a machine", on_gpu, gpu),
        ("the same, store gives 5 GB/s", on_gpu, replace(gpu, store=5e9)),
    )
    for name, one, fleet in kinds:
        for n_machines in (10, 100, 1000):
            found = forecast(n_images, one, replace(fleet, n_machines=n_machines))
            print(
                f"| {name} | {n_machines:,} | {found.rates[found.bottleneck]:,.0f} | {found.hours:,.1f} "
                f"| {found.machine_hours:,.0f} | {found.money:,.0f} | {found.bottleneck} |"
            )


def scans(n_rows: float) -> None:
    """Print how long one phrase takes over all embeddings."""
    print(
        "\n| one phrase over all embeddings | bytes per row | all | 1 machine | 20 machines | 100 machines |\n"
        "|---|---|---|---|---|---|"
    )
    for name, width in (("float32", 2048), ("float16", 1024), ("int8 copy", 520)):
        for place, speed in (("memory, 10 GB/s", 10e9), ("local disk, 2 GB/s", 2e9)):
            times = [
                scan_seconds(n_rows, bytes_a_row=width, n_machines=n, bytes_a_second=speed)
                for n in (1, 20, 100)
            ]
            print(
                f"| {name} from {place} | {width:,} | {n_rows * width / 1e12:.2f} TB | "
                + " | ".join(f"{one:,.1f} s" for one in times)
                + " |"
            )


def proof(n_tests: int = 30) -> None:
    """Print how many labelled samples discovery and proof need, which has nothing to do with how many images there are."""
    print(
        f"\n| fails inside, outside ({n_tests} tests) | members on the confirmation half "
        "| labelled samples of the class: slice is 10 % | 1 % |\n|---|---|---|---|"
    )
    for inside, outside in ((0.5, 0.05), (0.25, 0.05), (0.15, 0.05), (0.10, 0.05)):
        needed = members_needed(rate_inside=inside, rate_outside=outside, n_tests=n_tests)
        print(
            f"| {100 * inside:.0f} %, {100 * outside:.0f} % | {needed} | {2 * needed / 0.1:,.0f} | {2 * needed / 0.01:,.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--image-bytes", type=int, default=100_000)
    parser.add_argument(
        "--read-ms", type=float, default=50.0, help="assumed: one read of a remote store"
    )
    parser.add_argument(
        "--model-ms",
        type=float,
        default=500.0,
        help="of one core; measure with benchmarks/throughput.py",
    )
    parser.add_argument(
        "--accelerator-ms", type=float, default=0.5, help="of one accelerator; assumed"
    )
    parser.add_argument("--check-rows", type=int, default=2000)
    parser.add_argument("--no-check", action="store_true", help="leave the simulation out")
    chosen = parser.parse_args()
    decode, n_bytes = decode_seconds(chosen.image_bytes)
    table, row = table_seconds(), bytes_a_row()
    print(
        f"Measured here: a JPEG of {n_bytes:,} bytes is decoded in {1000 * decode:.1f} ms of a core, an embedding written in"
    )
    print(
        f"{1e6 * table:.0f} µs; a row of the tables takes {row:.0f} bytes of memory: 10^7 rows {row / 100:.1f} GB,"
    )
    print(f"10^8 rows {row / 10:.0f} GB, 10^9 rows {row:.0f} GB.")
    cost = ImageCost(
        n_bytes=chosen.image_bytes,
        read_seconds=chosen.read_ms / 1e3,
        decode_seconds=decode,
        model_seconds=chosen.model_ms / 1e3,
        table_seconds=table,
    )
    fleets(cost, chosen.accelerator_ms / 1e3, chosen.rows)
    scans(chosen.rows)
    proof()
    agreed = chosen.no_check or check(chosen.check_rows)
    assert agreed, f"prediction and measurement must agree within {MAX_ERROR:.0%}"


if __name__ == "__main__":
    main()
