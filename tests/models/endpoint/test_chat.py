import json
import re

import pytest

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.models.endpoint.text_models import ChatEndpoint, ChatSettings, chat_settings

SCHEMA = {
    "type": "object",
    "properties": {"attributes": {"type": "array", "items": {"type": "string"}}},
}


def _endpoint(server, **options):
    given = {
        "url": server.url,
        "model": "tiny",
        "n_retries": 2,
        "first_wait_seconds": 0.0,
        **options,
    }
    return ChatEndpoint(ChatSettings(**given))


def test_ask__sends_what_chat_endpoints_take(chat_server):
    assert _endpoint(chat_server, max_tokens=7).ask("hello", seed=5) == "words 5"
    assert chat_server.paths == ["/v1/chat/completions"]
    assert chat_server.bodies == [
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 7,
            "temperature": 0.0,
            "seed": 5,
        }
    ]


def test_ask__whole_address_may_be_given(chat_server):
    _endpoint(chat_server, url=f"{chat_server.url}/chat/completions").ask("hello")
    _endpoint(chat_server, url=f"{chat_server.url}/?key=1").ask("hello")
    assert chat_server.paths == ["/v1/chat/completions", "/v1/chat/completions?key=1"]


def test_ask__schema_is_sent_as_response_format(chat_server):
    assert json.loads(_endpoint(chat_server).ask("schema", schema=SCHEMA)) == {
        "attributes": ["colour", "size"]
    }
    assert chat_server.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_ask__field_that_is_not_understood_is_left_out_from_then_on(chat_server):
    chat_server.refused_fields = ("response_format", "seed", "max_tokens")
    endpoint = _endpoint(chat_server)
    assert endpoint.ask("schema", schema=SCHEMA).startswith("```json")
    assert [len(body) for body in chat_server.bodies] == [6, 5, 4, 4]
    assert chat_server.bodies[-1]["max_completion_tokens"] == 60
    endpoint.ask("again", schema=SCHEMA)
    assert len(chat_server.bodies) == 5


def test_ask__refusal_that_names_nothing_drops_the_response_format_only(chat_server):
    chat_server.misbehave = [(400, {}, b"bad request")]
    assert _endpoint(chat_server).ask("schema", schema=SCHEMA).startswith("```json")
    chat_server.always = (400, {}, b"bad request")
    with pytest.raises(ModelError, match="status 400.*bad request"):
        _endpoint(chat_server).ask("hello")
    assert len(chat_server.bodies) == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_ask__tries_again_when_that_can_help(chat_server, status):
    chat_server.misbehave = [(status, {"Retry-After": "0"}, b"")] * 2
    assert _endpoint(chat_server).ask("hello") == "words 0"
    assert len(chat_server.bodies) == 3


def test_ask__gives_up(chat_server):
    chat_server.always = (500, {}, b"")
    with pytest.raises(UnavailableError, match="3 attempts: status 500"):
        _endpoint(chat_server).ask("hello")


def test_ask__slow_answer_is_a_time_out(chat_server, tiny):
    chat_server.misbehave = [(tiny.SILENCE, {}, b"")]
    with pytest.raises(UnavailableError, match="1 attempts: ReadTimeout"):
        _endpoint(chat_server, timeout_seconds=0.2, n_retries=0).ask("hello")


def test_ask__nobody_there():
    settings = ChatSettings(url="http://127.0.0.1:9/v1", model="tiny", n_retries=0)
    with pytest.raises(UnavailableError, match="ConnectError"):
        ChatEndpoint(settings).ask("hello")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": "x"}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b"\xff",
    ],
)
def test_ask__garbage(chat_server, content):
    chat_server.always = (200, {}, content)
    with pytest.raises(ModelError, match=r"not what chat endpoints answer.*127\.0\.0\.1"):
        _endpoint(chat_server).ask("hello")


def test_ask__empty_and_refused_answers(chat_server, tiny):
    chat_server.misbehave = [(200, {}, tiny.answer_bytes(text)) for text in (None, "", " \n")]
    for _ in range(3):
        with pytest.raises(ModelError, match="gave no answer"):
            _endpoint(chat_server).ask("hello")
    refused = {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}
    chat_server.misbehave = [(200, {}, json.dumps(refused).encode())]
    with pytest.raises(ModelError, match="I will not"):
        _endpoint(chat_server).ask("hello")


def test_ask__answer_in_parts(chat_server, tiny):
    chat_server.misbehave = [
        (
            200,
            {},
            tiny.answer_bytes([{"type": "text", "text": "a "}, {"type": "text", "text": "dog"}]),
        )
    ]
    assert _endpoint(chat_server).ask("hello") == "a dog"


def test_ask__cut_off_only_matters_when_it_must_be_whole(chat_server, tiny):
    chat_server.always = (
        200,
        {},
        tiny.answer_bytes('{"attributes": ["col', finish_reason="length"),
    )
    assert _endpoint(chat_server).ask("hello") == '{"attributes": ["col'
    with pytest.raises(ModelError, match=r"cut off.*max_tokens"):
        _endpoint(chat_server).ask("hello", must_be_whole=True)


