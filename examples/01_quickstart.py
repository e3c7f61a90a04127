"""The whole loop in Python, cell by cell, on a small world whose truth is known.

Run it with `python examples/01_quickstart.py`; it needs no download and takes less than a minute.
"""

# %% A world of 3,000 small images in which green discs are rare in training, and a classifier trained on it
import tempfile
from pathlib import Path

import weakspot
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import plant, rare

folder = Path(tempfile.mkdtemp())
# Seed 0 as everywhere, good or bad: how often slices are found and repairs help over many seeds is in docs/results/repair.md.
world = plant(rare(0.02), 3000, seed=0)
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

# %% Step by step; `project.run()` does all of this and writes the report
print(f"{project.ingest().n_samples} samples")
run = project.discover()
print("candidates:", [found.title for found in run.slices])
run = project.verify(run.run_id)
run = project.repair(run.run_id)

# %% What was proven, in words; it says so, too, if nothing was
findings = weakspot.Findings(project, run)
print(findings)

# %% The same in figures
for one in findings:
    evidence, inside = one.evidence, one.evidence.interval_inside
    print(
        f"{one.title}: wrong on {evidence.rate_inside:.0%} of {evidence.n_inside} ({inside.low:.0%} to {inside.high:.0%})"
    )
    print(f"  elsewhere in the class {evidence.rate_outside:.0%}; q = {evidence.q_value:.2g}")

# %% Did the repair help, and compared with what?
for repair in run.repairs[:1]:
    for arm in repair.arms:
        for change in arm.changes:
            if change.kind in ("slice", "overall"):
                print(
                    f"{arm.arm:>15} | {change.group:<20} {change.accuracy_before:.0%} -> {change.accuracy_after:.0%}"
                )
        print(f"{'':>15} | got worse: {', '.join(arm.got_worse) or 'nothing'}")

# %% The report
html = findings.report()
print("report:", html.name, f"{html.stat().st_size / 1000:.0f} kB")
