"""SIGKILL at random instants of ingest, embed, discover, repair and generate: what is lost or doubled when the work is done again?

    python benchmarks/kills.py --kills 200

Every stage is one child process of a warm parent. A child is killed at a random instant of its stage, and the stage is started
again, until it ends by itself; then comes the next stage. A finished project is compared with one that was never killed: tables,
embeddings, predictions, findings, repairs, generated images. The exit code is 1 if a row is lost or doubled, or anything differs.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from weakspot.generate.generated_folder import GenerateRequest
from weakspot.project.project import Project
from weakspot.store.array_files import packed_hashes
from weakspot.testing.planted import plant, rare

SETTINGS = """\
[data]
source = "{manifest}"
[classifier]
name = "planted"
options = {{problem = "rare", strength = 0.02, n_samples = {rows}, seed = 2}}
[embedder]
name = "planted"
[generator]
name = "planted"
"""
REQUEST = GenerateRequest(class_name="disc", captions=("green", "in the dark"), n_each=24)
TIMES = frozenset(
    {
        "run_id",
        "started",
        "finished",
        "stages",
        "seconds",
        "command",
        "versions",
        "repaired",
        "made",
    }
)


def ingest(project):
    project.ingest()


def embed(project):
    project.embed()


def discover(project):
    project.verify(project.discover().run_id)


def repair(project):
    project.repair()


def generate(project):
    project.generate(project.folder / "generated", REQUEST)


STAGES = {function.__name__: function for function in (ingest, embed, discover, repair, generate)}


def timeless(value):
    """Return a record without what differs from run to run: times and ids made of them."""
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in TIMES}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def shard_keys(folder):
    return [
        key.tobytes()
        for path in sorted(folder.rglob("shard-*.npy"))
        for key in np.load(path)["key"]
    ]


def contents(folder):
    """Return rows by kind, which are counted, and everything else, which must be the same."""
    project = Project.open(folder)
    store = project.store
    tables = store.current_tables()
    samples = pq.read_table(tables.folder / "samples.parquet").to_pylist()
    record = project.run_record()
    rows = {
        "samples": [row["sample_id"] for row in samples],
        "embeddings": shard_keys(store.data / "embeddings"),
        "predictions": shard_keys(store.data / "predictions"),
        "slices": [found.slice_id for found in record.slices],
        "evidence": [evidence.slice_id for evidence in record.evidence],
        "repairs": [
            repr((number, arm.arm))
            for number, result in enumerate(record.repairs)
            for arm in result.arms
        ],
        "generated files": [
            path.relative_to(folder).as_posix()
            for path in sorted((folder / "generated").rglob("*.png"))
        ],
    }
    keys = packed_hashes(tables.dataset().table.column("content_hash"))
    caches = [
        store.embeddings(json.loads(path.read_text())["id"])
        for path in sorted((store.data / "embeddings").glob("*/model.json"))
    ]
    whole = {
        "samples": samples,
        "quarantine": tables.quarantine().to_pylist(),
        "duplicates": tables.duplicates().to_pylist(),
        "embeddings": [np.asarray(cache.matrix(keys).values).tobytes() for cache in caches],
        "record": timeless(json.loads(record.model_dump_json())),
        "leftovers": [path.name for path in store.data.rglob("*.tmp-*")],
    }
    whole["generated table"] = sorted(
        (folder / "generated" / "metadata.csv").read_text().splitlines()
    )
    for run_id in store.runs.run_ids():
        store.runs.load(run_id)
    return rows, whole


def child(stage, folder):
    status = 1
    try:
        STAGES[stage](Project.open(folder))
        status = 0
    except BaseException:  # noqa: BLE001 - the parent wants to see whatever it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def attempt(stage, folder, kill_after):
    """Run a stage in a child; return its exit code, negative if it was killed."""
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        child(stage, folder)
    while time.monotonic() - started < kill_after:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def compare(found, expected):
    """Return how many rows of each kind are lost and doubled, and what else differs."""
    (rows, whole), (own_rows, own_whole) = expected, found
    lost = {kind: len(set(rows[kind]) - set(own_rows[kind])) for kind in rows}
    doubled = {kind: len(own_rows[kind]) - len(set(own_rows[kind])) for kind in rows}
    added = {kind: len(set(own_rows[kind]) - set(rows[kind])) for kind in rows}
    return (
        lost,
        Counter(doubled) + Counter(added),
        [name for name in whole if whole[name] != own_whole[name]],
    )


def make_project(folder, manifest, rows):
    folder.mkdir()
    (folder / "weakspot.toml").write_text(SETTINGS.format(manifest=manifest, rows=rows))
    return folder


def reference(folder):
    """Run every stage once here, which also warms this process up, then once more in children for their times."""
    for stage in STAGES.values():
        stage(Project.open(folder))
    return contents(folder)


def timed_stages(folder):
    times = {}
    for stage in STAGES:
        started = time.monotonic()
        if attempt(stage, folder, 600.0) != 0:
            raise SystemExit(f"{stage} fails without being killed")
        times[stage] = time.monotonic() - started
    return times


def torture(parent, manifest, rows, *, n_kills, seed):
    """Kill until every stage has had its part of the kills, and return kills by stage, losses, doubles and differences."""
    draw = random.Random(seed)
    whole = make_project(parent / "whole", manifest, rows)
    expected = reference(whole)
    times = timed_stages(make_project(parent / "timed", manifest, rows))
    kills, lost, doubled, differences, n_projects = Counter(), Counter(), Counter(), [], 0
    quota = -(-n_kills // len(STAGES))
    while min(kills[stage] for stage in STAGES) < quota:
        folder = make_project(parent / f"killed-{n_projects}", manifest, rows)
        for stage in STAGES:
            while True:
                longest = 1.3 * times[stage] if kills[stage] < quota else 600.0
                status = attempt(
                    stage, folder, draw.uniform(0.0, longest) if longest < 600.0 else longest
                )
                if status == 0:
                    break
                if status != -signal.SIGKILL:
                    raise SystemExit(
                        f"{stage} failed after {kills[stage]} kills with status {status}"
                    )
                kills[stage] += 1
        one_lost, one_doubled, differing = compare(contents(folder), expected)
        lost.update(one_lost)
        doubled.update(one_doubled)
        differences += [f"killed-{n_projects}: {name}" for name in differing]
        shutil.rmtree(folder)
        n_projects += 1
    n_rows = {kind: len(values) for kind, values in expected[0].items()}
    return kills, times, n_rows, lost, doubled, differences, n_projects


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        (parent / "world").mkdir()
        manifest = plant(rare(0.02), given.rows, seed=2).write_images(parent / "world").manifest
        kills, times, n_rows, lost, doubled, differences, n_projects = torture(
            parent, manifest, given.rows, n_kills=given.kills, seed=given.seed
        )
    print(f"{sum(kills.values())} kills in {n_projects} projects of {given.rows} images\n")
    print("| stage | kills | seconds without one |\n|---|---|---|")
    for stage in STAGES:
        print(f"| {stage} | {kills[stage]} | {times[stage]:.2f} |")
    print("\n| rows | in a project | lost in all projects | doubled |\n|---|---|---|---|")
    for kind, number in n_rows.items():
        print(f"| {kind} | {number} | {lost[kind]} | {doubled[kind]} |")
    print("\nanything else that differs:", ", ".join(differences) or "nothing")
    raise SystemExit(1 if sum(lost.values()) or sum(doubled.values()) or differences else 0)


if __name__ == "__main__":
    main()
