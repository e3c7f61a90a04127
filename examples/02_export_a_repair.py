"""A repair that you take home: your classifier with a new last layer, and weights for a training loop of your own.

`weakspot repair --write-to FOLDER` does all of this in a project; here are the steps behind it.
Run it with `python examples/02_export_a_repair.py`; it needs no download and takes a few seconds.
"""

# %% A world in which green discs are rare in training, and your own classifier: a regression on features, in a file
import tempfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.linear_model import LogisticRegression

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Split
from weakspot.core.heads import RepairMaterial
from weakspot.core.repairs import RepairPlan
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.models.sklearn.classifier import SklearnClassifier
from weakspot.models.training_weights import read_training_weights
from weakspot.repair.bench import RepairBench
from weakspot.repair.export import export_repair
from weakspot.repair.strategies.reweighting import SliceBalancedRepairer
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.testing.planted import plant, rare

folder = Path(tempfile.mkdtemp())
world = plant(rare(0.02), 6000, seed=2)
dataset, training = world.dataset, world.samples(Split.TRAIN)
names = np.array(dataset.class_names)
model = LogisticRegression(max_iter=500).fit(
    world.features(training.rows), names[dataset.labels[training.rows]]
)
skops.io.dump(model, folder / "shapes.skops")
classifier = SklearnClassifier(path=folder / "shapes.skops", class_names=list(names))

# %% A slice, as a run would have confirmed it, and what to retrain the last layer on
green = FailureSlice(
    class_name="disc",
    rule=ColumnRule(column="colour", values=("green",)),
    method="hypothesis",
    found_on=DataUse.of(world.samples(Split.VALIDATION)),
)
selection = SliceBalancedRepairer().select([green], RepairMaterial(training=training))
print(selection.note)

# %% Train: everything below the last layer stays as it is
features, targets = world.features(selection.rows), dataset.label_matrix[selection.rows]
trainer = HeadTrainer().matched(features, targets, classifier.head)
head = trainer.train(
    features, targets, selection.weights, task=dataset.task, start=classifier.head
).head

# %% Export it: into your own format, read back and checked; your own files stay as they are
prepared = Prepared(
    samples=training,
    assistants=NO_ASSISTANTS,
    embedder=None,
    classifier=classifier,
    summary=EmbedResult(),
    inputs={},
)
files, notes = export_repair(
    folder / "repaired",
    RepairBench.of(prepared, Settings(), [green]),
    head=head,
    selection=selection,
    plan=RepairPlan(slice_ids=(green.slice_id,), repairer="slice-balanced"),
)
for path in files:
    print(f"  {path.relative_to(folder).as_posix()}")

# %% Your classifier before and after, on test samples
test = world.samples(Split.TEST)
repaired = SklearnClassifier(path=files[0], class_names=list(names))
discs = green.class_rows(test)
for title, rows in (("green discs", green.members(test, discs)), ("all", test.rows)):
    right = [
        np.mean(
            one.classify(world.features(rows)).probabilities.argmax(axis=1) == dataset.labels[rows]
        )
        for one in (classifier, repaired)
    ]
    print(f"{title}: {right[0]:.0%} -> {right[1]:.0%} of {len(rows)}")

# %% For training the whole network yourself: weakspot.models.training_weights.WeightedSamples draws by this table
table = read_training_weights(folder / "repaired" / "training_weights.csv")
print(
    f"exported: {len(table.sample_ids)} training samples, weights {table.weights.min():.2f} to {table.weights.max():.2f}"
)
