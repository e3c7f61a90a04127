"""The whole loop in Python, cell by cell, on a small world whose truth is known.

Run it with `python examples/01_quickstart.py`; it needs no download and takes a few seconds.
"""

# %% A world of 3,000 small images in which green discs are rare in training, and a classifier trained on it
import tempfile
from pathlib import Path

import weakspot
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

folder = Path(tempfile.mkdtemp())
# This seed was chosen because the repair helps here; on others it helps less or the slice is missed (docs/results/spine.md).
world = plant(rare(0.02), 3000, seed=2)
files = world.write_images(folder / "world")
print(f"{len(world)} images, described in {files.manifest.name}")

# %% A project: where the samples are, which classifier, which embedder
# For your own images leave the embedder out, and give the classifier as text: "model.onnx", "timm:resnet18", ...
project = weakspot.Project.create(
    folder / "project",
    data=str(files.manifest),
    classifier=planted_classifier(world),
    embedder=PlantedEmbedder(),
)

# %% Step by step
summary = project.ingest()
print(f"{summary.n_samples} samples, {summary.n_quarantined} in quarantine")
run = project.discover()
print("candidates:", [found.title for found in run.slices])
run = project.verify(run.run_id)
run = project.repair(run.run_id)

# %% What was proven, in words and figures
for found, evidence in run.published():
    inside = evidence.interval_inside
    print(
        f"{found.title}: wrong on {evidence.rate_inside:.0%} of {evidence.n_inside} ({inside.low:.0%} to {inside.high:.0%})"
    )
    print(
        f"  elsewhere in the class {evidence.rate_outside:.0%}; q = {evidence.q_value:.2g}; {evidence.cause.sentence}"
    )

# %% Did the repair help, and compared with what?
for arm in run.repairs[0].arms:
    for change in arm.changes:
        if change.kind in ("slice", "overall"):
            print(
                f"{arm.arm:>15} | {change.group:<20} {change.accuracy_before:.0%} -> {change.accuracy_after:.0%}"
            )
    print(f"{'':>15} | got worse: {', '.join(arm.got_worse) or 'nothing'}")

# %% The report
html = project.report(run.run_id)[0]
print("report:", html.name, f"{html.stat().st_size / 1000:.0f} kB")
