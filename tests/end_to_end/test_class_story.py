"""A class whose evaluation kind is missing in training, on real photographs: it fails as a whole, and the run says so and why."""

import csv
import shutil

import numpy as np
import pytest
from tests.conftest import embeddings_shared
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.dataset import Task
from weakspot.core.evidence import ClassFindingKind
from weakspot.data.images import decode_image
from weakspot.data.settings import DataSettings
from weakspot.gate.check import CheckRequest, check
from weakspot.gate.policy import parse_policy
from weakspot.project.demo import choose_samples, groceries, network, untrained_head
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.settings import (
    PartSettings,
    Settings,
)
from weakspot.run.wiring import build_classifier

CLASSES = ("apple", "melon", "pear")
TRAINING = {"Red-Delicious": 12, "Royal-Gala": 12, "Anjou": 14, "Conference": 14, "Cantaloupe": 24}
EVALUATED = {
    "Granny-Smith": (32, 14),
    "Anjou": (16, 8),
    "Conference": (16, 8),
    "Cantaloupe": (30, 14),
}

pytestmark = pytest.mark.timeout(1800)
needs_network = pytest.mark.network


def _choose():
    """Return (photograph, class, split); apples are red in training and green everywhere else."""
    photographs = groceries()
    in_demo = {photo.data for _, photo, _ in choose_samples(photographs, seed=0)}
    by_kind = {}
    # Those of the demo last, which are taken first: they are embedded already.
    for photo in sorted(photographs, key=lambda one: one.data in in_demo):
        by_kind.setdefault(photo.fine, []).append(photo)
    chosen = []
    for kind, count in TRAINING.items():
        chosen += [(by_kind[kind].pop(), "train") for _ in range(count)]
    for kind, counts in EVALUATED.items():
        for split, count in zip(("validation", "test"), counts, strict=True):
            chosen += [(by_kind[kind].pop(), split) for _ in range(count)]
    return [(photo, photo.coarse.lower(), split) for photo, split in chosen]


def _train(settings, folder, chosen):
    (folder / "model.onnx").write_bytes(network(untrained_head(len(CLASSES))))
    classifier = build_classifier(settings.classifier, folder)
    training = [(photo, label) for photo, label, split in chosen if split == "train"]
    images = [
        decode_image(photo.data, image_side=classifier.image_side).image for photo, _ in training
    ]
    features = classifier.classify([classifier.prepare(image) for image in images]).features
    targets = np.array([[label == name for name in CLASSES] for _, label in training])
    trained = HeadTrainer(penalty=0.3).train(
        features, targets, np.ones(len(targets)), task=Task.SINGLE_LABEL
    )
    (folder / "model.onnx").write_bytes(network(trained.head))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    chosen = _choose()
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split"])
        for number, (photo, label, split) in enumerate(chosen):
            (folder / f"{number:03d}.jpg").write_bytes(photo.data)
            writer.writerow([f"{number:03d}.jpg", label, split])
    options = {
        "path": "model.onnx",
        "class_names": list(CLASSES),
        "mean": [0.0] * 3,
        "std": [1.0] * 3,
    }
    settings = Settings(
        data=DataSettings(source="manifest.csv"),
        classifier=PartSettings(name="onnx", options=options),
        verify={"scheme": "cross-fit"},
        discover={"methods": ["clusters", "directions"]},
    )
    _train(settings, folder, chosen)
    Project.create(folder, settings=settings)
    return Project.open(folder)


@pytest.fixture(scope="module")
def record(project):
    with embeddings_shared():
        return project.run()


def _of(record, kind):
    return [one for one in record.class_findings if one.kind is kind and one.is_confirmed]


@needs_network
def test_run__the_class_fails_as_a_whole_and_says_what_it_is_taken_for(record):
    (apple,) = _of(record, ClassFindingKind.WHOLE)
    assert apple.class_name == "apple"
    assert apple.rate > 0.7
    assert apple.sentence.startswith("apple fails as a whole: ")
    assert "mostly taken for pear" in apple.sentence
    assert record.class_findings[0] == apple
    assert dict(record.classifier.confusions["apple"])["pear"] >= apple.n_failed / 2


@needs_network
def test_run__evaluation_looks_unlike_training_and_the_words_are_right(record, project):
    (shift,) = _of(record, ClassFindingKind.SHIFT)
    assert shift.class_name == "apple"
    assert shift.rate > 0.9
    assert "looks unlike training" in shift.sentence
    assert any("green" in words for words in shift.words_here)
    assert not any("red" in words.split() for words in shift.words_here)
    assert not any("green" in words for words in shift.words_there)


@needs_network
def test_run__examples_are_of_both_ends_and_none_of_the_confirmation_half(record, project):
    (shift,) = _of(record, ClassFindingKind.SHIFT)
    samples = project.samples()
    shown = project.prepared().halves(project.settings, project.criterion)[0][0].rows
    assert set(shift.examples_here) <= set(samples.dataset.sample_ids(shown))
    assert len(shift.examples_here) == len(shift.examples_there) == 6
    ids = samples.dataset.sample_ids()
    rows = [ids.index(name) for name in shift.examples_there]
    assert {int(samples.dataset.splits[row]) for row in rows} == {0}
    assert {samples.dataset.class_names[samples.dataset.labels[row]] for row in rows} == {"apple"}


@needs_network
def test_run__again__asks_nothing_new_and_says_the_same(record, project):
    standing = project.ledger().standing()
    again = project.verify(record.run_id)
    assert again.class_findings == record.class_findings
    assert project.ledger().standing() == standing


