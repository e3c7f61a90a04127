"""A fuzzer: real files with bytes changed, cut, repeated and removed. Nothing but our own errors, and never without end."""

import csv
import io
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.core.errors import WeakspotError
from weakspot.data.examine import QUARANTINE_REASONS, examine
from weakspot.data.table_source import ManifestSource

N_IMAGES, N_TABLES = 150, 80
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")


def mutated(data, generator):
    """Return the bytes after one to four accidents."""
    changed = bytearray(data)
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(changed)) if changed else 0
        length = generator.choice((1, 2, 4, 16, 200))
        accident = generator.randrange(6)
        if accident == 0:
            changed[place : place + length] = generator.randbytes(length)
        elif accident == 1 and changed:
            changed[place] ^= 1 << generator.randrange(8)
        elif accident == 2:
            del changed[place:]
        elif accident == 3:
            del changed[place : place + length]
        elif accident == 4:
            changed[place:place] = changed[place : place + length]
        else:
            changed[place : place + length] = (
                generator.choice((b"\x00", b"\xff", b"\x7f", b'"', b"\n")) * length
            )
    return bytes(changed)


def encoded(kind):
    pixels = np.random.default_rng(7).integers(0, 256, (24, 30, 3), dtype=np.uint8)
    stream = io.BytesIO()
    frames = [Image.fromarray(np.roll(pixels, turn)) for turn in range(2)]
    options = (
        {"save_all": True, "append_images": frames[1:]} if kind in ("GIF", "WEBP", "TIFF") else {}
    )
    frames[0].save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("kind", FORMATS)
def test_examine__damaged_images_are_samples_or_set_aside(kind):
    whole, generator = encoded(kind), random.Random(f"images {kind}")
    assert isinstance(examine(RawSample(key="whole", data=whole)), ExaminedSample)
    n_aside = 0
    for number in range(N_IMAGES):
        found = examine(RawSample(key=str(number), data=mutated(whole, generator)))
        if isinstance(found, RawSample):
            n_aside += 1
            assert found.reason in QUARANTINE_REASONS
        else:
            assert found.width > 0
            assert found.height > 0
    assert n_aside > 0


def table_bytes(ending):
    rows = [
        (f"{number}.jpg", ("cat", "dog")[number % 2], number / 40, ("train", "val", "")[number % 3])
        for number in range(40)
    ]
    names = ("path", "label", "prob_cat", "split")
    if ending == ".csv":
        text = io.StringIO()
        csv.writer(text).writerows([names, *rows])
        return text.getvalue().encode()
    if ending == ".jsonl":
        return "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows).encode()
    stream = io.BytesIO()
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    if ending == ".parquet":
        pq.write_table(table, stream, row_group_size=9)
    else:
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table, max_chunksize=9)
    return stream.getvalue()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_manifest__damaged_tables_are_rows_or_an_error_of_ours(ending, tmp_path):
    whole, generator = table_bytes(ending), random.Random(f"tables {ending}")
    path = tmp_path / f"m{ending}"
    n_refused = 0
    for _ in range(N_TABLES):
        path.write_bytes(mutated(whole, generator))
        source = ManifestSource(location=str(path))
        try:
            source.fingerprint()
            assert all(sample.key for sample in source.read())
        except WeakspotError:
            n_refused += 1
    assert n_refused
