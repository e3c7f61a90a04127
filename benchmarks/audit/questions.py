"""What is put to the product, through what the product offers to everybody, and what is true of the answers."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weakspot
from audit.worlds import WORDS, World
from weakspot.models.given_embeddings import GivenEmbeddings

ALIKE = 0.5
AS_INIT_WRITES = {"discover": {"methods": ["auto"]}, "verify": {"scheme": "cross-fit"}}
"""What `weakspot init` puts into the settings of a new project."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of one set.

    Args:
        n_confirmed: slices that were confirmed.
        n_false: confirmed slices whose true chance of failure does not exceed that of the rest of their class.
        is_found: whether a confirmed slice is the planted one (its members overlap by half or more).
        covered: for every true confirmed slice, whether the adjusted interval covers its true gap.
        gaps: for every true confirmed slice, (measured, adjusted, true) gap.
    """

    n_confirmed: int
    n_false: int
    is_found: bool = False
    covered: tuple[bool, ...] = ()
    gaps: tuple[tuple[float, float, float], ...] = ()


class Words:
    """The text side of a world: every phrase is a random direction."""

    encoder_id = "audit-words"
    has_text = True
    image_side = None

    def __init__(self, world: World) -> None:
        self._words = world.words
        self.dimension = world.embeddings.shape[1]

    def embed_texts(self, texts):
        """Return the direction of the word that a text contains, an even one for texts without any."""
        even = np.ones(self.dimension)
        found = [
            next((self._words[word] for word in self._words if word in text), even)
            for text in texts
        ]
        return np.array([one / np.linalg.norm(one) for one in found], dtype=np.float32)

    def prepare(self, image):
        """Never called: the samples have no images."""
        raise NotImplementedError

    def embed_prepared(self, prepared):
        """Never called: the samples have no images."""
        raise NotImplementedError


@contextmanager
def project_of(
    world: World, *, seed: int = 0, settings: dict[str, object] | None = None
) -> Iterator[weakspot.Project]:
    """Make a project of a world in a folder of its own, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, embeddings = world.write(folder)
        given = {
            "data": {"columns": {"key": "key"}},
            "seed": seed,
            **AS_INIT_WRITES,
            **(settings or {}),
        }
        yield weakspot.Project.create(
            folder / "project",
            data=str(table),
            embedder=GivenEmbeddings(path=str(embeddings), text=Words(world)),
            settings=weakspot.Settings.model_validate(given),
        )


def judge(world: World, project: weakspot.Project, record: weakspot.RunRecord) -> Answer:
    """Compare what a run published with the truth, on all validation samples."""
    samples = project.samples(record)
    place = {key: row for row, key in enumerate(world.keys)}
    rows = samples.dataset.rows_of(weakspot.Split.VALIDATION)
    order = np.array([place[key] for key in samples.dataset.table.column("key").to_pylist()])
    n_false, is_found, covered, gaps = 0, False, [], []
    published = record.published()
    for found, evidence in published:
        own = rows[world.labels[order[rows]] == int(found.class_name.removeprefix("class"))]
        inside = np.isin(own, found.members(samples, own))
        chance, planted = world.chance[order[own]], world.planted[order[own]]
        true_gap = (
            float(chance[inside].mean() - chance[~inside].mean())
            if 0 < inside.sum() < len(own)
            else 0.0
        )
        n_false += true_gap <= 1e-9
        union = int((inside | planted).sum())
        is_found |= bool(planted.any()) and int((inside & planted).sum()) >= ALIKE * union
        if true_gap > 1e-9 and evidence.adjusted_interval is not None:
            gaps.append((evidence.gap, evidence.adjusted_gap, true_gap))
            covered.append(
                evidence.adjusted_interval.low <= true_gap <= evidence.adjusted_interval.high
            )
    return Answer(
        n_confirmed=len(published),
        n_false=n_false,
        is_found=is_found,
        covered=tuple(covered),
        gaps=tuple(gaps),
    )


def find(world: World, **settings: object) -> Answer:
    """Run once, as in a new project unless settings say otherwise."""
    with project_of(world, settings=settings) as project:
        return judge(world, project, _found(project))


def find_with_seeds(world: World, *, n_seeds: int) -> Answer:
    """Run once for every seed, on the same project."""
    false, confirmed = 0, 0
    with project_of(world) as project:
        for seed in range(n_seeds):
            project.settings = project.settings.model_copy(update={"seed": seed})
            answer = judge(world, project, _found(project))
            false, confirmed = false + answer.n_false, confirmed + answer.n_confirmed
    return Answer(n_confirmed=confirmed, n_false=false)


def ask_one_by_one(world: World, *, n_phrases: int) -> Answer:
    """Ask one phrase after another; a phrase that is said to separate failures is a finding."""
    with project_of(world) as project:
        project.ingest()
        n_found = sum(
            _separates(project.ask("class0", [phrase]).answers[0]) for phrase in WORDS[:n_phrases]
        )
    return Answer(n_confirmed=n_found, n_false=n_found)


def look_then_prove(world: World, *, n_phrases: int) -> Answer:
    """Look at phrases one by one, then prove the one with the smallest p-value."""
    with project_of(world) as project:
        project.ingest()
        looks = [project.ask("class0", [word]).answers[0] for word in WORDS[:n_phrases]]
        best = min(looks, key=lambda look: look.p_value)
        return judge(world, project, project.prove("class0", [best.phrase]))


def _found(project: weakspot.Project) -> weakspot.RunRecord:
    project.ingest()
    return project.verify(project.discover().run_id)


def _separates(answer) -> bool:
    return answer.fit.value in ("good", "separates but does not match")
