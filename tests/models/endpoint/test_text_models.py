import json

import pytest
from PIL import Image
from tests.models.tiny_servers import chat_answer

from weakspot.core.errors import ModelError
from weakspot.core.roles import CompletesCaptions, ScoresCaptions
from weakspot.models.endpoint.text_models import (
    ChatEndpoint,
    EndpointAnswerer,
    EndpointCaptioner,
    EndpointTextGenerator,
    data_url,
)

SCHEMA = {
    "type": "object",
    "properties": {"attributes": {"type": "array", "items": {"type": "string"}}},
}
REDS = [Image.new("RGB", (40, 30), (red, 0, 0)) for red in (0, 100, 200)]


def _chat(server, part=ChatEndpoint, **options):
    given = {"model": "tiny", "n_retries": 2, "first_wait_seconds": 0.0}
    return part(**{"url": server.url, **given, **options})


def _words(server):
    return server.bodies[0]["messages"][0]["content"][0]["text"]


def test_ask__sends_what_chat_endpoints_take(chat_server):
    assert _chat(chat_server, max_tokens=7).ask("hello", seed=5) == "words 5"
    assert chat_server.bodies == [
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 7,
            "temperature": 0.0,
            "seed": 5,
        }
    ]


@pytest.mark.parametrize(
    ("ending", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/?key=1", "/v1/chat/completions?key=1"),
    ],
)
def test_ask__whole_address_may_be_given(chat_server, ending, path):
    _chat(chat_server, url=f"{chat_server.url}{ending}").ask("hello")
    assert chat_server.paths == [path]


def test_ask__schema_is_sent_as_response_format(chat_server):
    answer = _chat(chat_server).ask("schema", schema=SCHEMA)
    assert json.loads(answer) == {"attributes": ["colour", "size"]}
    assert chat_server.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_ask__field_that_is_not_understood_is_left_out_from_then_on(chat_server):
    chat_server.refused_fields = ("response_format", "seed", "max_tokens")
    endpoint = _chat(chat_server)
    assert endpoint.ask("schema", schema=SCHEMA).startswith("```json")
    assert [len(body) for body in chat_server.bodies] == [6, 5, 4, 4]
    assert chat_server.bodies[-1]["max_completion_tokens"] == 60
    endpoint.ask("again", schema=SCHEMA)
    assert len(chat_server.bodies) == 5


def test_ask__refusal_that_names_nothing_drops_the_response_format_only(chat_server):
    chat_server.misbehave = [(400, {}, b"bad request")]
    assert _chat(chat_server).ask("schema", schema=SCHEMA).startswith("```json")
    chat_server.always = (400, {}, b"bad request")
    with pytest.raises(ModelError, match="status 400.*bad request"):
        _chat(chat_server).ask("hello")
    assert len(chat_server.bodies) == 3


REFUSED = b'{"choices": [{"message": {"content": null, "refusal": "I will not."}}]}'
NOT_CHAT = r"not what chat endpoints answer.*127\.0\.0\.1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((content, NOT_CHAT) for content in (b"", b"<html>", b"[]", b"{}", b'{"choices": []}')),
        (b'{"choices": [{"message": "x"}]}', NOT_CHAT),
        (b'{"choices": [{"message": {"content": 3}}]}', NOT_CHAT),
        (b"\xff", NOT_CHAT),
        *((chat_answer(text), "gave no answer") for text in (None, "", " \n")),
        (REFUSED, "I will not"),
    ],
)
def test_ask__garbage_empty_and_refused_answers(chat_server, content, said):
    chat_server.always = (200, {}, content)
    with pytest.raises(ModelError, match=said):
        _chat(chat_server).ask("hello")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ([{"type": "text", "text": "a "}, {"type": "text", "text": "dog"}], "a dog"),
        ("<think>Is it red? No.</think>\n\ngreen", "green"),
        ('It is green.</think>{"attributes": []}', '{"attributes": []}'),
    ],
)
def test_ask__parts_are_joined_and_thoughts_left_out(chat_server, said, answer):
    chat_server.misbehave = [(200, {}, chat_answer(said))]
    assert _chat(chat_server).ask("hello", must_be_whole=True) == answer


@pytest.mark.parametrize("thought", ["<think>Is it", "", None])
def test_ask__tokens_spent_on_thinking__asked_again_with_more(chat_server, thought):
    chat_server.misbehave = [(200, {}, chat_answer(thought, finish_reason="length"))]
    endpoint = _chat(chat_server, max_tokens=24, thinking_tokens=1000)
    assert [endpoint.ask("hello"), endpoint.ask("hello")] == ["words 0"] * 2
    assert [body["max_tokens"] for body in chat_server.bodies] == [24, 1024, 1024]


@pytest.mark.parametrize(("room", "n_asked"), [(0, 1), (9, 2)])
def test_ask__thinks_without_end__says_what_to_do(chat_server, room, n_asked):
    chat_server.always = (200, {}, chat_answer("<think>Hm", finish_reason="length"))
    with pytest.raises(ModelError, match="still thinking.*thinking_tokens"):
        _chat(chat_server, thinking_tokens=room).ask("hello")
    assert len(chat_server.bodies) == n_asked


def test_ask__further_fields_are_sent(chat_server):
    further = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}
    _chat(chat_server, extra_body=further, reasoning_effort="low").ask("hello")
    assert chat_server.bodies[0].items() >= {**further, "reasoning_effort": "low"}.items()


