"""A project of random embeddings and random failures: whatever is confirmed in it is false."""

import hashlib
from pathlib import Path

import numpy as np

from weakspot.core.arrays import generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.project.project import Project
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.store.project import ProjectStore

N_SAMPLES, N_DIMENSIONS, FAILURE_RATE = 160, 8, 0.3
QUICK = {"hypothesis": {"n_permutations": 1}}


def embed_texts(phrases):
    """Return a direction by lot for every text, the same for the same text."""
    seeds = [int(hashlib.sha256(one.encode()).hexdigest()[:8], 16) for one in phrases]
    return np.stack([np.random.default_rng(seed).standard_normal(N_DIMENSIONS) for seed in seeds])


def null_samples(number: int) -> SampleSet:
    """Return the samples of one null set."""
    draws = generator(number, "null project")
    embeddings = draws.standard_normal((N_SAMPLES, N_DIMENSIONS)).astype(np.float32)
    failed = draws.random(N_SAMPLES) < FAILURE_RATE
    labels = np.arange(N_SAMPLES) % 8 == 0
    names = [f"{number}-{place}" for place in range(N_SAMPLES)]
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        splits=[Split.VALIDATION] * N_SAMPLES,
        labels=labels.astype(np.int64),
        content_hashes=[hashlib.sha256(one.encode()).hexdigest() for one in names],
        sample_ids=names,
        predictions=np.where(failed, 1 - labels, labels).astype(np.int64),
    )
    space = EmbeddingSpace(encoder_id="lot", embeddings=embeddings, has_text=True)
    return SampleSet(dataset=dataset, rows=np.arange(N_SAMPLES), spaces={"clip": space})


class NullProject(Project):
    """A project whose samples are in memory.

    Args:
        folder: where runs and the ledger are kept.
        samples: all samples.
        settings: other settings than the quick ones.
    """

    def __init__(self, folder: Path, samples: SampleSet, settings: Settings | None = None) -> None:
        chosen = settings or Settings(
            discover={"methods": ("hypothesis",), "parameters": QUICK},
            verify={"splits": ("validation",), "scheme": "halves"},
        )
        super().__init__(folder, chosen)
        ProjectStore.create(folder)
        self._ready = Prepared(
            samples=samples,
            assistants=Assistants(embed_texts=embed_texts),
            embedder=None,
            classifier=None,
            summary=EmbedResult(),
            inputs={},
        )

    def prepared(self, record=None) -> Prepared:
        del record
        return self._ready

    def _with_settings(self, settings: Settings) -> "NullProject":
        return NullProject(self.folder, self._ready.samples, settings)
