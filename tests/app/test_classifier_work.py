import numpy as np
import pytest
from PIL import Image

from weakspot.app.classifier_work import classify_pictures
from weakspot.core.errors import ConfigError
from weakspot.embed.encode import PictureRequest
from weakspot.engine.local import LocalEngine
from weakspot.engine.processes import ProcessEngine
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

HERE = LocalEngine(n_workers=2, queue_depth=4)
ELSEWHERE = ProcessEngine(n_workers=2)


@pytest.fixture(scope="module")
def world():
    return plant(rare(0.05), 240, seed=1)


@pytest.fixture(scope="module")
def requests(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for row in range(10):
        world.picture(row).save(folder / f"{row}.png")
    (folder / "4.png").write_bytes(b"rubbish")
    return [PictureRequest(position=row, location=str(folder / f"{row}.png")) for row in range(10)]


def test_classify_pictures__the_same_here_and_in_other_processes(world, requests):
    classifier = planted_classifier(world)
    here, there = (list(classify_pictures(requests, classifier, engine=engine, batch_size=4)) for engine in (HERE, ELSEWHERE))
    assert [batch.positions.tolist() for batch in here] == [[0, 1, 2, 3], [5, 6, 7], [8, 9]]
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.output.probabilities, other.output.probabilities)
        np.testing.assert_array_equal(one.output.features, other.output.features)
        assert one.unreadable == other.unreadable
    assert [item.reason for batch in here for item in batch.unreadable] == ["not-a-picture"]


def test_classify_pictures__nothing_readable_has_no_output(world, requests):
    (batch,) = classify_pictures(requests[4:5], planted_classifier(world), engine=HERE, batch_size=4)
    assert batch.output is None
    assert len(batch.unreadable) == 1


def test_classify_pictures__a_function_that_cannot_travel_is_refused_with_what_to_do(tmp_path):
    from weakspot.backends.callable_classifier import CallableClassifier

    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    asked = [PictureRequest(position=0, location=str(tmp_path / "a.png"))]
    classifier = CallableClassifier(function=lambda pictures: np.full((len(pictures), 2), 0.5), class_names=("a", "b"))
    (batch,) = classify_pictures(asked, classifier, engine=HERE, batch_size=1)
    assert batch.output.probabilities.tolist() == [[0.5, 0.5]]
    with pytest.raises(ConfigError, match="cannot be sent to another process.*engine local"):
        list(classify_pictures(asked, classifier, engine=ELSEWHERE, batch_size=1))
