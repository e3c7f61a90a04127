"""Killed with SIGKILL at 50 random instants of ingest and embed, then resumed: the same tables as without any kill."""

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

N_KILLS = 50
N_PER_CLASS = 16
KINDS = ("folder", "arrays")


def write_encoder(path):
    weights = np.random.default_rng(3).integers(-2, 3, size=(8 * 8 * 3, 5)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["pixels", "weights"], ["embeddings"])],
        "small",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 192])],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(weights, "weights")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )


def write_images(folder):
    draw = np.random.default_rng(5)
    for name in ("apple", "pear"):
        (folder / name).mkdir(parents=True)
        for number in range(N_PER_CLASS):
            pixels = draw.integers(0, 256, size=(40, 56, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"good-{number:02d}.jpg", quality=80)
        whole = (folder / name / "good-00.jpg").read_bytes()
        (folder / name / "bad-empty.jpg").write_bytes(b"")
        (folder / name / "bad-cut.jpg").write_bytes(whole[: len(whole) // 2])
        (folder / name / "bad-text.jpg").write_text("this is not an image")
    (folder / "pear" / "good-copy.jpg").write_bytes((folder / "apple" / "good-03.jpg").read_bytes())


class Server:
    """Starts jobs in forked children of a warmed-up process and kills them by their own process id."""

    def __init__(self):
        command = [sys.executable, str(Path(__file__).with_name("kill_child.py"))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._read() == "ready"

    def run(self, job, *, kill_after=None):
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        child = int(self._read())
        if kill_after is not None:
            # A job that ends by itself before that is not waited for.
            select.select([self._process.stdout], [], [], kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._read())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self):
        return self._process.stdout.readline().strip()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def contents(project_folder):
    """Everything a project holds, without names that differ by chance."""
    project = ProjectStore.open(project_folder)
    tables = project.current_tables()
    dataset = tables.dataset()
    cache = project.embeddings("small@1")
    keys = packed_hashes(dataset.table.column("content_hash"))
    matrix = cache.matrix(keys)
    shards = np.concatenate(
        [np.load(path)["key"] for path in sorted(cache.folder.glob("shard-*.npy"))]
    )
    return {
        "samples": pq.read_table(tables.folder / "samples.parquet").to_pylist(),
        "quarantine": tables.quarantine().to_pylist(),
        "duplicates": tables.duplicates().to_pylist(),
        "facts": tables.facts,
        "embeddings": np.asarray(matrix.values).tobytes(),
        "n_missing": matrix.n_missing,
        "stored embeddings": sorted(shards.tolist()),
        "packs": [
            path.read_bytes() for path in sorted((project.data / "ingest").rglob("images-*.bin"))
        ],
        "leftovers": [path.name for path in project.data.rglob("*.tmp-*")],
    }


def test_resume__after_50_kills(tmp_path, server):
    write_encoder(tmp_path / "encoder.onnx")
    write_images(tmp_path / "images")
    draw = random.Random(11)
    jobs = {
        kind: {
            "kind": kind,
            "images": str(tmp_path / "images"),
            "encoder": str(tmp_path / "encoder.onnx"),
        }
        for kind in KINDS
    }
    expected, duration = {}, {}
    for kind, job in jobs.items():
        started = time.monotonic()
        assert server.run({**job, "project": str(tmp_path / f"whole-{kind}")}) == 0
        duration[kind] = time.monotonic() - started
        expected[kind] = contents(tmp_path / f"whole-{kind}")
    assert len(expected["folder"]["samples"]) == 2 * N_PER_CLASS + 1
    assert len(expected["folder"]["quarantine"]) == 6
    assert len(expected["folder"]["duplicates"]) == 1
    assert len(expected["arrays"]["packs"]) == 1
    assert (
        len(expected["folder"]["stored embeddings"])
        == len(set(expected["folder"]["stored embeddings"]))
        == 2 * N_PER_CLASS
    )

    n_kills, n_projects = 0, 0
    while n_kills < N_KILLS:
        kind = KINDS[n_projects % len(KINDS)]
        job = {**jobs[kind], "project": str(tmp_path / f"killed-{n_projects}")}
        n_before = n_kills
        while True:
            started = time.monotonic()
            status = server.run(job, kill_after=draw.uniform(0, duration[kind]))
            if status == 0:
                break
            assert status == -signal.SIGKILL
            n_kills += 1
        if n_kills == n_before:
            # The first run may have been slowed by others, and kills that come too late hit nothing.
            duration[kind] = min(duration[kind], time.monotonic() - started)
        assert contents(Path(job["project"])) == expected[kind]
        n_projects += 1
    assert n_projects > 1
