import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import CompletesCaptions, ScoresCaptions
from weakspot.models.endpoint.text_models import (
    EndpointAnswerer,
    EndpointCaptioner,
    EndpointTextGenerator,
    data_url,
)

ROLES = ("captioners", "question_answerers", "text_generators")
REDS = [Image.new("RGB", (40, 30), (red, 0, 0)) for red in (0, 100, 200)]


def _options(server):
    return {"url": server.url, "model": "tiny", "n_retries": 1, "first_wait_seconds": 0.0}


def test_caption__one_request_a_image_in_order(chat_server):
    captioner = EndpointCaptioner(**_options(chat_server))
    assert captioner.caption(REDS) == [
        "An image with red 0.",
        "An image with red 100.",
        "An image with red 200.",
    ]
    assert len(chat_server.bodies) == 3
    words, image = chat_server.bodies[0]["messages"][0]["content"]
    assert words == {
        "type": "text",
        "text": "Describe what this picture shows in one short sentence.",
    }
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_caption__about_a_class(chat_server):
    EndpointCaptioner(**_options(chat_server)).caption(REDS[:1], about="apple")
    assert "meant to show an apple" in chat_server.bodies[0]["messages"][0]["content"][0]["text"]


def test_complete__short_sentences_after_the_beginning(chat_server, tiny):
    said = "A photo of an apple.\n1. The background is **red**.\n2. It is on a table.\n3. It is on a table."
    chat_server.always = (200, {}, tiny.answer_bytes(said))
    captioner = EndpointCaptioner(**_options(chat_server))
    assert (
        captioner.complete(REDS, beginning="a photo of an apple.")
        == ["the background is red. it is on a table."] * 3
    )
    assert (
        'begins with: "a photo of an apple."'
        in chat_server.bodies[0]["messages"][0]["content"][0]["text"]
    )
    assert isinstance(captioner, CompletesCaptions)
    assert not isinstance(captioner, ScoresCaptions)
    assert captioner.complete([], beginning="a photo") == []


def test_complete__examples_are_sent_before_the_image(chat_server, tiny, tmp_path):
    REDS[0].save(tmp_path / "one.png")
    (tmp_path / "shots.csv").write_text("image,text\none.png,it is in the middle.\n")
    chat_server.always = (200, {}, tiny.answer_bytes("It is red."))
    plain = EndpointCaptioner(**_options(chat_server))
    shown = EndpointCaptioner(**_options(chat_server), shots=tmp_path / "shots.csv")
    assert shown.complete(REDS[1:2], beginning="a photo.") == ["it is red."]
    content = chat_server.bodies[0]["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image_url"] * 2
    assert content[0]["text"] == "Caption of this image: it is in the middle."
    assert 'begins with: "a photo."' in content[2]["text"]
    assert shown.captioner_id != plain.captioner_id


def test_complete__image_without_an_answer_gets_none_but_not_all_of_them(chat_server, tiny):
    chat_server.misbehave = [
        (200, {}, tiny.answer_bytes("It is red.")),
        (200, {}, tiny.answer_bytes(None)),
    ]
    captioner = EndpointCaptioner(**_options(chat_server), concurrency=1)
    assert captioner.complete(REDS[:2], beginning="a photo.") == ["it is red.", ""]
    chat_server.always = (200, {}, tiny.answer_bytes(""))
    with pytest.raises(ModelError, match="gave no answer"):
        captioner.complete(REDS[:2], beginning="a photo.")
    chat_server.always = (404, {}, b"no such model")
    with pytest.raises(ModelError, match="no such model"):
        captioner.complete(REDS[:2], beginning="a photo.")


def test_answer__question_is_sent(chat_server):
    assert EndpointAnswerer(**_options(chat_server)).answer(REDS, "How red is it?") == [
        "red 0",
        "red 100",
        "red 200",
    ]
    assert chat_server.bodies[0]["messages"][0]["content"][0]["text"].startswith(
        "How red is it? Answer with"
    )


def test_caption__words_are_cleaned_and_must_be_there(chat_server, tiny):
    chat_server.misbehave = [
        (200, {}, tiny.answer_bytes('"A dog\n\n on grass."')),
        (200, {}, tiny.answer_bytes("\x01\x02")),
    ]
    captioner = EndpointCaptioner(**_options(chat_server))
    assert captioner.caption(REDS[:1]) == ["A dog on grass."]
    with pytest.raises(ModelError, match="without words"):
        captioner.caption(REDS[:1])


def test_caption__endpoint_that_is_down_is_not_asked_for_every_image(chat_server):
    chat_server.always = (503, {}, b"")
    captioner = EndpointCaptioner(**_options(chat_server), concurrency=1)
    with pytest.raises(UnavailableError, match="status 503"):
        captioner.caption(REDS * 20)
    assert len(chat_server.bodies) <= 4


def test_generate__json_is_asked_for_in_words_too(chat_server):
    generator = EndpointTextGenerator(**_options(chat_server))
    assert (
        generator.generate("Name things.", schema={"type": "object"}, seed=3)
        == '{"attributes": ["colour", "size"]}'
    )
    assert chat_server.bodies[0]["messages"][0]["content"].endswith(
        'fit this schema:\n{"type": "object"}'
    )
    assert chat_server.bodies[0]["seed"] == 3


def test_generate__cut_off_json_is_an_error_and_cut_off_text_is_text(chat_server, tiny):
    chat_server.always = (200, {}, tiny.answer_bytes('{"a": ', finish_reason="length"))
    generator = EndpointTextGenerator(**_options(chat_server))
    assert generator.generate("Say something.") == '{"a":'
    with pytest.raises(ModelError, match="cut off"):
        generator.generate("Name things.", schema={"type": "object"})


def test_data_url__images_are_made_smaller_never_larger():
    assert len(data_url(Image.new("RGB", (4000, 3000), "red"), side=64)) < 3000
    assert data_url(Image.new("RGB", (20, 10), "red"), side=64) == data_url(
        Image.new("RGB", (20, 10), "red"), side=512
    )
    assert data_url(Image.new("RGBA", (20, 10)), side=64).startswith("data:image/jpeg;base64,")


def test_ids__what_is_sent_decides(chat_server):
    options = _options(chat_server)
    ids = {
        EndpointCaptioner(**options).captioner_id,
        EndpointCaptioner(**options, image_side=100).captioner_id,
        EndpointCaptioner(**options, prompt="What is here?").captioner_id,
        EndpointAnswerer(**options).answerer_id,
        EndpointTextGenerator(**options).generator_id,
    }
    assert len(ids) == 5


def test_parts__refuse_options_at_once():
    with pytest.raises(ConfigError, match="image_side"):
        EndpointCaptioner(url="https://host/v1", model="tiny", image_side=0)
    with pytest.raises(ConfigError, match="no http or https address"):
        EndpointTextGenerator(url="host", model="tiny")
    with pytest.raises(ConfigError, match="tokens: there is no such option"):
        EndpointAnswerer(url="https://host/v1", model="tiny", tokens=3)


def test_close__can_be_used_again(chat_server):
    for part in (
        EndpointCaptioner(**_options(chat_server)),
        EndpointAnswerer(**_options(chat_server)),
    ):
        part.close()
    generator = EndpointTextGenerator(**_options(chat_server))
    generator.generate("a")
    generator.close()
    assert generator.generate("a") == "words 0"
