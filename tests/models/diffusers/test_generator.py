import json
import random
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from weakspot.core.errors import (
    ConfigError,
    MissingExtraError,
    ModelError,
    RefusedPromptError,
    UnavailableError,
)
from weakspot.core.generated import PASS
from weakspot.models.diffusers.generators import DiffusersGenerator
from weakspot.models.diffusers.pipeline import GeneratedPixels

PROMPTS = [
    "a photo of a red disc",
    "a photo of two green stars in the dark",
    "a dog",
    "a cat on grass",
    "a bus",
]
SEEDS = [3, 4, 5, 6, 7]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def sd(saved):
    """Return the folder of a tiny pipeline, of Stable Diffusion unless another kind is named."""
    return lambda kind="stable_diffusion", **options: saved(kind, **options)


def _generator(model, **options):
    return DiffusersGenerator(**({"model": model, "device": "cpu", "steps": 2} | options))


def _largest_change(one, other):
    return np.abs(np.asarray(one.image, dtype=int) - np.asarray(other.image, dtype=int)).max()


def _bytes(drawn):
    return [one.image.tobytes() for one in drawn]


@pytest.mark.parametrize("kind", ["stable_diffusion", "stable_diffusion_xl"])
def test_generate__a_image_does_not_depend_on_what_is_asked_for_with_it(sd, kind):
    part = _generator(sd(kind))
    whole = _bytes(part.generate(PROMPTS, seeds=SEEDS))
    assert len(set(whole)) == len(PROMPTS)
    assert _bytes(part.generate(PROMPTS[::-1], seeds=SEEDS[::-1])) == whole[::-1]
    assert _bytes(part.generate(PROMPTS[1:2], seeds=SEEDS[1:2])) == whole[1:2]


@pytest.mark.parametrize("batch_size", [2, 4])
@pytest.mark.parametrize("kind", ["stable_diffusion", "stable_diffusion_xl"])
def test_generate__in_batches_the_place_changes_no_more_than_a_rounding(sd, kind, batch_size):
    part = _generator(sd(kind), batch_size=batch_size)
    whole = part.generate(PROMPTS, seeds=SEEDS)
    assert len(set(_bytes(whole))) == len(PROMPTS)
    for again in (
        part.generate(PROMPTS[::-1], seeds=SEEDS[::-1])[::-1],
        [part.generate([PROMPTS[0]], seeds=[SEEDS[0]])[0]],
    ):
        for one, other in zip(again, whole, strict=False):
            assert _largest_change(one, other) <= 1


