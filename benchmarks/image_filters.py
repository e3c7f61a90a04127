"""How long choosing images takes at a million samples: whole requests through the server, every one of them new.

    python benchmarks/image_filters.py [--rows 1000000]

Planted samples without files are held in memory: what is measured is filtering, ordering, and describing the first 60 images. Every
filter is asked once unmeasured with other values, as a server is that somebody has looked at before.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from weakspot.core.assistants import Assistants
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.project.project import Project
from weakspot.run.preparation import CLIP, EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare
from weakspot.web.application import create_app
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore

TOKEN = "benchmark-of-image-filters"
TIMES = 9
ASKED = {
    "class": lambda turn: {"label": ("disc", "star", "square")[turn % 3], "sure_from": turn / 1000},
    "right or wrong, by loss": lambda turn: {
        "result": "wrong",
        "order": "loss",
        "sure_to": 1 - turn / 1000,
    },
    "all, by confidence": lambda turn: {"order": "unsure", "sure_from": turn / 1000},
    "class, prediction, value of an attribute": lambda turn: {
        "label": "disc",
        "answer": "star",
        "attributes": ["colour"],
        "values": ["green"],
        "sure_from": turn / 1000,
    },
    "mark": lambda turn: {"mark": "tag", "sure_from": turn / 1000},
    "part of the file name": lambda turn: {"name": f"{turn}77"},
    "similarity to words, one class": lambda turn: {
        "label": "disc",
        "words": ("green", "red", "large", "small", "blue")[turn % 5],
        "sure_from": turn / 1000,
    },
    "similarity to words, all": lambda turn: {
        "words": ("green", "red", "large", "small", "blue")[turn % 5],
        "sure_from": turn / 1000,
    },
}


class ProjectInMemory(Project):
    """A project whose samples are in memory."""

    def __init__(self, folder: Path, samples: SampleSet) -> None:
        super().__init__(folder, Settings())
        data = ProjectStore.create(folder).data
        # Named as ingested tables are, so that nothing has to be recognised by a hash over all ids.
        (data / "tables" / "planted").mkdir(parents=True)
        (data / "tables" / "planted" / "dataset.json").write_text('{"has_images": false}')
        (data / "current.json").write_text('{"tables": "planted"}')
        self._ready = Prepared(
            samples=samples,
            assistants=Assistants(embed_texts=PlantedEmbedder().embed_texts),
            embedder=None,
            classifier=None,
            summary=EmbedResult(),
            inputs={},
        )

    def prepared(self, record: object = None) -> Prepared:
        """Return the samples."""
        del record
        return self._ready


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    world = plant(rare(0.01), n_rows, seed=3)
    spaces = {
        CLIP: EmbeddingSpace(
            encoder_id="planted", embeddings=world.embeddings(np.arange(n_rows)), has_text=True
        )
    }
    samples = SampleSet(
        dataset=world.dataset, rows=np.arange(n_rows), spaces=spaces, name="all samples"
    )
    with tempfile.TemporaryDirectory() as folder:
        state = StateStore.beside(Path(folder))
        workspace = Workspace(ProjectInMemory(Path(folder), samples))
        parts = ServerParts(workspace=workspace, state=state, jobs=None, owner_token=TOKEN)  # type: ignore[arg-type]
        client = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        begun = time.perf_counter()
        first = client.get("/api/images").json()
        print(
            f"first page ever: {time.perf_counter() - begun:.2f} s; {first['n_visible']:,} visible of {n_rows:,}"
        )
        meant = {"label": "disc", "answer": "star"}
        marked = client.post("/api/marks", json={"query": meant, "kind": "tag", "text": "look"})
        assert marked.status_code == 200, marked.text
        for name, query in ASKED.items():
            _measure(client, name, query)
        state.close()


def _measure(client: TestClient, name: str, query: object) -> None:
    assert callable(query)
    spent, worked, total = [], [], 0
    for turn in range(TIMES + 1):
        begun, busy = time.perf_counter(), time.process_time()
        answer = client.get("/api/images", params=query(turn))
        spent.append(1000 * (time.perf_counter() - begun))
        worked.append(1000 * (time.process_time() - busy))
        assert answer.status_code == 200, answer.text
        total = answer.json()["total"]
    warm = sorted(spent[1:])
    print(
        f"{name:45} {statistics.median(warm):7.1f} ms median, {warm[-1]:7.1f} ms most, "
        f"{statistics.median(worked[1:]):7.1f} ms of one core; {total:,} found",
        flush=True,
    )


if __name__ == "__main__":
    main()
