"""The slower layout of the map, as work of its own."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import JsonValue

from weakspot.backends.optional_library import require_library
from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.run import StageProgress
from weakspot.core.seeding import child_seed, generator
from weakspot.project.project import Project
from weakspot.web.services.map.layouts import (
    PCA,
    UMAP,
    Layout,
    LayoutFiles,
    frame,
    reduced_embeddings,
)
from weakspot.web.services.map.places import map_layout, map_plan
from weakspot.web.services.work import Arguments
from weakspot.web.services.workspace import Workspace

MOST_FITTED = 50_000
DIMENSION = 50
N_NEIGHBOURS = 15
FEWEST_POINTS = 8
TRANSFORMED_AT_ONCE = 10_000
STARTING_WIDTH = 10.0
SMALL = 10_000
STAGE = "lay out samples"


def lay_out(
    project: Project, arguments: Arguments, progress: StageProgress
) -> dict[str, JsonValue]:
    """Make the UMAP layout of the map and keep it; if it is there already, nothing is done.

    Args:
        project: the project.
        arguments: `layout`, which can only be `umap`, may be left out.
        progress: called with how many samples have their place.

    Raises:
        ConfigError: if another layout is asked for.
        MissingExtraError: if umap-learn is not installed.
        NotEnoughDataError: if no sample has an embedding.
    """
    unknown = {
        name: value for name, value in arguments.items() if (name, value) != ("layout", UMAP)
    }
    if unknown:
        raise ConfigError("The work `map` makes the layout `umap` and no other.", given=unknown)
    workspace = Workspace(project)
    plan, start, files = map_plan(workspace), map_layout(workspace, PCA), LayoutFiles(project.store)
    if plan.space is None or start is None or not len(start.rows):
        raise NotEnoughDataError(
            "No sample has an embedding, so there is nothing to lay out.", fix="weakspot embed"
        )
    n_points, was_there = len(start.rows), files.load(UMAP, plan.key) is not None
    if not was_there:
        progress(STAGE, 0, n_points)
        embeddings = reduced_embeddings(
            workspace.samples, plan.space, start.rows, dimension=DIMENSION, seed=project.settings.seed
        )  # fmt: skip
        places = umap_places(
            embeddings,
            start.places,
            seed=project.settings.seed,
            report=lambda done: progress(STAGE, done, n_points),
        )
        files.save(UMAP, plan.key, Layout(rows=start.rows, places=frame(places)))
    progress(STAGE, n_points, n_points)
    return {"layout": UMAP, "n_points": n_points, "was_there": was_there}


def umap_places(
    embeddings: FloatArray, start: FloatArray, *, seed: int, report: Callable[[int], None]
) -> FloatArray:
    """Return places [n, 2] at which samples stand beside those that are similar; the same every time.

    Args:
        embeddings: [n, d].
        start: where samples stand at first [n, 2], so that large distances mean something too.
        seed: of the project.
        report: called with how many samples have their place.
    """
    if len(embeddings) < FEWEST_POINTS:
        return start
    umap = _quiet_umap()
    fitted = np.arange(len(embeddings))
    if len(embeddings) > MOST_FITTED:
        fitted = np.sort(
            generator(seed, "map", UMAP).choice(len(embeddings), MOST_FITTED, replace=False)
        )
    jitter = generator(seed, "map", "start").normal(scale=1e-3, size=(len(fitted), 2))
    model = umap.UMAP(
        n_neighbors=min(N_NEIGHBOURS, len(fitted) - 1),
        min_dist=0.1,
        metric="cosine",
        init=np.asarray(STARTING_WIDTH * start[fitted] + jitter, dtype=np.float32),
        n_epochs=300 if len(fitted) <= SMALL else 200,
        random_state=child_seed(seed, "map", UMAP) % (1 << 31),
        n_jobs=1,
        low_memory=True,
    )
    places = np.empty((len(embeddings), 2), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places[fitted] = model.fit_transform(embeddings[fitted])
        report(len(fitted))
        others = np.setdiff1d(np.arange(len(embeddings)), fitted)
        for first in range(0, len(others), TRANSFORMED_AT_ONCE):
            chosen = others[first : first + TRANSFORMED_AT_ONCE]
            places[chosen] = model.transform(embeddings[chosen])
            report(len(fitted) + first + len(chosen))
    return np.where(np.isfinite(places), places, 0.0).astype(np.float32)


def _quiet_umap() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require_library("umap", extra="web", purpose="UMAP layouts")