def test_generate__is_what_the_library_itself_draws(sd):
    from diffusers import StableDiffusionPipeline

    pipeline = StableDiffusionPipeline.from_pretrained(sd(), local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    expected = pipeline(
        PROMPTS[0], num_inference_steps=2, generator=torch.Generator("cpu").manual_seed(3)
    ).images[0]
    assert _bytes(_generator(sd(), batch_size=1).generate(PROMPTS[:1], seeds=[3])) == [
        expected.tobytes()
    ]


def test_generate__prompt_seed_and_settings_change_pixels(sd):
    first = _bytes(_generator(sd()).generate(["a dog"], seeds=[1]))
    assert _bytes(_generator(sd()).generate(["a cat"], seeds=[1])) != first
    assert _bytes(_generator(sd()).generate(["a dog"], seeds=[2])) != first
    assert _bytes(_generator(sd(), steps=3).generate(["a dog"], seeds=[1])) != first
    assert (
        _bytes(_generator(sd(), negative_prompt="blurry").generate(["a dog"], seeds=[1])) != first
    )


def test_generate__width_and_height_are_those_that_were_asked_for(sd):
    assert _generator(sd()).generate(["a dog"], seeds=[1])[0].image.size == (16, 16)
    assert _generator(sd(), width=32, height=24).generate(["a dog"], seeds=[1])[0].image.size == (
        32,
        24,
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [("stable_diffusion_xl", {}), ("stable_diffusion", {"scheduler": "LCMScheduler"})],
)
def test_generate__turbo_and_lcm_kinds_draw_without_guidance(sd, kind, options):
    part = _generator(sd(kind, **options), steps=1, guidance_scale=0.0)
    drawn = part.generate(PROMPTS[:3], seeds=SEEDS[:3])
    assert len(set(_bytes(drawn))) == 3
    assert _bytes(part.generate(PROMPTS[2:3], seeds=SEEDS[2:3])) == _bytes(drawn)[2:]


def test_generate__no_random_state_of_torch_is_read_or_moved(sd):
    part = _generator(sd("stable_diffusion_xl"))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        random.seed(seed)
        before = torch.get_rng_state(), random.getstate()
        found.append(_bytes(part.generate(PROMPTS[:2], seeds=SEEDS[:2])))
        assert torch.equal(before[0], torch.get_rng_state())
        assert before[1] == random.getstate()
    assert found[0] == found[1]


def test_generate__takes_any_whole_number_as_seed(sd):
    drawn = _generator(sd()).generate(["a dog"] * 3, seeds=[0, -5, 2**70])
    assert [one.seed for one in drawn] == [0, -5, 2**70]


def test_generate__flux_draws_and_its_t5_reads_longer_prompts_than_clip(sd):
    part = _generator(sd("flux"), width=16, height=16)
    prompts = [*PROMPTS[:2], "the cat is on the grass and " * 3]
    whole = part.generate(prompts, seeds=SEEDS[:3])
    assert [one.image.size for one in whole] == [(16, 16)] * 3
    assert _bytes(part.generate(prompts[2:], seeds=SEEDS[2:3])) == _bytes(whole)[2:]


@pytest.mark.parametrize(
    ("kind", "expected"), [("flux", torch.bfloat16), ("stable_diffusion", torch.float16)]
)
def test_dtype__auto_on_a_graphics_card_is_what_the_kind_of_network_needs(sd, kind, expected):
    part = _generator(sd(kind))
    vars(part)["place"] = torch.device("cuda")
    assert part.numbers is expected


@pytest.mark.parametrize(("parts", "expected"), [({}, [4, 4]), ({"noise_sampler": None}, [1] * 5)])
def test_draw__schedulers_that_draw_for_a_whole_batch_get_one_image_at_a_time(sd, parts, expected):
    sizes = []

    class Pipeline:
        scheduler = SimpleNamespace(**parts)

        def __call__(self, *, generator, output_type):
            sizes.append(len(generator))
            return SimpleNamespace(images=np.zeros((len(generator), 4, 4, 1)))

    drawn = _generator(sd(), batch_size=4).draw(Pipeline(), SEEDS, lambda rows: {})
    assert sizes == expected
    assert [one.values.shape for one in drawn] == [(4, 4, 3)] * 5


def test_draw__a_pipeline_that_gives_other_than_images_is_a_model_error(sd):
    for images in (np.zeros((2, 4, 4, 3)), np.zeros((1, 4, 4, 7)), np.zeros((1, 0, 0, 3))):
        with pytest.raises(ModelError):
            _generator(sd()).draw(
                lambda images=images, **_: SimpleNamespace(images=images),
                [1],
                lambda rows: {},
            )


# ---------------------------------------------------------------------------------------------------------------- safety


def test_safety__flagged_images_keep_their_pixels_and_carry_the_verdict(sd):
    plain = _generator(sd()).generate(PROMPTS[:2], seeds=SEEDS[:2])
    flagged = _generator(sd(checker="flags")).generate(PROMPTS[:2], seeds=SEEDS[:2])
    assert _bytes(flagged) == _bytes(plain)
    assert all("flagged" in one.verdicts["unsafe"] for one in flagged)
    assert all("unsafe" not in one.verdicts for one in plain)


def test_safety__harmless_images_pass(sd):
    assert _generator(sd(checker="passes")).generate(["a dog"], seeds=[1])[0].verdicts == {
        "not-finite": PASS,
        "unsafe": PASS,
    }


def test_safety__off_asks_nobody(sd):
    part = _generator(sd(checker="flags"), safety="off")
    assert part.generate(["a dog"], seeds=[1])[0].verdicts == {"not-finite": PASS}
    assert part.generator_id != _generator(sd(checker="flags")).generator_id


def test_verdicts__a_pipeline_that_blackens_by_itself_is_said_to(sd):
    black = np.zeros((4, 4, 3), np.float32)
    assert "blackened" in GeneratedPixels(values=black, is_blackened=True).verdicts["unsafe"]
    assert GeneratedPixels(values=black, is_blackened=False).verdicts["unsafe"] == PASS


def test_generate__values_that_are_no_numbers_become_a_verdict(sd):
    drawn = _generator(sd(is_nan=True, checker="flags")).generate(["a dog", "a cat"], seeds=[1, 2])
    assert [one.image.mode for one in drawn] == ["RGB", "RGB"]
    assert all(one.verdicts["not-finite"] != PASS and "unsafe" not in one.verdicts for one in drawn)


# ---------------------------------------------------------------------------------------------------------------- identity


def test_generator_id__names_weights_and_what_decides_pixels(sd, tmp_path):
    first = _generator(sd()).generator_id
    assert first.startswith("diffusers:stable_diffusion@")
    changes = [
        {"steps": 3},
        {"guidance_scale": 2.0},
        {"width": 32, "height": 32},
        {"negative_prompt": "x"},
        {"batch_size": 2},
        {"dtype": "bfloat16"},
    ]
    others = {_generator(sd(), **change).generator_id for change in changes}
    assert len(others | {first}) == len(changes) + 1
    other = shutil.copytree(sd(), tmp_path / "stable_diffusion")
    assert _generator(other).generator_id == first
    shutil.copytree(sd(seed=1), other, dirs_exist_ok=True)
    assert _generator(other).generator_id != first


def test_dtype__auto_is_float32_without_a_graphics_card(sd):
    part = _generator(sd())
    assert part.numbers is torch.float32
    assert (
        _generator(sd(), dtype="bfloat16").generate(["a dog"], seeds=[1])[0].verdicts["not-finite"]
        == PASS
    )


# ---------------------------------------------------------------------------------------------------------------- refusals


def test_generate__a_prompt_that_would_be_cut_is_refused(sd):
    with pytest.raises(RefusedPromptError, match="tokens longer"):
        _generator(sd()).generate(["a dog", "words " * 40], seeds=[1, 2])


def test_generate__weights_must_be_safetensors(sd, tmp_path):
    from safetensors.torch import load_file

    folder = shutil.copytree(sd(), tmp_path / "model")
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(weights), weights.with_suffix(".bin"))
    weights.unlink()
    with pytest.raises(ModelError, match="cannot load") as caught:
        _generator(folder).generate(["a dog"], seeds=[1])
    assert "safetensors" in str(caught.value)


