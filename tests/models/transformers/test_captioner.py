import shutil
import socket

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import CompletesCaptions, ScoresCaptions
from weakspot.models.transformers.image_to_text import TransformersCaptioner
from weakspot.testing import material

IMAGES = material.images()[:4]
BEGINNING = "a photo of a disc"
CHATS = ("idefics3", "llava", "qwen_vl", "qwen3_vl", "gemma3", "smolvlm")
KINDS = ("blip", "blip2", "git", "encoder_decoder", "florence2", *CHATS)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any attempt to reach a network fails the test."""

    def refuse(*arguments, **options):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def _captioner(folder, **options):
    return TransformersCaptioner(
        model=folder, device="cpu", **{"max_new_tokens": 8, "batch_size": 3, **options}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_caption__depends_on_the_image_not_on_the_batch(saved, kind):
    captioner, images = _captioner(saved(kind)), material.images()
    together = captioner.caption(images)
    assert together == [captioner.caption([image])[0] for image in images]
    assert len(set(together)) > 1
    assert all(text and text == " ".join(text.split()) for text in together)


@pytest.mark.parametrize("kind", ["blip", "blip2", "git"])
def test_caption__about_a_class_goes_on_from_its_name(saved, kind):
    captioner = _captioner(saved(kind))
    texts = captioner.caption(material.images(), about="red_disc")
    assert all(text.startswith("a photo of a red disc") for text in texts)
    assert len(set(texts)) > 1


def test_caption__about_a_class_changes_what_a_chat_model_is_asked(saved):
    captioner = _captioner(saved("idefics3"))
    assert captioner.caption(material.images(), about="disc") != captioner.caption(
        material.images()
    )


def test_caption__own_prompt_is_used_once_and_changes_the_id(saved):
    plain, asked = (
        _captioner(saved("blip")),
        _captioner(saved("blip"), prompt="the colour of {about}?"),
    )
    texts = asked.caption(material.images(), about="disc")
    assert all(
        text.startswith("the colour of a disc ?") and text.count("the colour of") == 1
        for text in texts
    )
    assert plain.captioner_id != asked.captioner_id


def test_caption__at_most_so_many_tokens(saved):
    assert all(
        len(text.split()) <= 2
        for text in _captioner(saved("encoder_decoder"), max_new_tokens=2).caption(
            material.images()
        )
    )


def test_caption__odd_images(saved):
    images = [Image.new("L", (3, 200), 9), Image.new("RGBA", (1, 1)), Image.new("P", (500, 20))]
    assert len(_captioner(saved("blip")).caption(images)) == 3


def test_captioner_id__is_of_the_weights(saved, tiny, tmp_path):
    other = tiny.save_blip(tmp_path / "blip", seed=2)
    assert _captioner(saved("blip")).captioner_id != _captioner(other).captioner_id
    assert _captioner(saved("blip")).captioner_id.startswith("transformers-captioner:")


def test_image_side__is_what_the_processor_resizes_to(saved):
    assert _captioner(saved("blip")).image_side == 16
    assert _captioner(saved("idefics3")).image_side == 32


def test_caption__model_that_does_not_caption(saved):
    with pytest.raises(ModelError, match="cannot load the model"):
        _captioner(saved("vilt")).caption(material.images())


def test_caption__no_model_there(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match="cannot load the model"):
        _captioner(tmp_path).caption(material.images())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UnavailableError, match="HF_HUB_OFFLINE"):
        _captioner("nobody/no-such-model").caption(material.images())


def test_caption__model_that_runs_out_of_positions_is_no_traceback(saved):
    with pytest.raises(ModelError, match="The model cannot answer"):
        _captioner(saved("blip"), max_new_tokens=400, prompt=" ".join(["red"] * 60)).caption(
            material.images()
        )


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 0}, {"max_new_tokens": 1.5}, {"max_completion_tokens": 0}, {"model": " "}],
)
def test_captioner__refuses_options_at_once(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        TransformersCaptioner(**{"model": "some/model", **options})


@pytest.mark.parametrize("kind", KINDS)
def test_complete__short_sentences_that_depend_on_the_image_not_on_the_batch(saved, kind):
    captioner, images = _captioner(saved(kind), max_completion_tokens=6), IMAGES
    together = captioner.complete(images, beginning=BEGINNING)
    assert together == [captioner.complete([image], beginning=BEGINNING)[0] for image in images]
    assert len(set(together)) > 1
    for text in together:
        assert BEGINNING not in text
        assert "\n" not in text
        assert not text or text.endswith(".")
        assert len(text.split(". ")) <= 7
    assert captioner.complete([], beginning=BEGINNING) == []


@pytest.mark.parametrize("kind", ["blip", "blip2", "git", "encoder_decoder"])
def test_complete__models_that_only_go_on_are_led_sentence_by_sentence(saved, kind):
    texts = _captioner(saved(kind), max_completion_tokens=4).complete(IMAGES, beginning=BEGINNING)
    openings = {
        " ".join(sentence.split()[:2])
        for text in texts
        for sentence in text.split(". ")
        if sentence
    }
    assert openings <= {"it is", "there is", "the background", "the light"}
    assert any(len(text.split(". ")) > 1 for text in texts)


@pytest.mark.parametrize("kind", ["idefics3", "llava"])
def test_complete__chat_model_goes_on_from_what_it_is_made_to_say(saved, kind):
    captioner = _captioner(saved(kind), max_completion_tokens=12)
    first, second = (
        captioner.complete(IMAGES, beginning=text) for text in (BEGINNING, "a photo of a star")
    )
    assert first != second


@pytest.mark.parametrize("kind", ["idefics3", "qwen3_vl"])
def test_complete__chat_models_see_examples_first(saved, kind, tmp_path):
    rows = ["image,text"]
    for number, image in enumerate(material.images()[:3]):
        image.save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,it is number {number}.")
    (tmp_path / "shots.csv").write_text("\n".join(rows))
    plain = _captioner(saved(kind), max_completion_tokens=8)
    shown = _captioner(saved(kind), max_completion_tokens=8, shots=tmp_path / "shots.csv")
    assert shown.captioner_id != plain.captioner_id
    said = shown.complete(IMAGES, beginning=BEGINNING)
    assert said == [shown.complete([image], beginning=BEGINNING)[0] for image in IMAGES]
    assert said != plain.complete(IMAGES, beginning=BEGINNING)
    assert shown.caption(IMAGES) == plain.caption(IMAGES)


def test_complete__tokens_are_limited_and_part_of_the_id(saved):
    short, usual = (_captioner(saved("blip"), max_completion_tokens=number) for number in (1, 96))
    assert all(len(text.split()) <= 4 * 4 for text in short.complete(IMAGES, beginning=BEGINNING))
    assert short.captioner_id != usual.captioner_id


@pytest.mark.parametrize("kind", KINDS)
def test_log_likelihoods__of_every_image_and_caption_whatever_the_batch(saved, kind):
    captioner, images = _captioner(saved(kind)), IMAGES
    captions = ["a photo of a disc", "it is red. it is dark. it is small on the street", "red"]
    found = captioner.log_likelihoods(images, captions)
    assert found.shape == (len(images), 3)
    assert np.isfinite(found).all()
    assert (found < 0).all()
    assert (found[:, 1] < found[:, 2]).all()
    assert np.ptp(found, axis=0).min() > 0
    single = [
        [captioner.log_likelihoods([image], [caption])[0, 0] for caption in captions]
        for image in images[:3]
    ]
    np.testing.assert_allclose(found[:3], single, rtol=1e-3, atol=1e-3)


def test_log_likelihoods__sum_over_tokens_and_nothing_for_no_words(saved):
    captioner, images = _captioner(saved("blip")), IMAGES
    whole, start = captioner.log_likelihoods(images, ["it is red", "it is"]).T
    words = [word for word in captioner.tokenizer.get_vocab() if word[0] not in "[<"]
    every = captioner.log_likelihoods(images, [f"it is {word}" for word in words])
    assert (np.exp(every - start[:, None]).sum(axis=1) <= 1 + 1e-4).all()
    assert (whole < start).all()
    assert (captioner.log_likelihoods(images, ["", "  "]) == 0).all()
    assert captioner.log_likelihoods([], ["red"]).shape == (0, 1)
    assert captioner.log_likelihoods(images, []).shape == (len(images), 0)


@pytest.mark.parametrize("kind", ["blip", "git", "encoder_decoder", "blip2"])
def test_log_likelihoods__greedy_words_are_the_likeliest(saved, kind):
    captioner, image = _captioner(saved(kind), max_new_tokens=1), IMAGES[0]
    said = captioner.caption([image])[0]
    words = [word for word in captioner.tokenizer.get_vocab() if word[0] not in "[<"]
    found = captioner.log_likelihoods([image], words)[0]
    assert words[int(found.argmax())] == said


def test_log_likelihoods__of_a_language_model_of_two_parts(saved):
    captioner = _captioner(saved("blip2", language="t5"), max_completion_tokens=4)
    captions = ["it is red", "it is", "disc"]
    found = captioner.log_likelihoods(IMAGES, captions)
    assert (found < 0).all()
    assert (found[:, 0] < found[:, 1]).all()
    assert np.ptp(found, axis=0).min() > 0
    np.testing.assert_allclose(
        captioner.log_likelihoods(IMAGES[1:2], captions[:1])[0, 0], found[1, 0], rtol=1e-3
    )
    assert any(captioner.complete(IMAGES, beginning=BEGINNING))


def test_log_likelihoods__caption_that_is_too_long_is_no_traceback(saved):
    with pytest.raises(ModelError, match="The model cannot answer"):
        _captioner(saved("blip")).log_likelihoods(IMAGES[:1], [" ".join(["red"] * 100)])


def test_captioner__has_the_further_roles():
    captioner = TransformersCaptioner(model="some/model")
    assert isinstance(captioner, CompletesCaptions)
    assert isinstance(captioner, ScoresCaptions)


def test_caption__task_tokens_are_no_words(saved):
    captioner = _captioner(saved("florence2"))
    plain = captioner.caption(IMAGES)
    assert plain == captioner.caption(IMAGES, about="disc")
    asked = _captioner(saved("florence2"), prompt="<DETAILED_CAPTION>").caption(IMAGES)
    assert asked != plain
    assert not any("<" in text and "CAPTION" in text for text in [*plain, *asked])
    assert captioner.complete(IMAGES, beginning=BEGINNING) != ["", "", "", ""]


def test_caption__library_that_a_processor_needs_is_named(saved, tmp_path, monkeypatch):
    from transformers import SmolVLMVideoProcessor
    from transformers.models.smolvlm import processing_smolvlm

    folder = shutil.copytree(saved("smolvlm"), tmp_path / "smolvlm")
    for path in folder.glob("*.json"):
        path.write_text(path.read_text().replace("Idefics3Processor", "SmolVLMProcessor"))
    SmolVLMVideoProcessor(size={"longest_edge": 32}).save_pretrained(folder)
    monkeypatch.setattr(processing_smolvlm, "num2words", None)
    with pytest.raises(ModelError, match="pip install num2words"):
        _captioner(folder).caption(IMAGES)


def test_image_side__bound_on_pixels_is_an_area(saved):
    assert _captioner(saved("qwen_vl")).image_side == 32


def test_caption__thinking_is_switched_off(saved):
    speaker = _captioner(saved("qwen_vl"))
    told = "{% if enable_thinking is defined and not enable_thinking %}quiet{% endif %}"
    speaker._processor.chat_template += told
    asked = speaker.inputs(IMAGES[:1], "what?")["input_ids"][0]
    assert speaker.tokenizer.decode(asked).endswith("quiet")


def test_caption__thoughts_are_left_out(saved, monkeypatch):
    captioner = _captioner(saved("qwen_vl"))
    said = lambda images, speak: ["<think>a disc?</think> a disc"] * len(images)  # noqa: E731
    monkeypatch.setattr(captioner, "_in_batches", said)
    assert captioner.caption(IMAGES[:2]) == ["a disc", "a disc"]
