import socket

import pytest
from PIL import Image

from weakspot.backends.transformers_captioner import TransformersCaptioner
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.testing.checks import material

KINDS = ("blip", "blip2", "git", "encoder_decoder", "idefics3")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any attempt to reach a network fails the test."""

    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def _captioner(folder, **options):
    return TransformersCaptioner(model=folder, device="cpu", **{"max_new_tokens": 8, "batch_size": 3, **options})


@pytest.mark.parametrize("kind", KINDS)
def test_caption__depends_on_the_picture_not_on_the_batch(saved, kind):
    captioner, pictures = _captioner(saved(kind)), material.pictures()
    together = captioner.caption(pictures)
    assert together == [captioner.caption([picture])[0] for picture in pictures]
    assert len(set(together)) > 1
    assert all(text and text == " ".join(text.split()) for text in together)


@pytest.mark.parametrize("kind", ["blip", "blip2", "git"])
def test_caption__about_a_class_goes_on_from_its_name(saved, kind):
    captioner = _captioner(saved(kind))
    texts = captioner.caption(material.pictures(), about="red_disc")
    assert all(text.startswith("a photo of a red disc") for text in texts)
    assert len(set(texts)) > 1


def test_caption__about_a_class_changes_what_a_chat_model_is_asked(saved):
    captioner = _captioner(saved("idefics3"))
    assert captioner.caption(material.pictures(), about="disc") != captioner.caption(material.pictures())


def test_caption__own_prompt_is_used_once_and_changes_the_id(saved):
    plain, asked = _captioner(saved("blip")), _captioner(saved("blip"), prompt="the colour of {about}?")
    texts = asked.caption(material.pictures(), about="disc")
    assert all(text.startswith("the colour of a disc ?") and text.count("the colour of") == 1 for text in texts)
    assert plain.captioner_id != asked.captioner_id


def test_caption__at_most_so_many_tokens(saved):
    assert all(
        len(text.split()) <= 2 for text in _captioner(saved("encoder_decoder"), max_new_tokens=2).caption(material.pictures())
    )


def test_caption__odd_pictures(saved):
    pictures = [Image.new("L", (3, 200), 9), Image.new("RGBA", (1, 1)), Image.new("P", (500, 20))]
    assert len(_captioner(saved("blip")).caption(pictures)) == 3


def test_captioner_id__is_of_the_weights(saved, tiny, tmp_path):
    other = tiny.save_blip(tmp_path / "blip", seed=2)
    assert _captioner(saved("blip")).captioner_id != _captioner(other).captioner_id
    assert _captioner(saved("blip")).captioner_id.startswith("transformers-captioner:")


def test_picture_side__is_what_the_processor_resizes_to(saved):
    assert _captioner(saved("blip")).picture_side == 16
    assert _captioner(saved("idefics3")).picture_side == 32


def test_caption__model_that_does_not_caption(saved):
    with pytest.raises(ModelError, match="cannot load the model"):
        _captioner(saved("vilt")).caption(material.pictures())


def test_caption__no_model_there(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match="cannot load the model"):
        _captioner(tmp_path).caption(material.pictures())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UnavailableError, match="HF_HUB_OFFLINE"):
        _captioner("nobody/no-such-model").caption(material.pictures())


def test_caption__model_that_runs_out_of_positions_is_no_traceback(saved):
    with pytest.raises(ModelError, match="The model cannot answer"):
        _captioner(saved("blip"), max_new_tokens=400, prompt=" ".join(["red"] * 60)).caption(material.pictures())


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"max_new_tokens": 1.5}, {"model": " "}])
def test_captioner__refuses_options_at_once(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        TransformersCaptioner(**{"model": "some/model", **options})
