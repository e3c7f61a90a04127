import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError, NotEnoughDataError
from weakspot.core.roles import ClassifierOutput
from weakspot.data.embed import ImageRequest, map_images
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.data.settings import DataSettings
from weakspot.models.callable_classifier import CallableClassifier
from weakspot.run.ingestion import ingest
from weakspot.run.models import ClassifierModel, ClassifySettings, classify
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import plant, rare

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
ELSEWHERE = ProcessEngine(n_workers=2)


class RednessClassifier:
    """Says dog as likely as the image is red; its features are the mean colour."""

    classifier_id = "redness@1"
    image_side = 4
    head = None

    def __init__(
        self,
        *,
        class_names=("dog", "cat"),
        task=Task.SINGLE_LABEL,
        has_features=True,
        scale=1 / 200,
        stop_after=None,
    ):
        self.class_names = class_names
        self.task = task
        self.has_features = has_features
        self.scale = scale
        self.stop_after = stop_after
        self.n_seen = 0

    def prepare(self, image):
        return np.asarray(image.resize((1, 1)), dtype=np.float32).reshape(3)

    def classify(self, prepared):
        if self.stop_after is not None and self.n_seen >= self.stop_after:
            raise ConnectionError("gone")
        self.n_seen += len(prepared)
        colours = np.stack(prepared)
        red = colours[:, 0] * self.scale
        features = colours if self.has_features else None
        return ClassifierOutput(
            probabilities=np.stack([red, 1 - red], axis=1).astype(np.float32), features=features
        )


def test_classify__columns_follow_the_data_set(project):
    found = classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    assert found.dataset.class_names == ("cat", "dog")
    np.testing.assert_allclose(
        found.dataset.probabilities[:3], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], atol=1e-6
    )
    assert found.dataset.predictions.tolist() == [0, 0, 1, 0, 0, 1]
    assert found.own.encoder_id == "redness@1/features"
    assert found.own.embeddings[4].tolist() == [100, 100, 7]
    assert (found.n_new, found.n_predictions, found.unreadable) == (6, 6, ())


def test_classify__second_time_costs_nothing(project):
    classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    again = RednessClassifier()
    found = classify(project, project.dataset(), again, engine=ENGINE)
    assert (again.n_seen, found.n_new, found.n_predictions) == (0, 0, 6)
    assert found.own.embeddings[4].tolist() == [100, 100, 7]


def test_classify__another_classifier__is_asked_itself(project):
    classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    other = RednessClassifier()
    other.classifier_id = "another@1"
    found = classify(project, project.dataset(), other, engine=ENGINE)
    assert (other.n_seen, found.n_new) == (6, 6)


def test_classify__cached_predictions_follow_a_new_order_of_classes(project, folder):
    classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    settings = DataSettings(class_names=("dog", "cat"))
    ingest(project, ImageFolderSource(location=str(folder)), engine=ENGINE, settings=settings)
    again = RednessClassifier()
    found = classify(project, project.dataset(), again, engine=ENGINE)
    assert again.n_seen == 0
    np.testing.assert_allclose(found.dataset.probabilities[0], [0.25, 0.75])


def test_classify__missing_image_counts_as_not_predicted(project, folder):
    (folder / "cat" / "1.png").unlink()
    found = classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)
    assert found.dataset.predictions.tolist() == [0, -1, 1, 0, 0, 1]
    assert [item.reason for item in found.unreadable] == ["missing-file"]
    assert np.isnan(found.own.embeddings[1]).all()


def test_classify__all_images_gone(project, folder):
    for path in folder.rglob("*.png"):
        path.unlink()
    with pytest.raises(
        NotEnoughDataError, match="Not one of 6 samples could be classified: 6 missing-file"
    ):
        classify(project, project.dataset(), RednessClassifier(), engine=ENGINE)


@pytest.mark.parametrize(
    ("given", "n_seen", "said"),
    [
        ({"class_names": ("dog", "fox")}, 0, "do not have the same classes"),
        ({"task": Task.MULTI_LABEL}, 0, "is multi-label, the data set is single-label"),
        ({"scale": 1.0}, 6, r"outside \[0, 1\].*logits"),
    ],
)
def test_classify__what_does_not_fit_is_refused(project, given, n_seen, said):
    classifier = RednessClassifier(**given)
    with pytest.raises(ModelError, match=said):
        classify(project, project.dataset(), classifier, engine=ENGINE)
    assert classifier.n_seen == n_seen


def test_classify__multi_label_thresholds(project, folder):
    settings = DataSettings(task=Task.MULTI_LABEL)
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


@pytest.fixture(scope="module")
def planted_world():
    return plant(rare(0.05), 240, seed=1)


@pytest.fixture(scope="module")
def requests(planted_world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for row in range(10):
        planted_world.image(row).save(folder / f"{row}.png")
    (folder / "4.png").write_bytes(b"rubbish")
    return [ImageRequest(position=row, location=str(folder / f"{row}.png")) for row in range(10)]


def classify_images(requests, classifier, *, engine, batch_size):
    model = ClassifierModel(classifier=classifier, batch_size=batch_size)
    return list(map_images(requests, [model], engine=engine))


def test_classifier_model__the_same_here_and_in_other_processes(planted_world, requests):
    classifier = planted_classifier(planted_world)
    here, there = (
        classify_images(requests, classifier, engine=engine, batch_size=4)
        for engine in (ENGINE, ELSEWHERE)
    )
    seen = [batch.positions[batch.answers[0][0].places].tolist() for batch in here]
    assert seen == [[0, 1, 2, 3], [5, 6, 7], [8, 9]]
    for one, other in zip(here, there, strict=True):
        for column, same in zip(
            one.answers[0][0].columns, other.answers[0][0].columns, strict=True
        ):
            np.testing.assert_array_equal(column, same)
        assert one.unreadable == other.unreadable
    assert [item.reason for batch in here for item in batch.unreadable] == ["not-an-image"]


def test_classifier_model__a_function_that_cannot_travel_is_refused_with_what_to_do(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    asked = [ImageRequest(position=0, location=str(tmp_path / "a.png"))]
    classifier = CallableClassifier(
        function=lambda images: np.full((len(images), 2), 0.5), class_names=("a", "b")
    )
    (batch,) = classify_images(asked, classifier, engine=ENGINE, batch_size=1)
    assert batch.answers[0][0].columns[0].tolist() == [[0.5, 0.5]]
    with pytest.raises(ConfigError, match="cannot be sent to another process.*engine local"):
        classify_images(asked, classifier, engine=ELSEWHERE, batch_size=1)