def test_caption__one_request_a_image_in_order(chat_server):
    captioner = _chat(chat_server, EndpointCaptioner)
    assert captioner.caption(REDS) == [f"An image with red {red}." for red in (0, 100, 200)]
    assert len(chat_server.bodies) == 3
    assert _words(chat_server) == "Describe what this picture shows in one short sentence."
    image = chat_server.bodies[0]["messages"][0]["content"][1]
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_caption__about_a_class(chat_server):
    _chat(chat_server, EndpointCaptioner).caption(REDS[:1], about="apple")
    assert "meant to show an apple" in _words(chat_server)


def test_caption__words_are_cleaned_and_must_be_there(chat_server):
    chat_server.misbehave = [
        (200, {}, chat_answer('"A dog\n\n on grass."')),
        (200, {}, chat_answer("\x01\x02")),
    ]
    captioner = _chat(chat_server, EndpointCaptioner)
    assert captioner.caption(REDS[:1]) == ["A dog on grass."]
    with pytest.raises(ModelError, match="without words"):
        captioner.caption(REDS[:1])


def test_complete__short_sentences_after_the_beginning(chat_server):
    said = "A photo of an apple.\n1. The background is **red**.\n2. It is on a table.\n3. It is on a table."
    chat_server.always = (200, {}, chat_answer(said))
    captioner = _chat(chat_server, EndpointCaptioner)
    completed = captioner.complete(REDS, beginning="a photo of an apple.")
    assert completed == ["the background is red. it is on a table."] * 3
    assert 'begins with: "a photo of an apple."' in _words(chat_server)
    assert isinstance(captioner, CompletesCaptions)
    assert not isinstance(captioner, ScoresCaptions)
    assert captioner.complete([], beginning="a photo") == []


def test_complete__examples_are_sent_before_the_image(chat_server, tmp_path):
    REDS[0].save(tmp_path / "one.png")
    (tmp_path / "shots.csv").write_text("image,text\none.png,it is in the middle.\n")
    chat_server.always = (200, {}, chat_answer("It is red."))
    shown = _chat(chat_server, EndpointCaptioner, shots=tmp_path / "shots.csv")
    assert shown.complete(REDS[1:2], beginning="a photo.") == ["it is red."]
    content = chat_server.bodies[0]["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image_url"] * 2
    assert content[0]["text"] == "Caption of this image: it is in the middle."
    assert 'begins with: "a photo."' in content[2]["text"]
    assert shown.captioner_id != _chat(chat_server, EndpointCaptioner).captioner_id


def test_complete__image_without_an_answer_gets_none_but_not_all_of_them(chat_server):
    chat_server.misbehave = [(200, {}, chat_answer(text)) for text in ("It is red.", None)]
    captioner = _chat(chat_server, EndpointCaptioner, concurrency=1)
    assert captioner.complete(REDS[:2], beginning="a photo.") == ["it is red.", ""]
    for always, said in (
        ((200, {}, chat_answer("")), "gave no answer"),
        ((404, {}, b"no such model"), "no such model"),
    ):
        chat_server.always = always
        with pytest.raises(ModelError, match=said):
            captioner.complete(REDS[:2], beginning="a photo.")


def test_answer__question_is_sent(chat_server):
    answers = _chat(chat_server, EndpointAnswerer).answer(REDS, "How red is it?")
    assert answers == ["red 0", "red 100", "red 200"]
    assert _words(chat_server).startswith("How red is it? Answer with")


def test_generate__json_is_asked_for_in_words_too(chat_server):
    generator = _chat(chat_server, EndpointTextGenerator)
    found = generator.generate("Name things.", schema={"type": "object"}, seed=3)
    assert found == '{"attributes": ["colour", "size"]}'
    asked = chat_server.bodies[0]
    assert asked["messages"][0]["content"].endswith('fit this schema:\n{"type": "object"}')
    assert asked["seed"] == 3


def test_generate__cut_off_json_is_an_error_and_cut_off_text_is_text(chat_server):
    chat_server.always = (200, {}, chat_answer('{"a": ', finish_reason="length"))
    generator = _chat(chat_server, EndpointTextGenerator)
    assert generator.generate("Say something.") == '{"a":'
    with pytest.raises(ModelError, match=r"cut off.*max_tokens"):
        generator.generate("Name things.", schema={"type": "object"})


def test_data_url__images_are_made_smaller_never_larger():
    small = Image.new("RGB", (20, 10), "red")
    assert len(data_url(Image.new("RGB", (4000, 3000), "red"), side=64)) < 3000
    assert data_url(small, side=64) == data_url(small, side=512)
    assert data_url(Image.new("RGBA", (20, 10)), side=64).startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("part", "options"),
    [
        *(
            (ChatEndpoint, options)
            for options in (
                {"model": "b"},
                {"url": "https://other/v1"},
                {"temperature": 1},
                {"max_tokens": 9},
                {"reasoning_effort": "low"},
                {"extra_body": {"top_k": 1}},
            )
        ),
        (EndpointCaptioner, {"image_side": 100}),
        (EndpointAnswerer, {"image_side": 100}),
        (EndpointTextGenerator, {"temperature": 0.5}),
    ],
)
def test_identity__everything_that_decides_the_words(chat_server, part, options):
    plain, changed = _chat(chat_server, part), _chat(chat_server, part, **options)
    assert plain.identity("kind").startswith("kind:127.0.0.1/v1:tiny@")
    assert plain.identity("kind") != changed.identity("kind")


def test_captioner_id__names_the_prompt(chat_server):
    plain = _chat(chat_server, EndpointCaptioner).captioner_id
    assert _chat(chat_server, EndpointCaptioner, prompt="What is here?").captioner_id != plain
