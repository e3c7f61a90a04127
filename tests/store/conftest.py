import numpy as np
import pyarrow as pa
import pytest

QUARANTINE = pa.table(
    {"key": ["bad"], "location": ["bad.jpg"], "reason": ["truncated"], "detail": ["cut"]}
)


def write_tables(tables, *, locations=("a.jpg", "weakspot-pack:g/images-0000.bin#bytes=0-4", None)):
    n_samples = len(locations)
    samples = pa.table(
        {
            "sample_id": [f"{number:032x}" for number in range(n_samples)],
            "content_hash": [f"{number:032x}" for number in range(n_samples)],
            "location": pa.array(list(locations), pa.string()),
            "key": [f"row {number}" for number in range(n_samples)],
            "split": pa.array([0, 1, 2][:n_samples], pa.int8()),
            "label": pa.array([1, 0, -1][:n_samples], pa.int32()),
            "width": pa.array([4] * n_samples, pa.int32()),
            "height": pa.array([5] * n_samples, pa.int32()),
        }
    )
    with tables.writing(n_samples=n_samples) as writer:
        writer.add(samples.slice(0, 1), {"predictions": np.array([1])})
        writer.add(samples.slice(1), {"predictions": np.array([0, -1])[: n_samples - 1]})
        writer.add_side_tables(
            quarantine=iter([QUARANTINE]),
            duplicates=pa.table({"content_hash": pa.array([], pa.string())}),
        )
        writer.note({"class_names": ["cat", "dog"], "task": "single-label", "n_samples": n_samples})


@pytest.fixture
def fill():
    return write_tables
