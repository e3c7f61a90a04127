"""A small bundle with real images for tests of exports: eight discs and squares, green discs fail."""

from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.tools.bundle import ExchangeBundle, ListedSample, MarkedSlice

SPLITS = ["train", "train", "validation", "validation", "test", "test", "pool", "pool"]
COLOURS = ["red", "green", "red", "green", "red", "green", "red", "green"]
LABELS = [0, 0, 1, 0, 1, 0, -1, -1]
PROBABILITIES = [
    [0.9, 0.1],
    [0.2, 0.8],
    [0.1, 0.9],
    [0.3, 0.7],
    [0.25, 0.75],
    [0.4, 0.6],
    [0.6, 0.4],
    [0.2, 0.8],
]
TITLE, TAG = "disc: green", "weakspot-disc-green"


def made_bundle(folder: Path, **changes) -> ExchangeBundle:
    """Return a bundle whose even images are files and whose odd ones stand in one pack."""
    locations = _images(folder)
    probabilities = np.array(PROBABILITIES, dtype=np.float32)
    dataset = dataset_from_columns(
        class_names=["disc", "square"],
        labels=LABELS,
        splits=SPLITS,
        locations=locations,
        metadata={
            "colour": COLOURS,
            "size": np.arange(8) / 4,
            "box share": [None, *range(7)],
            "tags": ["own"] * 8,
        },
        predictions=np.argmax(probabilities, axis=1),
        probabilities=probabilities,
    )
    dataset = _with_sizes(dataset)
    embeddings = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(8),
        spaces={"clip": EmbeddingSpace(encoder_id="made", embeddings=embeddings, has_text=True)},
    )
    found = FailureSlice(
        class_name="disc",
        rule=ColumnRule(column="colour", values=("green",)),
        method="attributes",
        found_on=DataUse(name="validation, discovery half", n_samples=2, digest="0"),
        names=(SliceName(phrase="a green disc", contrast="green", score=1.0, describer="made"),),
    )
    marked = MarkedSlice(
        found=found, evidence=made_evidence(found), rows=np.array([1, 3, 5]), tag=TAG
    )
    given = {
        "name": "shapes",
        "samples": samples,
        "record": None,
        "slices": (marked,),
        "has_failed": np.array([False, True, False, True, False, True, False, False]),
        "is_judged": np.array([True] * 6 + [False] * 2),
        "to_label": (
            ListedSample(row=3, why="disc: green: is the label right?"),
            ListedSample(row=7, why="disc: green"),
        ),
    }
    return ExchangeBundle(**{**given, **changes})


def made_evidence(found: FailureSlice) -> Evidence:
    """Return evidence of 9 failures of 10 inside against 1 of 20 outside."""
    return Evidence(
        slice_id=found.slice_id,
        verifier="holdout",
        measured_on=DataUse(name="validation, confirmation half", n_samples=30, digest="1"),
        n_inside=10,
        failures_inside=9,
        n_outside=20,
        failures_outside=1,
        rate_inside=0.9,
        rate_outside=0.05,
        interval_inside=Interval(low=0.6, high=0.98),
        interval_outside=Interval(low=0.01, high=0.24),
        gap=0.85,
        p_value=1e-6,
        q_value=1e-5,
        n_tested=1,
        verdict=Verdict.CONFIRMED,
    )


def _images(folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, colour in enumerate(COLOURS):
        path = folder / f"{number}.png"
        Image.new("RGB", (12, 9), colour).save(path)
        files.append(path)
    pack, packed = b"", {}
    for number in range(1, 8, 2):
        data = files[number].read_bytes()
        packed[number] = f"{folder / 'pack.bin'}#bytes={len(pack)}-{len(data)}"
        pack += data
        files[number].unlink()
    (folder / "pack.bin").write_bytes(pack)
    return [packed.get(number, str(files[number])) for number in range(8)]


def _with_sizes(dataset):
    from dataclasses import replace

    import pyarrow as pa

    table = dataset.table
    for name, value in (("width", 12), ("height", 9)):
        table = table.set_column(
            table.column_names.index(name), name, pa.array([value] * len(table), pa.int32())
        )
    return replace(dataset, table=table)