def test_ask__thoughts_are_no_part_of_the_answer(chat_server, tiny):
    chat_server.misbehave = [
        (200, {}, tiny.answer_bytes("<think>Is it red? No.</think>\n\ngreen")),
        (200, {}, tiny.answer_bytes('It is green.</think>{"attributes": []}')),
    ]
    endpoint = _endpoint(chat_server)
    assert endpoint.ask("colour?") == "green"
    assert endpoint.ask("schema", schema=SCHEMA, must_be_whole=True) == '{"attributes": []}'


@pytest.mark.parametrize("thought", ["<think>Is it", "", None])
def test_ask__tokens_spent_on_thinking__asked_again_with_more(chat_server, tiny, thought):
    chat_server.misbehave = [(200, {}, tiny.answer_bytes(thought, finish_reason="length"))]
    endpoint = _endpoint(chat_server, max_tokens=24, thinking_tokens=1000)
    assert endpoint.ask("hello") == "words 0"
    assert endpoint.ask("hello") == "words 0"
    assert [body["max_tokens"] for body in chat_server.bodies] == [24, 1024, 1024]


@pytest.mark.parametrize(("room", "n_asked"), [(0, 1), (9, 2)])
def test_ask__thinks_without_end__says_what_to_do(chat_server, tiny, room, n_asked):
    chat_server.always = (200, {}, tiny.answer_bytes("<think>Hm", finish_reason="length"))
    with pytest.raises(ModelError, match="still thinking.*thinking_tokens"):
        _endpoint(chat_server, thinking_tokens=room).ask("hello")
    assert len(chat_server.bodies) == n_asked


def test_ask__further_fields_are_sent_and_own_ones_protected(chat_server):
    further = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}
    _endpoint(chat_server, extra_body=further, reasoning_effort="low").ask("hello")
    assert chat_server.bodies[0].items() >= {**further, "reasoning_effort": "low"}.items()
    with pytest.raises(ConfigError, match="extra_body: messages, model cannot be set here"):
        _endpoint(chat_server, extra_body={"model": "x", "messages": []})


def test_ask__token_is_read_from_the_environment_and_never_shown(chat_server, monkeypatch):
    monkeypatch.setenv("TINY_TOKEN", "s3cret")
    endpoint = _endpoint(chat_server, token_variable="TINY_TOKEN")
    endpoint.ask("hello")
    assert chat_server.authorisations == ["Bearer s3cret"]
    assert "s3cret" not in endpoint.identity("x") + repr(endpoint.settings)
    chat_server.always = (401, {}, b"")
    with pytest.raises(ConfigError, match="refuses access") as caught:
        endpoint.ask("hello")
    assert "s3cret" not in str(caught.value)
    monkeypatch.delenv("TINY_TOKEN")
    with pytest.raises(ConfigError, match="TINY_TOKEN"):
        _endpoint(chat_server, token_variable="TINY_TOKEN").ask("hello")


def test_close__next_question_connects_anew(chat_server):
    endpoint = _endpoint(chat_server)
    endpoint.ask("hello")
    endpoint.close()
    endpoint.close()
    assert endpoint.ask("hello") == "words 0"


def test_settings__all_problems_at_once():
    with pytest.raises(ConfigError) as caught:
        ChatSettings(
            url="ftp://x",
            model=" ",
            timeout_seconds=0,
            n_retries=-1,
            concurrency=0,
            max_tokens="many",
            temperature=True,
        )
    for name in (
        "url",
        "model",
        "timeout_seconds",
        "n_retries",
        "concurrency",
        "max_tokens",
        "temperature",
    ):
        assert re.search(rf"\b{name}(:| must)", str(caught.value))


def test_settings__token_only_over_https_or_loopback():
    with pytest.raises(ConfigError, match="unencrypted"):
        ChatSettings(url="http://example.org/v1", model="tiny", token_variable="TOKEN")


def test_chat_settings__unknown_option():
    with pytest.raises(ConfigError, match=r"timeout: there is no such option \(known: concurrency"):
        chat_settings("http://127.0.0.1/v1", "tiny", {"timeout": 3}, max_tokens=9)
    assert chat_settings("http://127.0.0.1/v1", "tiny", {}, max_tokens=9).max_tokens == 9


def test_identity__everything_that_decides_the_words():
    def identity(**options):
        return ChatEndpoint(
            ChatSettings(**{"url": "https://host/v1", "model": "tiny", **options})
        ).identity("kind")

    same = identity()
    assert same.startswith("kind:host/v1:tiny@")
    assert same == identity(timeout_seconds=1, concurrency=9)
    changed = [
        identity(model="b"),
        identity(url="https://other/v1"),
        identity(version="2"),
        identity(temperature=1),
        identity(max_tokens=9),
        identity(reasoning_effort="low"),
        identity(extra_body={"top_k": 1}),
    ]
    assert len({same, *changed}) == 8
