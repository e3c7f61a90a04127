"""Compiles the loops of a run beforehand, in another process, while this one fetches and embeds.

That process runs a small planted project, so that every loop is compiled for just the kinds of arrays that a run hands over.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from weakspot.core.compiled import compile_beside, note_compiled, note_usual_compiled
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.data.engine.chunks import give_way
from weakspot.run.settings import Settings

N_SAMPLES = 400


def begin_compiling(progress: StageProgress = no_stage_progress) -> None:
    """Start that process, unless this user has everything compiled.

    Args:
        progress: told of a stage if somebody has to wait for it.
    """
    compile_beside([sys.executable, "-m", "weakspot.project.warm_up"], tell=progress)


def compile_loops(*, then: Callable[[], None] = give_way) -> None:
    """Run a planted project whose class has columns, captions and a rare kind: first as most projects are set, then with all methods.

    Args:
        then: called in between; by default what most runs do not wait for takes only time that nobody else wants.
    """
    from weakspot.discover.directions import DirectionsDiscoverer
    from weakspot.discover.directions_kernels import chance_shares
    from weakspot.project.project import Project
    from weakspot.testing.examples import CRITERION, discovery_samples
    from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
    from weakspot.testing.planted import plant, rare

    # The planted failures are too few for loops that judge clear ones and divide them into kinds.
    DirectionsDiscoverer(n_permutations=1).discover(discovery_samples(), CRITERION, seed=0)
    chance_shares(np.eye(2, dtype=np.float32), np.zeros((1, 2), dtype=np.int64), 2)
    world = plant(rare(0.02), N_SAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        manifest = world.write_images(Path(folder) / "images").manifest
        for settings, note in ((Settings(), note_usual_compiled), (None, note_compiled)):
            Project.create(
                Path(folder) / "project",
                data=str(manifest),
                classifier=planted_classifier(world),
                embedder=PlantedEmbedder(),
                settings=settings,
                overwrite=True,
            ).run()
            note()
            if note is note_usual_compiled:
                then()


if __name__ == "__main__":
    compile_loops()
