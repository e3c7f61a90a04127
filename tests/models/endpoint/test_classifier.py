import base64
import io
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import Classifier
from weakspot.models.endpoint.classifier import (
    EndpointClassifier,
    parse_answer,
    probability_rows,
    request_body,
)

NAMES = ["blue", "red"]
SILENCE = 0
DOCUMENT = Path(__file__).parents[3] / "docs/reference/endpoint.md"


class _Server:
    """A real endpoint on loopback that says how red an image is, after misbehaving as told."""

    def __init__(self):
        self.misbehave = []
        self.answer = None
        self.requests = []
        self.authorisations = []
        self.under_way = self.most_under_way = 0
        self.meeting = None
        self.closing = threading.Event()
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.handle(self)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}/v1/predict"

    def handle(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.requests.append(body)
            self.authorisations.append(handler.headers.get("Authorization"))
            step = self.misbehave.pop(0) if self.misbehave else None
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.meeting is not None:
                self.meeting.wait(timeout=20)
            status, headers, content = step or (200, {}, self._content(body))
        finally:
            # Before the answer leaves: with it in hand the client may ask again at once.
            with self.lock:
                self.under_way -= 1
        try:
            if status == SILENCE:
                self.closing.wait()
                return
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            pass

    def _content(self, body):
        if self.answer is not None:
            return (
                self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
            )
        predictions = []
        for instance in body["instances"]:
            image = Image.open(
                io.BytesIO(base64.b64decode(instance["image"]["b64"], validate=True))
            )
            red = float(np.asarray(image)[:, :, 0].mean()) / 255
            predictions.append(
                {"probabilities": {"red": red, "blue": 1 - red}, "features": [red, image.width]}
            )
        return json.dumps({"predictions": predictions}).encode()

    def close(self):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    made = _Server()
    yield made
    made.close()


@pytest.fixture
def build(server):
    made = []

    def make(**options):
        made.append(
            EndpointClassifier(
                **{"url": server.url, "class_names": NAMES, "first_wait_seconds": 0.0, **options}
            )
        )
        return made[-1]

    yield make
    for classifier in made:
        classifier.close()


def _prepared(classifier, shares=(0.0, 0.2, 1.0)):
    return [
        classifier.prepare(Image.new("RGB", (6, 4), (round(255 * share), 0, 0))) for share in shares
    ]


def test_classify__probabilities_and_features_in_order(server, build):
    classifier = build(batch_size=2, concurrency=3)
    assert isinstance(classifier, Classifier)
    shares = [number / 255 for number in range(0, 255, 25)]
    output = classifier.classify(_prepared(classifier, shares))
    np.testing.assert_allclose(output.probabilities[:, 1], shares, atol=1e-6)
    np.testing.assert_allclose(output.features[:, 1], 6.0)
    assert sorted(len(request["instances"]) for request in server.requests) == [1, 2, 2, 2, 2, 2]
    assert classifier.head is None


def test_classify__list_answer(server, build):
    server.answer = {"predictions": [{"probabilities": [0.25, 0.75]}], "model": "v2"}
    classifier = build(class_names=None)
    output = classifier.classify(_prepared(classifier, (0.5,)))
    np.testing.assert_allclose(output.probabilities, [[0.25, 0.75]])
    assert output.features is None


def test_classify__500_twice_then_429_then_well(server, build):
    server.misbehave = [(500, {}, b"oops"), (503, {}, b""), (429, {"Retry-After": "0"}, b"")]
    classifier = build(concurrency=1)
    np.testing.assert_allclose(
        classifier.classify(_prepared(classifier)).probabilities[:, 1], [0.0, 0.2, 1.0], atol=1e-6
    )
    assert len(server.requests) == 4


def test_classify__gives_up_after_the_retries(server, build):
    server.misbehave = [(500, {}, b"oops")] * 3
    classifier = build(n_retries=2, concurrency=1)
    with pytest.raises(UnavailableError, match="did not answer in 3 attempts: status 500"):
        classifier.classify(_prepared(classifier))


def test_classify__slow_answer_times_out_and_is_tried_again(server, build):
    server.misbehave = [(SILENCE, {}, b"")]
    classifier = build(timeout_seconds=1.0, concurrency=1)
    np.testing.assert_allclose(
        classifier.classify(_prepared(classifier)).probabilities[:, 1], [0.0, 0.2, 1.0], atol=1e-6
    )
    assert len(server.requests) > 1


def test_classify__nobody_listens(server):
    url = server.url
    server.http.server_close()
    classifier = EndpointClassifier(
        url=url, class_names=NAMES, n_retries=1, first_wait_seconds=0.0, timeout_seconds=1.0
    )
    with pytest.raises(UnavailableError, match="did not answer in 2 attempts"):
        classifier.classify(_prepared(classifier))
    classifier.close()


@pytest.mark.parametrize("status", [400, 404, 413, 302])
def test_classify__wrong_request_is_not_repeated(server, build, status):
    server.misbehave = [(status, {}, b"no such model")]
    classifier = build()
    with pytest.raises(ModelError, match=f"status {status}.*no such model"):
        classifier.classify(_prepared(classifier))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>busy</html>", "does not fit the schema"),
        (b"", "does not fit the schema"),
        (b"[]", "does not fit the schema"),
        ({"outputs": []}, "predictions: Field required"),
        ({"predictions": []}, "0 predictions for 1 images"),
        ({"predictions": [{"probabilities": {"red": 1.0}}]}, r"missing \['blue'\]"),
        (
            {"predictions": [{"probabilities": {"red": 0.5, "blue": 0.5, "green": 0.0}}]},
            r"unknown \['green'\]",
        ),
        ({"predictions": [{"probabilities": [0.2, 0.3, 0.5]}]}, "3 probabilities for 2 classes"),
        ({"predictions": [{"probabilities": [0.2, 0.3]}]}, "sum to 0.5"),
        ({"predictions": [{"probabilities": [-1.0, 2.0]}]}, "outside 0 to 1"),
        (b'{"predictions": [{"probabilities": [NaN, 1.0]}]}', "does not fit the schema"),
        ({"predictions": [{"probabilities": ["0.5", True]}]}, "is no number"),
    ],
)
def test_classify__nonsense_is_said(server, build, answer, message):
    server.answer = answer
    classifier = build()
    with pytest.raises(ModelError, match=message):
        classifier.classify(_prepared(classifier, (0.5,)))


