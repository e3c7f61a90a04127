"""Times the demo as on a fresh machine, downloads excluded: two versions of weakspot in turns, so that both find the machine alike.

In every turn each has a cache of its own with nothing but the downloaded files in it: no embeddings, no converted weights, no compiled
loops. Processor seconds count all processes that a version starts. The other version is a checkout, for example of an earlier commit:

    git worktree add ../before COMMIT
    python benchmarks/first_minute.py --work WORK --before ../before --turns 3

`--old-way` takes this version instead, with the image tower in float32 and loops compiled where they are needed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from weakspot.core.machine import user_cache_folder

HERE = Path(__file__).parents[1]
# The demo of this version as it was: no other process compiles, and the tower is the exact one.
_OLD_WAY = """
import weakspot.core.compiled as compiled
import weakspot.models.embedded.image_tower as tower
compiled.compile_beside = lambda *_, **__: None
tower.has_fast_int8 = lambda: False
import weakspot.project.warm_up as warm_up
warm_up.begin_compiling = lambda *_, **__: None
from weakspot.cli.main import main
main()
"""
_RUN = """
import json, resource, subprocess, sys, time
begun = time.time()
done = subprocess.run([sys.executable, *json.loads(sys.argv[1])], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"wall": time.time() - begun, "processor": used.ru_utime + used.ru_stime, "code": done.returncode,
                  "text": done.stdout, "stages": done.stderr}))
"""
_SOURCE_FILES = ("manifest.csv", "fruit.onnx", "weakspot.toml")


def run(tree: Path | None, cache: Path, arguments: list[str]) -> dict:
    environment = {
        **os.environ,
        "PYTHONPATH": str((tree or HERE) / "src"),
        "WEAKSPOT_CACHE": str(cache),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
    }
    environment.pop("WEAKSPOT_KERNELS", None)
    program = ["-c", _OLD_WAY] if tree is None else ["-m", "weakspot"]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps([*program, *arguments])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    if answer["code"]:
        raise SystemExit(f"{arguments} failed:\n{answer['text']}\n{answer['stages']}")
    return answer


def fresh_cache(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "registry").symlink_to(user_cache_folder() / "registry")
    return folder


def measure_demo(name: str, tree: Path | None, work: Path) -> dict:
    found = run(
        tree,
        fresh_cache(work / f"cache-{name}"),
        ["demo", "--folder", str(work / f"demo-{name}")],
    )
    (work / f"{name}.json").write_text(json.dumps(found, indent=1))
    return found


def measure_discover(tree: Path, project: Path, work: Path) -> dict[str, dict]:
    """In a fresh cache, and a copy of the demo with nothing embedded, embed and discover twice."""
    again, found = work / "again", {}
    again.mkdir()
    for one in _SOURCE_FILES:
        shutil.copy(project / one, again / one)
    (again / "photos").symlink_to(project / "photos")
    cache = fresh_cache(work / "cache-again")
    for step, command in (
        ("ingest", "ingest"),
        ("embed", "embed"),
        ("first discover", "discover"),
        ("second discover", "discover"),
    ):
        found[step] = run(tree, cache, [command, "-p", str(again)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--old-way", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    if (given.before is None) is not given.old_way:
        parser.error("give either --before CHECKOUT or --old-way")
    before = None if given.old_way else given.before.resolve()
    work = given.work / time.strftime("%H%M%S")
    turns: list[dict[str, dict]] = []
    for turn in range(given.turns):
        folder = work / str(turn)
        found = {
            name: measure_demo(name, tree, folder)
            for name, tree in (("before", before), ("now", HERE))
        }
        show("demo", found)
        found["discover"] = measure_discover(HERE, folder / "demo-now", folder)
        first, second = (found["discover"][f"{one} discover"] for one in ("first", "second"))
        show("discover", {"second": second, "first": first})
        turns.append(found)
    for unit in ("wall", "processor"):
        ratio = statistics.median(turn["now"][unit] / turn["before"][unit] for turn in turns)
        print(f"demo, median of {given.turns} turns, {unit}: {ratio:.2f} of before")


def show(what: str, pair: dict[str, dict]) -> None:
    (old, base), (new, found) = pair.items()
    for unit in ("wall", "processor"):
        ratio = found[unit] / base[unit]
        print(
            f"{what}, {unit} seconds: {old} {base[unit]:.1f}, {new} {found[unit]:.1f}, ratio {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