def test_generate__code_that_comes_with_a_pipeline_is_never_run(sd, tmp_path):
    folder = shutil.copytree(sd(), tmp_path / "model")
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(
        json.dumps(index | {"_class_name": ["own_code", "OwnPipeline"]})
    )
    (folder / "own_code.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\n")
    with pytest.raises(ModelError, match="code of its own"):
        _generator(folder).generate(["a dog"], seeds=[1])
    assert not (tmp_path / "was-run").exists()


def test_generate__a_damaged_file_is_named_not_a_traceback(sd, tmp_path):
    folder = shutil.copytree(sd(), tmp_path / "model")
    (folder / "vae" / "diffusion_pytorch_model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot load"):
        _generator(folder).generate(["a dog"], seeds=[1])


def test_generate__a_folder_without_a_pipeline_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"model_index\.json"):
        _generator(tmp_path).generate(["a dog"], seeds=[1])


def test_generate__a_pipeline_that_reads_no_words_is_refused(sd):
    with pytest.raises(ModelError, match="nothing from words"):
        _generator(sd("kandinsky")).generate(["a dog"], seeds=[1])


def test_generate__without_the_hub_an_unknown_name_is_unavailable(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match="hub is off"):
        _generator("nobody/no-such-pipeline").generate(["a dog"], seeds=[1])


