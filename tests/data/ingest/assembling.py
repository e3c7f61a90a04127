"""Samples that were examined, and what they are put together to."""

import pyarrow as pa

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.data.assemble import Assembly, assemble
from weakspot.data.examine import examined_table
from weakspot.data.settings import DataSettings


def sample(key, *labels, content=None, **fields) -> ExaminedSample:
    raw = RawSample(key=key, location=f"{key}.jpg", labels=labels, **fields)
    digest = content or f"{sum(key.encode()):032x}"
    return ExaminedSample(raw=raw, content_hash=digest, width=4, height=3)


def assembled(samples, *, part_size=3, seed=0, **settings) -> Assembly:
    starts = range(0, len(samples), part_size)
    parts = [examined_table(samples[start : start + part_size]) for start in starts]
    return assembled_parts(parts, seed=seed, **settings)


def assembled_parts(parts, *, seed=0, **settings) -> Assembly:
    def read_parts(columns=None):
        for part in parts:
            wanted = part.column_names if columns is None else columns
            yield part.select([name for name in wanted if name in part.column_names])

    return assemble(read_parts, DataSettings(**settings), where="here", seed=seed)


def table_of(assembly: Assembly) -> pa.Table:
    return pa.concat_tables([samples for samples, _ in assembly.batches()])