@needs_network
def test_repair__without_a_slice__repairs_the_class(record, project):
    if not record.published():
        assert record.repairs[0].plan.repairer == "worst-class"
        assert "fail as a whole" in record.repairs[0].notes[0]
    bare = record.model_copy(update={"evidence": (), "slices": ()})
    project.store.runs.save(bare)
    try:
        repaired = project.repair(record.run_id, RepairRequest())
    finally:
        project.store.runs.save(record)
    assert repaired.repairs[0].plan.repairer == "worst-class"
    slices = [one for one in repaired.repairs[0].arms[0].changes if one.kind == "slice"]
    assert [one.group for one in slices] == ["apple: as a whole"]


@needs_network
def test_check__a_policy_forbids_classes_that_fail(record, project):
    policy = parse_policy({"failing_classes": {"max": 0}}, where="test")
    checked = check(project, CheckRequest(policy=policy, run_id=record.run_id))
    (entry,) = checked[0].failing
    assert entry.sentence.startswith("1 class is confirmed to fail as a whole: “apple”")


BIRDS = {
    "heron": {"heron": 4, "crane": 44, "gull": 2, "owl": 2},
    "crane": {"crane": 46, "heron": 2, "gull": 2, "owl": 2},
    "gull": {"gull": 40, "heron": 4, "crane": 4, "owl": 4},
    "owl": {"owl": 46, "gull": 3, "crane": 3},
}


def _bird_rows():
    for label, answers in BIRDS.items():
        training = 0 if label == "owl" else 20
        yield from ([label, label, "train"] for _ in range(training))
        for said, count in answers.items():
            yield from ([label, said, "validation"] for _ in range(count))


def test_run__labels_and_predictions_alone__classes_are_compared(tmp_path):
    table = tmp_path / "predictions.csv"
    with table.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["label", "prediction", "split"], *_bird_rows()])
    project = Project.create(tmp_path / "project", data=str(table))
    record = project.run()
    assert [(one.kind, one.class_name) for one in record.class_findings if one.is_confirmed] == [
        (ClassFindingKind.WHOLE, "heron"),
        (ClassFindingKind.UNTRAINED, "owl"),
    ]
    assert record.classifier.confusions["heron"][0] == ("crane", 44)
    assert "Only whole classes are compared" in " ".join(one.summary for one in record.stages)
    assert project.run().class_findings == record.class_findings
    assert project.ledger().standing().n_batches == 1
    assert project.report()[0].exists()


def _first_lines(folder):
    """Return what `weakspot run` says, in one line; it has fifteen at most."""
    answer = CliRunner().invoke(app, ["run", "--project", str(folder)])
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert len(lines) <= 15
    return " ".join(" ".join(lines).split())


@pytest.fixture
def copied(project, record, tmp_path):
    """The same photographs, network and embeddings, for a mistake to be made with."""
    folder = tmp_path / "copy"
    shutil.copytree(project.folder, folder)
    return folder


@pytest.fixture
def mistaken(copied):
    """The same for mistakes that are seen before anything is looked for: what comes after that is kept short."""
    settings = Project.open(copied).settings
    short = settings.model_copy(
        update={
            "discover": settings.discover.model_copy(update={"methods": ("clusters",)}),
            "verify": settings.verify.model_copy(update={"scheme": "halves"}),
            "witnesses": settings.witnesses.model_copy(update={"on": "none"}),
            "repair": settings.repair.model_copy(update={"look_again": False}),
        }
    )
    Project.create(copied, settings=short, overwrite=True)
    return copied


def _set(folder, **options):
    settings = Project.open(folder).settings
    changed = {**settings.classifier.options, **options}
    part = settings.classifier.model_copy(update={"options": changed})
    Project.create(
        folder, settings=settings.model_copy(update={"classifier": part}), overwrite=True
    )


def _rows(folder):
    with (folder / "manifest.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@needs_network
def test_first_lines__the_story(copied):
    said = _first_lines(copied)
    assert "! apple" in said
    assert "1 apple fails as a whole" in said
    assert "looks unlike training" in said
    assert "DO apple: " in said
    assert "PROBLEM" not in said


@needs_network
def test_first_lines__class_names_shifted(mistaken):
    _set(mistaken, class_names=[*CLASSES[1:], CLASSES[0]])
    said = _first_lines(mistaken)
    assert "PROBLEM" in said
    assert '"class_names" = ["apple", "melon", "pear"]' in said


@needs_network
@pytest.mark.parametrize(
    ("option", "mended"),
    [({"colour": "bgr"}, '"colour" = "rgb"'), ({"scale": 1.0}, '"scale" = 0.0039')],
)
def test_first_lines__images_prepared_wrongly(mistaken, option, mended):
    _set(mistaken, **option)
    said = _first_lines(mistaken)
    assert "PROBLEM" in said
    assert "weakspot.toml: options = " in said
    assert mended in said


@needs_network
def test_first_lines__training_images_in_evaluation(mistaken):
    rows = _rows(mistaken)
    for label in CLASSES:
        by_split = {
            split: [row["path"] for row in rows if (row["label"], row["split"]) == (label, split)]
            for split in ("train", "validation")
        }
        for source, target in zip(by_split["train"][:8], by_split["validation"][:8], strict=True):
            shutil.copy(mistaken / source, mistaken / target)
    assert "Training holds 24 of 94 evaluation images exactly" in _first_lines(mistaken)


@needs_network
def test_first_lines__splits_are_dealt(mistaken):
    rows = _rows(mistaken)
    with (mistaken / "manifest.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [("path", "label"), *((row["path"], row["label"]) for row in rows)]
        )
    said = _first_lines(mistaken)
    assert "dealt" in said
