"""What all parts behind an address share: addresses, tokens, patience."""

import threading

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.models.endpoint.images import EndpointImageEditor, EndpointImageGenerator
from weakspot.models.endpoint.predictions import EndpointClassifier, EndpointSegmenter
from weakspot.models.endpoint.requests import address_problems, wait_seconds, within
from weakspot.models.endpoint.text_models import (
    EndpointAnswerer,
    EndpointCaptioner,
    EndpointTextGenerator,
)
from weakspot.run.wiring import build_part

IMAGE = Image.new("RGB", (16, 16), "red")
MODEL = {"model": "tiny"}
PARTS = {
    "classifier": ("classes", EndpointClassifier, {"class_names": ["blue", "red"]}),
    "segmenter": ("masks", EndpointSegmenter, {}),
    "images": ("images", EndpointImageGenerator, {**MODEL, "size": "8x8"}),
    "captioner": ("chat", EndpointCaptioner, MODEL),
    "answerer": ("chat", EndpointAnswerer, MODEL),
    "text": ("chat", EndpointTextGenerator, MODEL),
}
ASK = {
    "classifier": lambda part, n: part.classify([part.prepare(IMAGE)] * n).probabilities,
    "segmenter": lambda part, n: part.segment([IMAGE] * n, class_names=["disc"] * n),
    "images": lambda part, n: part.generate(["a dog"] * n, seeds=range(n)),
    "captioner": lambda part, n: part.caption([IMAGE] * n),
    "answerer": lambda part, n: part.answer([IMAGE] * n, "How red is it?"),
    "text": lambda part, n: [part.generate("hello") for _ in range(n)],
}
IDS = {
    "classifier": "classifier_id",
    "segmenter": "segmenter_id",
    "images": "generator_id",
    "captioner": "captioner_id",
    "answerer": "answerer_id",
    "text": "generator_id",
}


@pytest.fixture(params=PARTS)
def build(request, server_of):
    """Return the name of a part, its server, and what builds it."""
    kind, part, options = PARTS[request.param]
    server, made = server_of(kind), []

    def make(**further):
        given = {"url": server.url, "n_retries": 2, "first_wait_seconds": 0.0}
        made.append(part(**{**given, **options, **further}))
        return made[-1]

    yield request.param, server, make
    for one in made:
        one.close()


def test_parts__busy_service_is_asked_again_and_given_up_in_the_end(build):
    name, server, make = build
    server.misbehave = [(429, {"Retry-After": "0"}, b""), (500, {}, b"oops")]
    assert len(ASK[name](make(), 1)) == 1
    assert len(server.bodies) == 3
    server.always = (503, {}, b"")
    with pytest.raises(UnavailableError, match="did not answer in 3 attempts: status 503"):
        ASK[name](make(), 1)


def test_parts__endpoint_that_is_down_is_not_asked_for_every_image(build):
    name, server, make = build
    server.always = (503, {}, b"")
    with pytest.raises(UnavailableError, match="status 503"):
        ASK[name](make(concurrency=1, n_retries=0), 60)
    assert len(server.bodies) <= 4 + 60 // 8


def test_parts__slow_answer_times_out_and_is_asked_again(build):
    name, server, make = build
    server.misbehave = [(0, {}, b"")]
    assert len(ASK[name](make(timeout_seconds=0.5, concurrency=1), 1)) == 1
    assert len(server.bodies) == 2


def test_parts__nobody_listens(build):
    name, _, make = build
    with pytest.raises(UnavailableError, match="2 attempts: ConnectError"):
        ASK[name](make(url="http://127.0.0.1:9/v1", n_retries=1), 1)


def test_parts__token_is_read_from_the_environment_and_never_shown(build, monkeypatch):
    name, server, make = build
    monkeypatch.setenv("TINY_TOKEN", " s3cret\n")
    part = make(token_variable="TINY_TOKEN")
    ASK[name](part, 1)
    assert server.authorisations == ["Bearer s3cret"]
    server.always = (401, {}, b"")
    with pytest.raises(ConfigError, match=r"refuses access.*token_variable") as caught:
        ASK[name](part, 1 if name != "images" else 2)
    assert "s3cret" not in str(caught.value) + getattr(part, IDS[name]) + repr(part)
    monkeypatch.setenv("TINY_TOKEN", " ")
    with pytest.raises(ConfigError, match="'TINY_TOKEN' holds no token"):
        ASK[name](make(token_variable="TINY_TOKEN"), 1)


def test_parts__query_of_the_address_is_not_shown(build):
    name, server, make = build
    server.always = (404, {}, b"no such model")
    with pytest.raises(ModelError, match=r"status 404.*no such model") as caught:
        ASK[name](make(url=f"{server.url}?key=hidden"), 1)
    assert "hidden" not in str(caught.value)
    assert len(server.bodies) == 1


