import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from weakspot.web.static import Asker, Question, answer_key


@pytest.fixture
def asker(parts):
    return Asker(replace(parts, is_read_only=True), hidden={"disc": "***"})


def test_ask__what_the_server_says_without_hidden_texts(asker):
    found = asker.ask(Question(path="/api/generation/setup"))
    assert "***" in found["class_names"]
    assert "disc" not in found["class_names"]


def test_ask__refused__nothing(asker):
    assert asker.ask(Question(path="/api/slices/none")) is None
    assert asker.ask(Question(path="/api/nowhere")) is None
    assert asker.data("/api/generation/images/" + "0" * 64) is None


def test_ask__phrase__is_not_kept(asker):
    body = {"title": "disc", "phrase": "green", "is_submitted": False, "offset": 0, "limit": 10}
    assert asker.ask(Question(path="/api/classes/phrase", body=body)) is not None
    history = asker.ask(Question(path="/api/classes/history", query=(("title", "disc"),)))
    assert "of the error rate of 5 %" in history.pop("left")
    assert history == {"phrases": []}


def test_ask__where_an_event_loop_runs__is_answered(asker):
    async def in_a_notebook():
        return asker.ask(Question(path="/api/runs"))

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(lambda: asyncio.run(in_a_notebook())).result()["runs"]


def test_keys__also_under_other_queries():
    question = Question(
        path="/api/slices",
        query=(("run", "x"), ("kind", "members")),
        also=((("kind", "members"),),),
    )
    assert question.keys == ("/api/slices?kind=members&run=x", "/api/slices?kind=members")


def test_answer_key__as_the_pages_compute_it():
    """The same examples as in frontend/src/api/static.test.ts."""
    assert (
        answer_key("/api/slices/a b", [("z", "&*~"), ("a", "1"), ("a", "0")])
        == "/api/slices/a b?a=1&a=0&z=&*~"
    )
    assert (
        answer_key("/api/classes/phrase", [], {"b": 1, "a": "x"})
        == 'POST /api/classes/phrase {"a":"x","b":1}'
    )
