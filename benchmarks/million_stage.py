"""One stage of a project of `million.py`, in a process of its own: what it took is printed as one line of JSON.

python benchmarks/million_stage.py FOLDER STAGE
"""

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
from million_worlds import parts

from weakspot.models.given_embeddings import GivenEmbeddings
from weakspot.project.project import Project
from weakspot.run.embedding import embed
from weakspot.run.models import classify
from weakspot.run.wiring import build_engine
from weakspot.store.array_files import packed_hashes

PUT_ROWS = 65_536
MEASURED = ("VmHWM", "RssAnon", "RssFile")


class Memory:
    """Looks at the memory of this process again and again, and remembers the most of each kind, in MB."""

    def __init__(self) -> None:
        self.most = dict.fromkeys(MEASURED, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.look()

    def look(self) -> None:
        """Read what the system says of this process now."""
        for line in Path("/proc/self/status").read_text().splitlines():
            name = line.split(":")[0]
            if name in self.most:
                self.most[name] = max(self.most[name], int(line.split()[1]) // 1024)

    def end(self) -> dict[str, int]:
        """Stop looking and return the most of each kind."""
        self._stop.set()
        self._thread.join()
        self.look()
        return self.most


def _stored_rows(project: Project, n_rows: int) -> np.ndarray:
    """Return where each row of the manifest stands in the stored data set [n]."""
    keys = np.asarray(project.store.dataset().table.column("key"))
    place = np.empty(n_rows, dtype=np.int64)
    place[np.array([int(key[-8:]) for key in keys.tolist()])] = np.arange(n_rows)
    return place


def _given(project: Project, name: str):
    """Yield content hashes and rows of a file that came with the project, in pieces."""
    source = np.load(project.folder / name, mmap_mode="r")
    hashes = packed_hashes(project.store.dataset().table.column("content_hash"))
    place = _stored_rows(project, len(source))
    for start in range(0, len(source), PUT_ROWS):
        piece = slice(start, start + PUT_ROWS)
        yield hashes[place[piece]], np.array(source[piece])


def run_embed(project: Project) -> str:
    embedder = parts(project.folder)["embedder"]
    if (project.folder / "embeddings.npy").exists():
        cache = project.store.embeddings(embedder.encoder_id)
        for keys, rows in _given(project, "embeddings.npy"):
            cache.append(keys, rows)
    made = embed(
        project.store, project.store.dataset(), embedder, engine=build_engine(project.settings)
    )
    return f"{made.n_embeddings} embeddings, {made.n_new} by the encoder"


def run_embed_given(project: Project) -> str:
    embedder = GivenEmbeddings(
        path=project.folder / "embeddings.npy", text=parts(project.folder)["embedder"]
    )
    made = embed(
        project.store, project.store.dataset(), embedder, engine=build_engine(project.settings)
    )
    return f"{made.n_embeddings} embeddings read from a file instead"


def run_classify(project: Project) -> str:
    classifier = parts(project.folder)["classifier"]
    if (project.folder / "features.npy").exists():
        cache = project.store.predictions(classifier.classifier_id)
        for keys, rows in _given(project, "features.npy"):
            cache.append(keys, classifier.head.probabilities(rows), rows)
    made = classify(
        project.store, project.store.dataset(), classifier, engine=build_engine(project.settings)
    )
    return f"{made.n_predictions} predictions, {made.n_new} by the classifier"


def run_ingest(project: Project) -> str:
    made = project.ingest()
    return f"{made.n_samples} samples, {made.n_quarantined} set aside, {made.n_duplicated} contents more than once"


def run_discover(project: Project) -> str:
    record = project.discover()
    spent = {stage.stage: stage.seconds for stage in record.stages}
    named = sum(bool(found.names) for found in record.slices)
    return f"{len(record.slices)} slices, {named} named; " + ", ".join(
        f"{name} {seconds:.1f} s" for name, seconds in spent.items()
    )


def run_verify(project: Project) -> str:
    record = project.verify()
    return f"{len(record.published())} of {len(record.evidence)} slices confirmed"


def run_repair(project: Project) -> str:
    record = project.repair()
    if not record.repairs:
        return record.notes[-1].note
    return "arms: " + ", ".join(arm.arm for arm in record.repairs[0].arms)


def run_report(project: Project) -> str:
    return f"{project.report()[0].stat().st_size / 1000:.0f} kB of HTML"


STAGES = {
    "ingest": run_ingest,
    "embed": run_embed,
    "embed given": run_embed_given,
    "classify": run_classify,
    "discover": run_discover,
    "verify": run_verify,
    "repair": run_repair,
    "report": run_report,
}


def main() -> None:
    folder, stage = Path(sys.argv[1]), sys.argv[2]
    name, _, method = stage.partition(":")
    begun, worked = time.perf_counter(), time.process_time()
    memory = Memory()
    project = Project.open(
        folder, methods=(method,) if method else (), **(parts(folder) if name != "ingest" else {})
    )
    told = STAGES[name](project)
    spent = {
        "seconds": round(time.perf_counter() - begun, 2),
        "cpu": round(time.process_time() - worked, 2),
    }
    print(json.dumps({"stage": stage, **spent, **memory.end(), "told": told}))


if __name__ == "__main__":
    main()
