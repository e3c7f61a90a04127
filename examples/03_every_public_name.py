"""Every public name of weakspot once, on a small table and a small planted world; docs/reference/python.md shows these cells.

Run it with `python examples/03_every_public_name.py`; it needs no download and takes less than a minute.
Its worlds show how things are called; their sizes were chosen so that something is found and repaired, and measure nothing.
"""

# %%
import tempfile
from pathlib import Path

import numpy as np

import weakspot
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import plant, rare

# %% find
draws = np.random.default_rng(0)
colour = draws.choice(["red", "green", "blue"], 600)
label = draws.choice(["apple", "pear"], 600)
is_wrong = draws.random(600) < np.where((label == "apple") & (colour == "green"), 0.6, 0.08)
prediction = np.where(is_wrong, np.where(label == "apple", "pear", "apple"), label)
findings = weakspot.find(labels=label, predictions=prediction, metadata={"colour": colour})
print(findings)

# %% Findings
assert isinstance(findings, weakspot.Findings)
print(len(findings), findings.rows[0]["title"], findings.report().name)

# %% FoundSlice
first: weakspot.FoundSlice = findings[0]
print(first.title, first.members[:5], first.sentences.sentence)

# %% Evidence
evidence: weakspot.Evidence = first.evidence
print(f"{evidence.rate_inside:.0%} of {evidence.n_inside} fail, q = {evidence.q_value:.1g}")

# %% Verdict
print(evidence.verdict is weakspot.Verdict.CONFIRMED, [one.value for one in weakspot.Verdict])

# %% open_source
folder = Path(tempfile.mkdtemp())
world = plant(rare(0.01), 1800, seed=0)
files = world.write_images(folder / "world")
source = weakspot.open_source(str(files.manifest))
print(source.kind)

# %% ArraySource
images = [np.asarray(world.image(row)) for row in range(4)]
arrays = weakspot.ArraySource(images=images, labels=["disc", "star", "disc", "star"])
print(arrays.kind, len(arrays.images))

# %% Settings
settings = weakspot.Settings.model_validate(
    {
        "discover": {"methods": ["clusters", "attributes"]},
        "generator": {"name": "planted"},
        "search": {"budget": 200},
    }
)
print(settings.discover.methods, settings.seed)

# %% Project
project = weakspot.Project.create(
    folder / "project",
    data=str(files.manifest),
    classifier=planted_classifier(world),
    embedder=PlantedEmbedder(),
    settings=settings,
)

# %% IngestResult
ingested: weakspot.IngestResult = project.ingest()
print(ingested.n_samples, ingested.per_split)

# %% EmbedResult
embedded: weakspot.EmbedResult = project.embed()
print(embedded.n_embeddings, embedded.n_predictions)

# %% RunRecord
run: weakspot.RunRecord = project.run()
print(run)
print("report.html" in [path.name for path in project.folder.iterdir()])

# %% FailureSlice
found: weakspot.FailureSlice = run.slices[0]
print(found.title, found.method, found.rule.kind)

# %% SampleSet
samples: weakspot.SampleSet = project.samples(run)
print(len(samples), sorted(samples.spaces))

# %% Dataset
dataset: weakspot.Dataset = samples.dataset
print(dataset.class_names, dataset.metadata_names)

# %% Split
n_test = int((dataset.splits == list(weakspot.Split).index(weakspot.Split.TEST)).sum())
print(n_test, [split.value for split in weakspot.Split])

# %% Task
print(dataset.task is weakspot.Task.SINGLE_LABEL)

# %% FailureCriterion
criterion = weakspot.FailureCriterion(kind="low-confidence", threshold=0.8)
print(criterion.kind)

# %% RepairRequest
request = weakspot.RepairRequest(slice_ids=(run.findings()[0].slice_id,))
run = project.repair(run.run_id, request)

# %% RepairResult
repaired: weakspot.RepairResult = run.repairs[0]
print([arm.arm for arm in repaired.arms])

# %% RepairPlan
plan: weakspot.RepairPlan = repaired.plan
print(plan.repairer, plan.slice_ids == request.slice_ids)

# %% Head
head = weakspot.Head(weights=np.eye(2, dtype=np.float32), bias=np.zeros(2, dtype=np.float32))
print(head.probabilities(np.array([[3.0, 0.0]], dtype=np.float32)).round(2))

# %% AskResult
asked: weakspot.AskResult = project.ask("disc", ["green discs"])
print(asked.answers[0].fit, asked.n_looks)

# %% NearestRequest
wanted = weakspot.NearestRequest(phrase="a green disc", class_name="disc", n_wanted=3)

# %% NearestResult
near: weakspot.NearestResult = project.nearest(wanted)
print([f"{image.score:.2f} {image.label}" for image in near.images])

# %% CounterfactualRequest
change = weakspot.CounterfactualRequest(class_name="disc", captions=("green",), n_each=20)

# %% CounterfactualResult
changed: weakspot.CounterfactualResult = project.counterfactual(change)
print(len(changed.rows), "rows of images")

# %% SearchRequest
aim = weakspot.SearchRequest(class_name="disc", captions=("green",))

# %% SearchResult
searched: weakspot.SearchResult = project.search(aim)
print(len(searched.record.result.trials), "captions tried")

# %% GenerateRequest
drawing = weakspot.GenerateRequest(class_name="disc", captions=("a green disc",), n_each=4)

# %% GenerateResult
drawn: weakspot.GenerateResult = project.generate(folder / "generated", drawing)
print(drawn.kept)

# %% WeakspotError
try:
    weakspot.find(labels=["apple", "pear"], predictions=["apple"])
except weakspot.WeakspotError as error:
    print(error.what, error.fix)

# %% __version__
print("weakspot", weakspot.__version__)