def test_generate__sizes_that_the_pipeline_refuses_are_model_errors(sd):
    with pytest.raises(ModelError, match="cannot draw"):
        _generator(sd(), width=13, height=16).generate(["a dog"], seeds=[1])


def test_generate__needs_the_extra(sd, monkeypatch):
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(MissingExtraError) as caught:
        _generator(sd()).generate(["a dog"], seeds=[1])
    assert caught.value.extra == "generate"


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"guidance_scale": -1},
        {"batch_size": 0},
        {"width": 1.5, "height": 8},
        {"width": 64},
        {"dtype": "int8"},
        {"safety": "on"},
        {"model": " "},
    ],
)
def test_options__that_mean_nothing_are_refused(options):
    with pytest.raises(ConfigError):
        _generator(**({"model": "x"} | options))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("stable_diffusion", "StableDiffusionInstructPix2PixPipeline"),
        ("stable_diffusion", "StableDiffusionInpaintPipeline"),
        ("flux", "FluxKontextPipeline"),
    ],
)
def test_generate__pipelines_that_change_images_are_sent_to_the_editor(sd, kind, written):
    with pytest.raises(ModelError, match=f"{written} changes an image.*`edit`"):
        _generator(sd(kind, written=written)).generate(PROMPTS[:1], seeds=[0])


def test_call__further_arguments_and_another_scheduler_change_the_image_and_the_id(sd):
    plain = _generator(sd())
    noisier = _generator(sd(), call={"guidance_rescale": 0.7})
    other = _generator(sd(), scheduler="EulerAncestralDiscreteScheduler")
    made = [
        one.generate(PROMPTS[:1], seeds=[0])[0].image.tobytes() for one in (plain, noisier, other)
    ]
    assert len(set(made)) == 3
    assert len({plain.generator_id, noisier.generator_id, other.generator_id}) == 3
    with pytest.raises(ConfigError, match="takes no speed"):
        _generator(sd(), call={"speed": 1}).generate(PROMPTS[:1], seeds=[0])
    with pytest.raises(ConfigError, match="no scheduler 'Faster'"):
        _generator(sd(), scheduler="Faster").generate(PROMPTS[:1], seeds=[0])
    with pytest.raises(
        ConfigError, match=r"(?s)call: prompt cannot.*offload: must.*quantise: must"
    ):
        _generator(sd(), call={"prompt": "x"}, offload="all", quantise="1-bit")


def test_negative_prompt__a_pipeline_that_would_ignore_it_says_so(sd):
    flux = sd("flux")
    options = {"width": 16, "height": 16, "negative_prompt": "dark"}
    with pytest.raises(ConfigError, match=r"ignores negative_prompt.*true_cfg_scale = 4"):
        _generator(flux, **options).generate(["a bus"], seeds=[0])
    told, untold = (
        _generator(flux, **(options | {"negative_prompt": words}), call={"true_cfg_scale": 4.0})
        for words in ("dark", "")
    )
    assert _bytes(told.generate(["a bus"], seeds=[0])) != _bytes(
        untold.generate(["a bus"], seeds=[0])
    )


def test_lora__that_is_none__is_named(sd, tmp_path):
    with pytest.raises(ModelError, match="LoRA cannot be loaded"):
        _generator(sd(), lora=tmp_path).generate(PROMPTS[:1], seeds=[0])


def test_dtype__is_the_one_that_the_id_claims(sd):
    generator = _generator(sd(), dtype="bfloat16")
    pipeline, _ = generator._parts
    assert pipeline.unet.dtype == pipeline.vae.dtype == torch.bfloat16


def test_quantise__without_its_library__says_what_to_install(sd):
    with pytest.raises(UnavailableError, match="pip install bitsandbytes"):
        _generator(sd(), quantise="4-bit").generate(PROMPTS[:1], seeds=[0])
