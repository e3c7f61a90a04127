"""What a run of 100,000 rows costs beside an earlier version: processor seconds and peak memory, both in turn in one go.

    python benchmarks/audit/cost.py --before ../earlier/.venv/bin/python [--rows 100000] [--repeats 2] [--only "alike, 64 numbers"]

Each measurement is a process of its own that makes a project of a table with columns, predictions and given embeddings, ingests it
and runs the loop up to the report. "Alike" fixes the earlier defaults for both (`directions`, halves); "defaults" is what
`weakspot init` of each version writes. The least of the repeats counts: other work on the machine only ever adds.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from audit.worlds import WorldPlan, make_world

ALIKE = {"discover": {"methods": ["directions"]}, "verify": {"scheme": "halves"}}
TRAINING_SHARE = 0.2
SLICE = 200
CASES: dict[str, dict[str, object]] = {
    "alike, 64 numbers": {"dimension": 64, "is_alike": True},
    "alike, 512 numbers": {"dimension": 512, "is_alike": True},
    "alike, 2 classes, 64 numbers": {"dimension": 64, "is_alike": True, "n_classes": 2},
    "alike, a column of groups, 64 numbers": {"dimension": 64, "is_alike": True, "images": 3},
    "defaults, 64 numbers": {"dimension": 64},
    "defaults, 512 numbers": {"dimension": 512},
    "defaults, a column of groups, 64 numbers": {"dimension": 64, "images": 3},
}


class Words:
    """A text side without a model: every phrase is a direction that its letters decide."""

    encoder_id = "cost-words"
    has_text = True
    image_side = None

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def embed_texts(self, texts):
        """Return one unit vector a phrase."""
        rows = [
            np.random.default_rng(list(text.encode())).normal(size=self.dimension) for text in texts
        ]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)


def write_case(folder: Path, case: dict[str, object], n_rows: int) -> None:
    """Write `table.csv`, `embeddings.npy` and the names of its rows."""
    n_classes = int(case.get("n_classes", 10))
    images = int(case.get("images", 1))
    n_training = round(TRAINING_SHARE * n_rows / n_classes)
    plan = WorldPlan(
        n_classes=n_classes,
        n_evaluation=n_rows // n_classes - n_training,
        n_training=n_training,
        slice_size=SLICE,
        gap=0.3,
        images_per_object=images,
        tells_objects=images > 1,
    )
    world = make_world(plan, 1, dimension=int(case["dimension"]))
    world.write(folder)
    (folder / "embeddings.npz").unlink()
    np.save(folder / "embeddings.npy", world.embeddings)
    (folder / "ids.txt").write_text("\n".join(world.keys), encoding="utf-8")


def work(folder: Path, project: Path, case: dict[str, object]) -> None:
    """Ingest and run with whatever version is installed here, and print what it took as one line of JSON."""
    import weakspot

    try:
        from weakspot.models.given_embeddings import GivenEmbeddings as Given
    except ImportError:
        from weakspot.backends.given_vectors import GivenVectors as Given
    has_auto = Path(str(weakspot.__file__)).with_name("discover").joinpath("clusters").exists()
    as_init = {"discover": {"methods": ["auto"]}, "verify": {"scheme": "cross-fit"}}
    chosen = ALIKE if case.get("is_alike") else as_init if has_auto else {}
    made = weakspot.Project.create(
        project,
        data=str(folder / "table.csv"),
        embedder=Given(
            path=str(folder / "embeddings.npy"),
            ids=str(folder / "ids.txt"),
            text=Words(int(case["dimension"])),
        ),
        settings=weakspot.Settings.model_validate({"data": {"columns": {"key": "key"}}, **chosen}),
    )
    made.ingest()
    ingested = _processor_seconds()
    record = made.run()
    told = {
        "ingest": round(ingested, 1),
        "run": round(_processor_seconds() - ingested, 1),
        "memory": _peak_memory(),
        "stages": {stage.stage: round(stage.seconds, 1) for stage in record.stages},
        "methods": {one.method: round(one.seconds, 1) for one in record.methods},
        "confirmed": len(record.published()),
        "slices": len(record.slices),
    }
    sys.stdout.write(json.dumps(told) + "\n")


def _processor_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def _peak_memory() -> int:
    """Return MB; `ru_maxrss` would begin with what the starting process had."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) >> 10


def measure(python: str, folder: Path, case: dict[str, object]) -> dict[str, object]:
    """Run one case with an interpreter and return what it took."""
    with tempfile.TemporaryDirectory() as name:
        command = [python, __file__, "--work", str(folder), name + "/project", json.dumps(case)]
        # One thread each: with several, waiting threads would count as work.
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **alone}
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{python}: {json.dumps(told)}\n")
    return told


def main() -> None:
    """Measure every case with both versions in turn, and print the table."""
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="interpreter of the earlier version")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help=f"among: {'; '.join(CASES)}")
    given = parser.parse_args()
    lines = [
        "| case | processor seconds before | now | ratio | peak memory before (MB) | now | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, case in CASES.items():
        if given.only and name not in given.only:
            continue
        sys.stderr.write(f"{name}, load of the machine {os.getloadavg()[0]:.1f}\n")
        with tempfile.TemporaryDirectory() as folder:
            write_case(Path(folder), case, given.rows)
            both = [
                [measure(python, Path(folder), case) for python in (given.before, sys.executable)]
                for _ in range(given.repeats)
            ]
        seconds = [min(one[side]["ingest"] + one[side]["run"] for one in both) for side in (0, 1)]
        memory = [min(one[side]["memory"] for one in both) for side in (0, 1)]
        lines.append(
            f"| {name} | {seconds[0]:.1f} | {seconds[1]:.1f} | {seconds[1] / seconds[0]:.2f} "
            f"| {memory[0]:,} | {memory[1]:,} | {memory[1] / memory[0]:.2f} |"
        )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
