import shutil

import numpy as np
import pytest

from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.generated import PASS
from weakspot.core.registry import part_class
from weakspot.core.roles import DecodesEmbeddings
from weakspot.models.diffusers.generators import UnclipGenerator
from weakspot.models.transformers.images import TransformersEmbedder
from weakspot.testing.checks import check_image_generator

CAPTIONS = ["a photo of a cat", "a photo of a dog", "a green disc"]
SEEDS = [3, 4, 5]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folders(saved):
    kinds = "clip unclip_from_images unclip_from_words kandinsky kandinsky_prior stable_diffusion"
    return {kind: saved(kind) for kind in kinds.split()}


@pytest.fixture(params=["from words", "from images", "kandinsky"])
def build(request, folders):
    options = {
        "from words": {"model": folders["unclip_from_words"]},
        "from images": {"model": folders["unclip_from_images"], "text_encoder": folders["clip"]},
        "kandinsky": {
            "model": folders["kandinsky"],
            "text_encoder": folders["kandinsky_prior"],
            "width": 16,
            "height": 16,
        },
    }[request.param]
    return lambda **changes: UnclipGenerator(**({"device": "cpu", "steps": 2} | options | changes))


def _bytes(drawn):
    return [one.image.tobytes() for one in drawn]


def test_unclip__keeps_the_contract_of_image_generators(build):
    assert part_class("image_generators", "unclip") is UnclipGenerator
    check_image_generator(build)
    assert isinstance(build(), DecodesEmbeddings)


def test_decode__one_image_a_embedding_whatever_is_decoded_with_it(build):
    part = build()
    embeddings = part.embed_texts(CAPTIONS)
    drawn = part.decode(embeddings, prompts=CAPTIONS, seeds=SEEDS)
    assert [(one.prompt, one.seed, one.verdicts) for one in drawn] == [
        (caption, seed, {"not-finite": PASS}) for caption, seed in zip(CAPTIONS, SEEDS, strict=True)
    ]
    assert (
        _bytes(build().decode(embeddings[2:], prompts=CAPTIONS[2:], seeds=SEEDS[2:]))
        == _bytes(drawn)[2:]
    )
    assert (
        _bytes(part.decode(embeddings[::-1], prompts=CAPTIONS[::-1], seeds=SEEDS[::-1]))
        == _bytes(drawn)[::-1]
    )


def test_decode__the_embedding_alone_changes_the_image_and_its_length_does_not(build):
    part = build()
    first, second = part.embed_texts(CAPTIONS[:2])
    again = part.decode(
        np.stack([first, second, 7 * first]), prompts=[CAPTIONS[0]] * 3, seeds=[1] * 3
    )
    pixels = _bytes(again)
    assert pixels[0] != pixels[1]
    assert pixels[0] == pixels[2]


def test_generate__decodes_the_embeddings_of_the_prompts(build):
    part = build()
    expected = part.decode(part.embed_texts(CAPTIONS), prompts=CAPTIONS, seeds=SEEDS)
    assert _bytes(part.generate(CAPTIONS, seeds=SEEDS)) == _bytes(expected)


def test_embed_texts__gives_unit_embeddings_of_the_space(build):
    embeddings = build().embed_texts(CAPTIONS)
    assert embeddings.shape == (3, build().dimension) == (3, 16)
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1.0, atol=1e-5)
    assert build().embed_texts([]).shape == (0, 16)


def test_embed_texts__are_those_of_the_embedder_with_the_same_weights(folders):
    part = UnclipGenerator(
        model=folders["unclip_from_images"], text_encoder=folders["clip"], device="cpu"
    )
    expected = TransformersEmbedder(model=folders["clip"], device="cpu").embed_texts(CAPTIONS)
    assert np.allclose(part.embed_texts(CAPTIONS), expected, atol=1e-5)


def test_embedding_length__is_that_of_the_training_embeddings(folders):
    part = UnclipGenerator(model=folders["unclip_from_words"], device="cpu")
    assert part._length == pytest.approx(np.sqrt(16 * (0.1**2 + 0.5**2)), rel=1e-5)
    assert (
        UnclipGenerator(
            model=folders["unclip_from_words"], device="cpu", embedding_length=3.0
        )._length
        == 3.0
    )
    kandinsky = UnclipGenerator(
        model=folders["kandinsky"], text_encoder=folders["kandinsky_prior"], device="cpu"
    )
    assert kandinsky._length == pytest.approx(np.linalg.norm(kandinsky._nothing))
    assert kandinsky._length > 0


def test_kandinsky__without_an_image_encoder_needs_the_length(folders, tmp_path):
    prior = shutil.copytree(folders["kandinsky_prior"], tmp_path / "prior")
    shutil.rmtree(prior / "image_encoder")
    options = {
        "model": folders["kandinsky"],
        "text_encoder": prior,
        "device": "cpu",
        "steps": 2,
        "width": 16,
        "height": 16,
    }
    with pytest.raises(ConfigError, match="embedding_length"):
        UnclipGenerator(**options).generate(["a cat"], seeds=[1])
    assert UnclipGenerator(**options, embedding_length=2.0).generate(["a cat"], seeds=[1])[
        0
    ].verdicts == {"not-finite": PASS}


def test_generator_id__names_weights_space_and_settings(build):
    first = build().generator_id
    assert first == build().generator_id
    others = {
        build(**change).generator_id
        for change in ({"steps": 3}, {"noise_level": 5}, {"embedding_length": 2.0})
    }
    assert len(others | {first}) == 4
    assert build().space_id.startswith("clip-space:")


def test_noise_level__changes_images_of_stable_unclip(folders):
    options = {"model": folders["unclip_from_words"], "device": "cpu", "steps": 2}
    plain, noisy = (
        UnclipGenerator(**options, noise_level=level).generate(["a cat"], seeds=[1])
        for level in (0, 500)
    )
    assert _bytes(plain) != _bytes(noisy)


@pytest.mark.parametrize(
    "embeddings",
    [np.ones((1, 5)), np.zeros((1, 16)), np.full((1, 16), np.nan), np.ones(16)[None, None]],
)
def test_decode__refuses_embeddings_that_are_not_of_the_space(folders, embeddings):
    part = UnclipGenerator(model=folders["unclip_from_words"], device="cpu", steps=2)
    with pytest.raises(DataError):
        part.decode(embeddings, prompts=["a"], seeds=[1])


def test_decode__needs_as_many_seeds_as_embeddings(folders):
    part = UnclipGenerator(model=folders["unclip_from_words"], device="cpu", steps=2)
    with pytest.raises(ConfigError, match="one seed"):
        part.decode(np.ones((2, 16)), prompts=["a", "b"], seeds=[1])


def test_embed_texts__without_a_text_encoder_says_what_to_do(folders):
    with pytest.raises(ConfigError, match="Set text_encoder"):
        UnclipGenerator(model=folders["unclip_from_images"], device="cpu").generate(
            ["a cat"], seeds=[1]
        )


def test_embed_texts__a_text_encoder_without_projection_is_refused(folders):
    wrong = folders["stable_diffusion"] / "text_encoder"
    with pytest.raises(ModelError):
        UnclipGenerator(
            model=folders["unclip_from_images"], text_encoder=wrong, device="cpu"
        ).embed_texts(["a cat"])


def test_unclip__other_pipelines_decode_nothing(folders):
    with pytest.raises(ModelError, match="decodes no embeddings"):
        UnclipGenerator(model=folders["stable_diffusion"], device="cpu").decode(
            np.ones((1, 16)), prompts=["a"], seeds=[1]
        )
