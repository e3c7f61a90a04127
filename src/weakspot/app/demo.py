"""The demo: a fruit classifier that hardly ever saw green apples, and what weakspot makes of it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.app.config import DataSettings, PartSettings, Settings
from weakspot.app.demo_data import HIDDEN_CLASS, HIDDEN_KIND, choose_samples, hidden_kinds, write_samples
from weakspot.app.demo_network import network, untrained_head
from weakspot.app.example_data import groceries
from weakspot.app.project import Project
from weakspot.app.wiring import build_classifier
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.heads import Head
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.repair.head_training import HeadTrainer

MODEL_FILE = "fruit.onnx"
MARKER_FILE = "hidden_kinds.csv"
CLASS_NAMES = ("apple", "pear")
PENALTY = 0.3


@dataclass(frozen=True, kw_only=True)
class DemoOutcome:
    """What the demo found.

    Args:
        record: the run.
        report: the HTML report.
        hidden_share: share of the hidden kind among the members of the top finding for its class, None without a finding.
        n_members: members of that finding in validation and test.
        truth_sentence: that in words.
    """

    record: RunRecord
    report: Path
    hidden_share: float | None
    n_members: int
    truth_sentence: str


def run_demo(folder: Path, *, progress: StageProgress = no_stage_progress, seed: int = 0) -> DemoOutcome:
    """Fetch photographs, train a classifier on too few green apples, run the loop, and compare with the hidden truth."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER_FILE).exists():
        raise ConfigError("The demo's folder holds something else.", where=str(folder), fix="Choose an empty one with --folder.")
    photographs = groceries(progress=lambda done, total: progress("download photos", done, total))
    samples = choose_samples(photographs, seed)
    write_samples(samples, folder)
    training = [(item.label, data) for item, data in samples if item.split is Split.TRAIN]
    model = folder / MODEL_FILE
    model.write_bytes(network(_trained_head(model, training)))
    Project.create(folder, settings=_settings(seed), overwrite=True)
    project = Project.open(folder, progress=progress)
    record = project.run()
    report = project.report(record.run_id)[0]
    return _outcome(project, record, report)


def is_finished_demo(folder: Path, *, seed: int = 0) -> bool:
    """Return whether a folder holds the demo with this seed, and a run of it that was measured."""
    if not (folder / MARKER_FILE).exists() or not (folder / MODEL_FILE).exists():
        return False
    try:
        project = Project.open(folder)
        return project.settings.seed == seed and bool(project.run_record().evidence)
    except WeakspotError:
        return False


def _settings(seed: int) -> Settings:
    return Settings(
        seed=seed,
        data=DataSettings(source="manifest.csv"),
        classifier=PartSettings(
            name="onnx",
            options={"path": MODEL_FILE, "class_names": list(CLASS_NAMES), "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]},
        ),
    )


def _trained_head(model: Path, training: list[tuple[str, bytes]]) -> Head:
    """Train the last layer on the features that the untrained network gives."""
    from weakspot.media.pictures import decode_picture

    model.write_bytes(network(untrained_head(len(CLASS_NAMES))))
    classifier = build_classifier(_settings(0).classifier, model.parent)
    if classifier is None:
        raise ConfigError("The demo has no classifier.")
    pictures = [decode_picture(data, picture_side=classifier.picture_side).picture for _, data in training]
    features = classifier.classify([classifier.prepare(picture) for picture in pictures]).features
    if features is None:
        raise ConfigError("The demo's classifier gives no features.", where=str(model))
    targets = np.array([[label == name for name in CLASS_NAMES] for label, _ in training])
    return HeadTrainer(penalty=PENALTY).train(features, targets, np.ones(len(training)), task=Task.SINGLE_LABEL).head


def _outcome(project: Project, record: RunRecord, report: Path) -> DemoOutcome:
    wanted = HIDDEN_CLASS.lower()
    found = next((found for found, _ in record.published() if found.class_name == wanted), None)
    if found is None:
        sentence = f"No slice of the class {wanted!r} was confirmed, although {HIDDEN_KIND} apples were made rare."
        return DemoOutcome(record=record, report=report, hidden_share=None, n_members=0, truth_sentence=sentence)
    samples = project.samples()
    evaluated = samples.only(samples.dataset.rows_of(Split.VALIDATION, Split.TEST))
    rows = found.class_rows(evaluated)
    members = rows[found.rule.members(evaluated, rows)]
    kinds = hidden_kinds(project.folder)
    names = [
        Path(str(place)).resolve().relative_to(project.folder.resolve()).as_posix() for place in samples.dataset.locations(members)
    ]
    share = float(np.mean([kinds[name] == HIDDEN_KIND for name in names])) if names else 0.0
    sentence = (
        f"The hidden truth, which no step saw: {HIDDEN_KIND} apples, which are green, were made rare in training; "
        f"{100 * share:.0f} % of the {len(names)} members of “{found.title}” are of that kind."
    )
    return DemoOutcome(record=record, report=report, hidden_share=share, n_members=len(names), truth_sentence=sentence)
