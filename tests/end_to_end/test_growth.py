"""How much memory a row costs between the parts of a reading and the final tables."""

import subprocess
import sys

MAX_BYTES_A_ROW = 100
SMALL, LARGE = 200_000, 800_000
ASSEMBLE = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from weakspot.data.assemble import assemble
from weakspot.data.settings import DataSettings
from weakspot.data.examine import EXAMINED_SCHEMA

n_rows, size = int(sys.argv[1]), 4096

def part(start):
    n = min(size, n_rows - start)
    digits = np.random.default_rng(start).bytes(16 * n).hex()
    labels = pa.array(["cat", "dog", "cow"]).take(pa.array(np.arange(n) % 3))
    columns = {
        "key": pc.cast(pa.array(np.arange(start, start + n)), pa.string()),
        "content_hash": pa.array([digits[place : place + 32] for place in range(0, 32 * n, 32)]),
        "labels": pa.ListArray.from_arrays(pa.array(np.arange(n + 1), pa.int32()), labels),
        "notes": pa.ListArray.from_arrays(pa.array(np.zeros(n + 1), pa.int32()), pa.array([], pa.string())),
    }
    whole = {field.name: columns.get(field.name, pa.nulls(n, field.type)) for field in EXAMINED_SCHEMA}
    return pa.table(whole, schema=EXAMINED_SCHEMA)

def parts(columns):
    for start in range(0, n_rows, size):
        own = part(start)
        yield own if columns is None else own.select([name for name in columns if name in own.column_names])

assembly = assemble(parts, DataSettings(), where="a test")
for number, batch in enumerate(assembly.batches()):
    if number == 20:
        break
assert assembly.n_samples == n_rows
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_bytes(n_rows: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", ASSEMBLE, str(n_rows)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


def test_assemble__memory_grows_by_few_bytes_a_row():
    assert (peak_bytes(LARGE) - peak_bytes(SMALL)) / (LARGE - SMALL) < MAX_BYTES_A_ROW
