import base64
import io
import json
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier
from weakspot.models.endpoint.predictions import (
    EndpointClassifier,
    parse_answer,
    probability_rows,
    request_body,
)

NAMES = ["blue", "red"]
DOCUMENT = Path(__file__).parents[3] / "docs/reference/endpoint.md"


@pytest.fixture
def server(server_of):
    return server_of("classes")


def _classifier(server, **options):
    given = {"url": server.url, "class_names": NAMES, "first_wait_seconds": 0.0, **options}
    return EndpointClassifier(**given)


def _prepared(classifier, shares=(0.0, 0.2, 1.0)):
    return [
        classifier.prepare(Image.new("RGB", (6, 4), (round(255 * share), 0, 0))) for share in shares
    ]


def test_classify__probabilities_and_features_in_order(server):
    classifier = _classifier(server, batch_size=2, concurrency=3)
    assert isinstance(classifier, Classifier)
    shares = [number / 255 for number in range(0, 255, 25)]
    output = classifier.classify(_prepared(classifier, shares))
    np.testing.assert_allclose(output.probabilities[:, 1], shares, atol=1e-6)
    np.testing.assert_allclose(output.features[:, 1], 6.0)
    assert sorted(len(body["instances"]) for body in server.bodies) == [1, 2, 2, 2, 2, 2]
    assert classifier.head is None


def test_classify__list_answer(server):
    server.answer = {"predictions": [{"probabilities": [0.25, 0.75]}], "model": "v2"}
    classifier = _classifier(server, class_names=None)
    output = classifier.classify(_prepared(classifier, (0.5,)))
    np.testing.assert_allclose(output.probabilities, [[0.25, 0.75]])
    assert output.features is None


@pytest.mark.parametrize("status", [400, 404, 413, 302])
def test_classify__wrong_request_is_not_repeated(server, status):
    server.misbehave = [(status, {}, b"no such model")]
    classifier = _classifier(server)
    with pytest.raises(ModelError, match=f"status {status}.*no such model"):
        classifier.classify(_prepared(classifier))
    assert len(server.bodies) == 1


def _told(*probabilities):
    return {"predictions": [{"probabilities": one} for one in probabilities]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>busy</html>", "does not fit the schema"),
        (b"", "does not fit the schema"),
        (b"[]", "does not fit the schema"),
        ({"outputs": []}, "predictions: Field required"),
        (_told(), "0 predictions for 1 images"),
        (_told({"red": 1.0}), r"missing \['blue'\]"),
        (_told({"red": 0.5, "blue": 0.5, "green": 0.0}), r"unknown \['green'\]"),
        (_told([0.2, 0.3, 0.5]), "3 probabilities for 2 classes"),
        (_told([0.2, 0.3]), "sum to 0.5"),
        (_told([-1.0, 2.0]), "outside 0 to 1"),
        (b'{"predictions": [{"probabilities": [NaN, 1.0]}]}', "does not fit the schema"),
        (_told(["0.5", True]), "is no number"),
    ],
)
def test_classify__nonsense_is_said(server, answer, message):
    server.answer = answer
    classifier = _classifier(server)
    with pytest.raises(ModelError, match=message):
        classifier.classify(_prepared(classifier, (0.5,)))


def test_classify__features_must_be_complete(server):
    server.answer = _told([0.5, 0.5], [0.5, 0.5])
    server.answer["predictions"][0]["features"] = [1.0]
    classifier = _classifier(server)
    with pytest.raises(ModelError, match="features for some images only"):
        classifier.classify(_prepared(classifier, (0.5, 0.5)))


def test_classify__names_need_class_names(server):
    classifier = _classifier(server, class_names=None)
    with pytest.raises(ModelError, match=r"Set class_names = \['blue', 'red'\]"):
        classifier.classify(_prepared(classifier))


def test_classify__concurrency_is_bounded_and_used(server):
    server.meeting = threading.Barrier(2)
    classifier = _classifier(server, batch_size=1, concurrency=2)
    classifier.classify(_prepared(classifier, [0.1] * 8))
    assert server.most_under_way == 2


def test_classify__no_images_asks_nothing(server):
    assert _classifier(server).classify([]).probabilities.shape == (0, 2)
    assert server.bodies == []


def test_prepare__resized_and_encoded(server):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    sent = Image.open(io.BytesIO(_classifier(server).prepare(image).tobytes()))
    np.testing.assert_array_equal(np.asarray(sent), np.asarray(image))
    small = _classifier(server, image_side=20, encoding="jpeg")
    sent = Image.open(io.BytesIO(small.prepare(image).tobytes()))
    assert (sent.format, sent.size, small.image_side) == ("JPEG", (30, 20), 20)
    assert small.classifier_id != _classifier(server).classifier_id


def test_document__its_examples_are_what_is_sent_and_accepted():
    text = DOCUMENT.read_text().partition("# The segmentation")[0]
    request, *answers = (json.loads(one) for one in re.findall(r"```json\n(.*?)```", text, re.S))
    content = base64.b64decode(request["instances"][0]["image"]["b64"])
    assert request_body([np.frombuffer(content, np.uint8)]) == {
        "instances": request["instances"][:1]
    }
    image = Image.open(io.BytesIO(content))
    assert (image.format, image.size) == ("PNG", (1, 1))
    n_images = len(request["instances"])
    for answer in answers:
        parsed = parse_answer(json.dumps(answer).encode(), n_images=n_images, where="document")
        rows = probability_rows(parsed, ("apple", "pear"), where="document")
        assert rows == [[0.9, 0.1], [0.25, 0.75]]
    assert len(answers) == 2