def test_classify__features_must_be_complete(server, build):
    server.answer = {
        "predictions": [
            {"probabilities": [0.5, 0.5], "features": [1.0]},
            {"probabilities": [0.5, 0.5]},
        ]
    }
    classifier = build()
    with pytest.raises(ModelError, match="features for some images only"):
        classifier.classify(_prepared(classifier, (0.5, 0.5)))


def test_classify__names_need_class_names(server, build):
    classifier = build(class_names=None)
    with pytest.raises(ModelError, match=r"Set class_names = \['blue', 'red'\]"):
        classifier.classify(_prepared(classifier))


def test_classify__concurrency_is_bounded_and_used(server, build):
    server.meeting = threading.Barrier(2)
    classifier = build(batch_size=1, concurrency=2)
    classifier.classify(_prepared(classifier, [0.1] * 8))
    assert server.most_under_way == 2


def test_classify__no_images_asks_nothing(server, build):
    assert build().classify([]).probabilities.shape == (0, 2)
    assert server.requests == []


def test_token__from_the_environment_only(server, build, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "s3cret")
    classifier = build(token_variable="SHOP_TOKEN")
    classifier.classify(_prepared(classifier))
    assert server.authorisations == ["Bearer s3cret"]
    server.misbehave = [(401, {}, b"")]
    with pytest.raises(ConfigError, match="token_variable") as caught:
        classifier.classify(_prepared(classifier))
    assert "s3cret" not in str(caught.value) + classifier.classifier_id
    monkeypatch.delenv("SHOP_TOKEN")
    with pytest.raises(ConfigError, match="'SHOP_TOKEN' holds no token"):
        build(token_variable="SHOP_TOKEN").classify(_prepared(classifier))


def test_settings__all_problems_at_once():
    with pytest.raises(ConfigError) as caught:
        EndpointClassifier(
            url="ftp://x", encoding="gif", batch_size=0, n_retries=-1, token_variable="s3-cret!"
        )
    message = str(caught.value)
    for part in (
        "url: 'ftp://x'",
        "encoding: 'gif'",
        "batch_size: must be",
        "n_retries: must be",
        "never the token itself",
    ):
        assert part in message
    assert "s3-cret" not in message
    with pytest.raises(ConfigError, match="unencrypted"):
        EndpointClassifier(url="http://models.example/v1", token_variable="SHOP_TOKEN")
    with pytest.raises(ConfigError, match="no http or https address"):
        EndpointClassifier(url="http://[")
    with pytest.raises(ConfigError, match="concurrency: must be a number of at least 1, is '3'"):
        EndpointClassifier(url="https://models.example/v1", concurrency="3")
    with pytest.raises(ConfigError, match="user name or password"):
        EndpointClassifier(url="https://me:pw@models.example/v1")


def test_errors__query_is_not_shown(server):
    server.misbehave = [(404, {}, b"")]
    classifier = EndpointClassifier(url=server.url + "?key=hidden", class_names=NAMES)
    with pytest.raises(ModelError) as caught:
        classifier.classify(_prepared(classifier))
    assert "hidden" not in str(caught.value)
    classifier.close()


def test_prepare__resized_and_encoded(build):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    sent = Image.open(io.BytesIO(build().prepare(image).tobytes()))
    np.testing.assert_array_equal(np.asarray(sent), np.asarray(image))
    small = build(image_side=20, encoding="jpeg")
    sent = Image.open(io.BytesIO(small.prepare(image).tobytes()))
    assert (sent.format, sent.size, small.image_side) == ("JPEG", (30, 20), 20)


def test_classifier_id__address_version_and_side(build):
    first = build().classifier_id
    assert first.startswith("endpoint:127.0.0.1/v1/predict@")
    assert build().classifier_id == first
    assert len({first, build(version="2").classifier_id, build(image_side=9).classifier_id}) == 3


def test_document__its_examples_are_what_is_sent_and_accepted():
    request, by_name, by_list = (
        json.loads(block)
        for block in re.findall(
            r"```json\n(.*?)```", DOCUMENT.read_text().partition("# The segmentation")[0], re.S
        )
    )
    sent = request_body(
        [np.frombuffer(base64.b64decode(request["instances"][0]["image"]["b64"]), np.uint8)]
    )
    assert sent == {"instances": request["instances"][:1]}
    image = Image.open(io.BytesIO(base64.b64decode(request["instances"][0]["image"]["b64"])))
    assert (image.format, image.size) == ("PNG", (1, 1))
    rows = []
    for answer in (by_name, by_list):
        parsed = parse_answer(
            json.dumps(answer).encode(), n_images=len(request["instances"]), where="document"
        )
        rows.append(probability_rows(parsed, ("apple", "pear"), where="document"))
    assert rows[0] == rows[1] == [[0.9, 0.1], [0.25, 0.75]]