def test_parts__close__next_request_connects_again(build):
    name, _, make = build
    part = make()
    ASK[name](part, 1)
    part.close()
    part.close()
    assert len(ASK[name](part, 1)) == 1


def test_parts__id_names_the_address_and_changes_with_the_version(build):
    name, server, make = build
    plain = getattr(make(), IDS[name])
    assert server.url.removeprefix("http://").replace(f":{server.http.server_port}", "") in plain
    assert plain == getattr(make(timeout_seconds=1, concurrency=9), IDS[name])
    assert plain != getattr(make(version="2"), IDS[name])


@pytest.mark.parametrize("name", PARTS)
def test_parts__all_problems_of_the_options_at_once(name):
    _, part, options = PARTS[name]
    wrong = {"url": "ftp://x", "timeout_seconds": 0, "n_retries": -1, "concurrency": "3"}
    with pytest.raises(ConfigError) as caught:
        part(**{**options, **wrong, "token_variable": "s3-cret!"})
    for words in ("url: 'ftp://x'", "timeout_seconds must", "n_retries must", "concurrency must"):
        assert words in str(caught.value)
    assert "never the token itself" in str(caught.value)
    assert "s3-cret" not in str(caught.value)
    endless = {"timeout_seconds": 86_401, "n_retries": 101, "first_wait_seconds": 3601}
    with pytest.raises(ConfigError) as caught:
        part(**{**options, "url": "http://localhost/v1", **endless})
    assert all(f"{option} must lie in" in str(caught.value) for option in endless)


@pytest.mark.parametrize(
    ("part", "options", "said"),
    [
        (EndpointClassifier, {"encoding": "gif", "batch_size": 0}, "(?s)batch_size.*encoding"),
        (EndpointSegmenter, {"image_side": 0, "least_quality": 3}, "(?s)image_side.*least_quality"),
        (EndpointImageGenerator, {"model": " ", "size": "large"}, r"(?s)model.*size"),
        (EndpointImageGenerator, {"model": "m", "concurrency": 99}, "concurrency"),
        (EndpointImageEditor, {"model": "m", "mode": "x", "side": 3}, r"(?s)mode: 'x' .*side: 3"),
        (EndpointImageEditor, {"model": "m", "instruction": "no"}, "prompt.* is missing"),
        (EndpointCaptioner, {"model": "m", "image_side": 0}, "image_side"),
        (EndpointTextGenerator, {"model": "m", "temperature": True}, "temperature"),
        (EndpointTextGenerator, {"model": "m", "max_tokens": "many"}, "max_tokens"),
        (
            EndpointTextGenerator,
            {"model": "m", "extra_body": {"model": "x", "messages": []}},
            "extra_body: messages, model cannot be set here",
        ),
    ],
)
def test_parts__options_of_their_own(part, options, said):
    with pytest.raises(ConfigError, match=said):
        part(url="https://host/v1", **options)


@pytest.mark.parametrize(
    ("role", "options"),
    [("text_generators", MODEL), ("image_generators", MODEL), ("segmenters", {})],
)
def test_parts__unknown_option_of_a_settings_file(role, options):
    with pytest.raises(ConfigError, match=r"steps: there is no such option \(known: "):
        build_part(role, "endpoint", {"url": "https://host/v1", **options, "steps": 3}, where="x")


@pytest.mark.parametrize(
    ("url", "token_variable", "word"),
    [
        ("host/v1", None, "no http or https address"),
        ("ftp://host", None, "no http or https address"),
        ("http://[", None, "no http or https address"),
        ("https://me:secret@host/v1", None, "user name or password"),
        ("https://host/v1", "sk-123", "never the token itself"),
        ("http://host/v1", "TOKEN", "unencrypted"),
        ("https://host/v1", "TOKEN", None),
        ("http://127.0.0.1:8000/v1", "TOKEN", None),
        ("http://host/v1", None, None),
    ],
)
def test_address_problems__one_each(url, token_variable, word):
    problems = address_problems(url, token_variable)
    assert [word in problem for problem in problems] == ([] if word is None else [True])


@pytest.mark.parametrize(
    ("attempt", "asked", "low", "high"),
    [(0, None, 1, 1.5), (2, None, 4, 6), (9, None, 60, 60), (3, 0, 0, 0), (0, 7, 7, 7), (0, 99, 60, 60)],
)  # fmt: skip
def test_wait_seconds__doubles_with_jitter_and_a_ceiling(attempt, asked, low, high):
    waits = [wait_seconds(1.0, attempt, asked, np.random.default_rng(0)) for _ in range(2)]
    assert low <= waits[0] <= high
    assert waits[0] == waits[1]


def test_within__gives_the_result_or_the_error_or_does_not_wait():
    assert within(10.0, lambda: "answer") == "answer"
    with pytest.raises(ZeroDivisionError):
        within(10.0, lambda: 1 / 0)
    released = threading.Event()
    with pytest.raises(TimeoutError, match=r"not complete after 0.05 s"):
        within(0.05, released.wait)
    released.set()
