import numpy as np
import pytest
from PIL import Image

from weakspot.app.classifying import ClassifySettings, classify
from weakspot.app.flushing import FlushPolicy
from weakspot.app.ingesting import ingest
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError, NotEnoughDataError
from weakspot.core.roles import ClassifierOutput
from weakspot.engine.local import LocalEngine
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.image_folder import ImageFolderSource
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
EVERY_STEP = ClassifySettings(batch_size=1, flush=FlushPolicy(n_samples=1, seconds=60))


class RednessClassifier:
    """Says dog as likely as the picture is red; its features are the mean colour."""

    classifier_id = "redness@1"
    picture_side = 4
    head = None

    def __init__(self, *, class_names=("dog", "cat"), task=Task.SINGLE_LABEL, has_features=True, scale=1 / 200, stop_after=None):
        self.class_names = class_names
        self.task = task
        self.has_features = has_features
        self.scale = scale
        self.stop_after = stop_after
        self.n_seen = 0

    def prepare(self, picture):
        return np.asarray(picture.resize((1, 1)), dtype=np.float32).reshape(3)

    def classify(self, prepared):
        if self.stop_after is not None and self.n_seen >= self.stop_after:
            raise ConnectionError("gone")
        self.n_seen += len(prepared)
        colours = np.stack(prepared)
        red = colours[:, 0] * self.scale
        features = colours if self.has_features else None
        return ClassifierOutput(probabilities=np.stack([red, 1 - red], axis=1).astype(np.float32), features=features)


@pytest.fixture
def folder(tmp_path):
    for name, green in (("cat", 10), ("dog", 100)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (8, 6), (50 + number * 50, green, 7)).save(tmp_path / "data" / name / f"{number}.png")
    return tmp_path / "data"


@pytest.fixture
def project(tmp_path, folder):
    project = ProjectStore.create(tmp_path / "project")
    ingest(project, ImageFolderSource(location=str(folder)), engine=ENGINE)
    return project


def test_classify__columns_follow_the_data_set(project):
    found = classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    assert found.dataset.class_names == ("cat", "dog")
    np.testing.assert_allclose(found.dataset.probabilities[:3], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], atol=1e-6)
    assert found.dataset.predictions.tolist() == [0, 0, 1, 0, 0, 1]
    assert found.own.encoder_id == "redness@1/features"
    assert found.own.vectors[4].tolist() == [100, 100, 7]
    assert (found.n_new, found.n_outcomes, found.unreadable) == (6, 6, ())


def test_classify__second_time_costs_nothing(project):
    classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    again = RednessClassifier()
    found = classify(project, project.dataset(), again, engine=ENGINE)
    assert (again.n_seen, found.n_new, found.n_outcomes) == (0, 0, 6)
    assert found.own.vectors[4].tolist() == [100, 100, 7]


def test_classify__cached_outcomes_follow_a_new_order_of_classes(project, folder):
    classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    settings = AssemblySettings(class_names=("dog", "cat"))
    ingest(project, ImageFolderSource(location=str(folder)), engine=ENGINE, settings=settings)
    again = RednessClassifier()
    found = classify(project, project.dataset(), again, engine=ENGINE)
    assert again.n_seen == 0
    np.testing.assert_allclose(found.dataset.probabilities[0], [0.25, 0.75])


def test_classify__interrupted_goes_on_where_it_was(project):
    with pytest.raises(ConnectionError):
        classify(project, project.dataset(), RednessClassifier(stop_after=4), engine=ENGINE, settings=EVERY_STEP)
    rest = RednessClassifier()
    found = classify(project, project.dataset(), rest, engine=ENGINE, settings=EVERY_STEP)
    assert rest.n_seen == 2
    assert found.n_outcomes == 6


def test_classify__without_features(project):
    assert classify(project, project.dataset(), RednessClassifier(has_features=False), engine=ENGINE).own is None


def test_classify__missing_picture_counts_as_not_predicted(project, folder):
    (folder / "cat" / "1.png").unlink()
    found = classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    assert found.dataset.predictions.tolist() == [0, -1, 1, 0, 0, 1]
    assert [item.reason for item in found.unreadable] == ["missing-file"]
    assert np.isnan(found.own.vectors[1]).all()


def test_classify__all_pictures_gone(project, folder):
    for path in folder.rglob("*.png"):
        path.unlink()
    with pytest.raises(NotEnoughDataError, match="Not one of 6 samples could be classified: 6 missing-file"):
        classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)


def test_classify__other_classes_are_refused_before_any_picture(project):
    classifier = RednessClassifier(class_names=("dog", "fox"))
    with pytest.raises(ModelError, match="do not have the same classes"):
        classify(project, project.dataset(), classifier, engine=ENGINE)
    assert classifier.n_seen == 0


def test_classify__classifier_without_class_names(project):
    found = classify(project, project.dataset(), RednessClassifier(class_names=None), engine=ENGINE)
    np.testing.assert_allclose(found.dataset.probabilities[0], [0.25, 0.75])


def test_classify__other_task(project):
    with pytest.raises(ModelError, match="The classifier is multi-label, the data set is single-label"):
        classify(project, project.dataset(), RednessClassifier(task=Task.MULTI_LABEL), engine=ENGINE)


def test_classify__logits(project):
    with pytest.raises(ModelError, match=r"outside \[0, 1\].*logits"):
        classify(project, project.dataset(), RednessClassifier(scale=1.0), engine=ENGINE)


def test_classify__multi_label_thresholds(project, folder):
    settings = AssemblySettings(task=Task.MULTI_LABEL)
    ingest(project, ImageFolderSource(location=str(folder)), engine=ENGINE, settings=settings)
    found = classify(
        project,
        project.dataset(),
        RednessClassifier(task=Task.MULTI_LABEL),
        engine=ENGINE,
        settings=ClassifySettings(label_thresholds={"cat": 0.25, "dog": 0.75}),
    )
    assert found.dataset.thresholds.tolist() == [0.25, 0.75]
    assert found.dataset.predictions is None
