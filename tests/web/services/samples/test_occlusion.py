"""Heat maps of a real network on coloured tiles, and of a classifier that looks at one corner only."""

import numpy as np
import pytest
from PIL import Image
from tests.web.services.conftest import ProjectInMemory

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.errors import StoreError
from weakspot.core.roles import ClassifierOutput
from weakspot.core.samples import SampleSet
from weakspot.web.services.samples import CELLS, Occlusion, heat_map, patches
from weakspot.web.services.workspace import Workspace


class CornerClassifier:
    """Says `bright` as far as the upper left quarter is."""

    classifier_id = "corner"
    class_names = ("bright", "dark")
    task = Task.SINGLE_LABEL
    image_side = None
    head = None

    def __init__(self):
        self.batches: list[int] = []

    def prepare(self, image):
        return np.asarray(image, dtype=np.float32)

    def classify(self, prepared):
        self.batches.append(len(prepared))
        said = [one[: len(one) // 2, : one.shape[1] // 2].mean() / 255 for one in prepared]
        return ClassifierOutput(probabilities=np.array([[p, 1 - p] for p in said], dtype="f4"))


@pytest.fixture
def asked(tmp_path):
    """A workspace with one image whose upper left quarter is white, one broken file, and the classifier."""
    pixels = np.zeros((60, 80, 3), dtype=np.uint8)
    pixels[:30, :40] = 255
    Image.fromarray(pixels).save(tmp_path / "corner.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    dataset = dataset_from_columns(
        class_names=["bright", "dark"],
        labels=[1, 1],
        locations=[str(tmp_path / "corner.png"), str(tmp_path / "broken.png")],
    )
    (tmp_path / "project").mkdir()
    project = ProjectInMemory(
        tmp_path / "project", SampleSet(dataset=dataset, rows=np.arange(2)), NO_ASSISTANTS
    )
    classifier = CornerClassifier()
    object.__setattr__(project.prepared(), "classifier", classifier)
    return Workspace(project), classifier


def test_patches__every_cell__is_covered_as_often():
    counts = np.zeros((CELLS, CELLS), dtype=int)
    for top, left in patches():
        counts[max(0, top) : top + 2, max(0, left) : left + 2] += 1
    assert set(counts.ravel().tolist()) == {4}


def test_heat_map__classifier_of_one_corner__is_hot_there_alone(asked):
    workspace, _ = asked
    found = heat_map(workspace, 0, patience=60)
    assert found is not None
    assert found.done == found.total == 1 + len(patches())
    predicted, true = found.maps
    assert (predicted.class_name, true.class_name) == ("bright", "dark")
    assert predicted.probability == pytest.approx(1.0)
    heat = np.array(predicted.heat)
    assert heat[:5, :5].min() > 0.005
    assert np.abs(heat[6:, :]).max() == np.abs(heat[:, 6:]).max() == 0
    assert np.allclose(np.array(true.heat), -heat, atol=1e-6)


def test_heat_map__little_patience__goes_on_where_it_was_and_ends_the_same(asked):
    workspace, classifier = asked
    seen = []
    while not (found := heat_map(workspace, 0, patience=0)).maps:
        seen.append(found.done)
    assert seen == sorted(set(seen))
    assert len(seen) > 3
    assert max(classifier.batches) <= 11
    n_asked = len(classifier.batches)
    assert heat_map(workspace, 0) == found
    assert len(classifier.batches) == n_asked


def test_heat_map__image_that_cannot_be_read__is_none(asked):
    assert heat_map(asked[0], 1) is None


def test_heat_map__predictions_only__says_so(world_workspace):
    with pytest.raises(StoreError, match="no classifier to ask"):
        heat_map(world_workspace, 0)


def test_occlusion__following__covers_with_the_mean_colour():
    image = Image.new("RGB", (20, 20), (10, 20, 30))
    whole, first = Occlusion(image=image).following()[:2]
    assert whole is image
    assert np.asarray(first).tolist() == np.asarray(image).tolist()
