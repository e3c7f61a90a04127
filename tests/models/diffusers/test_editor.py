import numpy as np
import pytest
from PIL import Image, ImageDraw

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.core.roles import ComposesImages, ImageGenerator, KnowsParents
from weakspot.models.diffusers.generators import DiffusersEditor

GREEN, GRASS = "a photo of a green disc", "a photo of a disc on the grass"
BOX = (16, 16, 47, 47)
EDITORS = {
    "pix2pix": ("stable_diffusion", {"written": "StableDiffusionInstructPix2PixPipeline"}),
    "kontext": ("flux", {"written": "FluxKontextPipeline"}),
    "flux2": ("flux2", {}),
    "qwen": ("qwen_image", {"written": "QwenImageEditPipeline"}),
    "qwen plus": ("qwen_image", {"written": "QwenImageEditPlusPipeline"}),
    "control": ("controlled", {}),
}
FILLERS = {
    "inpaint": ("stable_diffusion", {"written": "StableDiffusionInpaintPipeline"}),
    "words": ("stable_diffusion", {}),
    "xl": ("stable_diffusion_xl", {}),
    "flux": ("flux", {}),
    "flux fill": ("flux", {"written": "FluxFillPipeline"}),
}
OTHERS = {"controlnet": ("controlnet", {}), "pixels": ("pixels", {})}
OPTIONS = {"flux2": {"call": {"text_encoder_out_layers": [1], "max_sequence_length": 64}}}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(saved):
    def place(name):
        kind, options = (EDITORS | FILLERS | OTHERS)[name]
        return saved(kind, **options)

    return place


def _image(sample_id):
    image = Image.new("RGB", (64, 64), (30, 20 * int(sample_id[-1]), 200))
    ImageDraw.Draw(image).ellipse(BOX, fill=(200, 40, 40))
    return image


def _mask(sample_id):
    mask = Image.new("L", (64, 64))
    ImageDraw.Draw(mask).rectangle(BOX, fill=255)
    return mask


def _own(**changes):
    given = {
        "class_names": ("disc", "star"),
        "objects": lambda name: [f"{name}-{number}" for number in range(6)],
        "backgrounds": lambda words: [],
        "background_words": (),
        "image": _image,
        "mask": _mask,
        "digest": "six",
    }
    return OwnImages(**{**given, **changes})


def _editor(model, **options):
    own = options.pop("own", _own())
    known = OPTIONS.get(model.name, {})
    given = {"model": model, "device": "cpu", "steps": 2, "side": 64, **known, **options}
    return DiffusersEditor(**given).with_images(own)


def _pixels(image):
    return np.asarray(image, dtype=int)


@pytest.mark.parametrize("name", sorted(EDITORS | FILLERS))
def test_generate__own_image_is_changed_the_same_way_twice(folder, name):
    editor = _editor(folder(name))
    assert isinstance(editor, ComposesImages)
    assert isinstance(editor, ImageGenerator)
    first, again = editor.generate([GREEN, GREEN], seeds=[3, 3])
    assert first.image.tobytes() == again.image.tobytes()
    assert first.image.size == (64, 64)
    (parent,) = first.parents
    assert parent.startswith("disc-")
    assert np.abs(_pixels(first.image) - _pixels(_image(parent))).max() > 20


@pytest.mark.parametrize("name", ["flux2", "qwen", "qwen plus"])
def test_generate__words_decide(folder, name):
    green, grass = _editor(folder(name)).generate([GREEN, GRASS], seeds=[5, 5])
    assert green.parents == grass.parents
    assert green.image.tobytes() != grass.image.tobytes()


@pytest.mark.parametrize("name", ["pix2pix", "inpaint"])
def test_generate__prompts_of_one_seed_are_a_pair(folder, name):
    editor = _editor(folder(name))
    green, grass, star = editor.generate([GREEN, GRASS, "a photo of a star"], seeds=[5, 5, 5])
    assert green.parents == grass.parents
    assert green.image.tobytes() != grass.image.tobytes()
    assert star.parents[0].startswith("star-")
    others = {one.parents for one in editor.generate([GREEN] * 8, seeds=range(8))}
    assert len(others) > 2


@pytest.mark.parametrize("name", sorted(FILLERS))
def test_generate__outside_of_the_mask_nothing_changes(folder, name):
    on_it, around = _editor(folder(name)).generate([GREEN, GRASS], seeds=[4, 4])
    before, inside = _pixels(_image(on_it.parents[0])), _pixels(_mask("")) > 0
    assert np.array_equal(_pixels(on_it.image)[~inside], before[~inside])
    assert np.array_equal(_pixels(around.image)[inside], before[inside])
    assert np.abs(_pixels(on_it.image) - before)[inside].max() > 20
    assert np.abs(_pixels(around.image) - before)[~inside].max() > 20


def test_generate__redrawn_as_strongly_as_is_asked(folder):
    weak, strong = (
        _editor(folder("words"), mode="redraw", strength=strength, steps=10).generate(
            [GREEN], seeds=[1]
        )[0]
        for strength in (0.1, 1.0)
    )
    assert weak.image.tobytes() != strong.image.tobytes()


@pytest.mark.parametrize("name", ["control", "words"])
def test_generate__controlnet_draws_along_the_outlines(folder, name):
    def plain(sample_id):
        return Image.new("RGB", (64, 64), "grey")

    def bright(sample_id):
        return Image.new("RGB", (64, 64), "white")

    options = {} if name == "control" else {"controlnet": folder("controlnet")}
    drawn = [
        _editor(folder(name), own=_own(image=image), **options).generate([GREEN], seeds=[1])[0]
        for image in (plain, bright, _image)
    ]
    one, other, outlined = (each.image.tobytes() for each in drawn)
    assert one == other != outlined
    shown = _editor(folder(name), own=_own(image=bright), control="image", **options)
    assert shown.generate([GREEN], seeds=[1])[0].image.tobytes() != one
    assert shown.generator_id != drawn[0].generator_id


def test_generate__what_cannot_edit_says_what_can(folder):
    with pytest.raises(ModelError, match=r"DDPMPipeline does another thing.*Qwen-Image-Edit"):
        _editor(folder("pixels")).generate([GREEN], seeds=[0])
    with pytest.raises(ModelError, match=r"has no sibling for the mode 'fill'.*FLUX.1 Kontext"):
        _editor(folder("pix2pix"), mode="fill").generate([GREEN], seeds=[0])
    with pytest.raises(ModelError, match=r"has no ControlNet, and none is named.*\(controlnet\)"):
        _editor(folder("words"), mode="control").generate([GREEN], seeds=[0])


@pytest.mark.parametrize("name", ["pix2pix", "inpaint"])
def test_parents_of__says_without_drawing_what_is_changed(folder, name):
    own = _own(mask=lambda sample_id: None if sample_id.endswith("3") else _mask(sample_id))
    editor = _editor(folder(name), own=own)
    assert isinstance(editor, KnowsParents)
    told = [editor.parents_of(GREEN, seed) for seed in range(40)]
    assert told == [editor.parents_of(GRASS, seed) for seed in range(40)]
    assert [one.parents for one in editor.generate([GREEN] * 2, seeds=[0, 1])] == told[:2]
    assert len(set(told)) == (6 if name == "pix2pix" else 5)


def test_generate__images_without_masks__says_what_to_do(folder):
    editor = _editor(folder("inpaint"), own=_own(mask=lambda name: None))
    with pytest.raises(ModelError, match=r"has a mask.*\[segmenter\]"):
        editor.generate([GREEN], seeds=[0])


def test_generate__the_segmenter_stands_in_for_masks_that_are_missing(folder):
    def found(sample_id, class_name):
        assert class_name == "disc"
        is_cut = sample_id == "disc-2"
        coverage = np.asarray(_mask(sample_id), dtype=np.float32) / 255
        return (coverage, "" if is_cut else "it cannot be told")

    own = _own(mask=lambda name: None, found=found)
    made = _editor(folder("inpaint"), own=own).generate([GREEN] * 2, seeds=[0, 1])
    assert {one.parents for one in made} == {("disc-2",)}
    outside = _pixels(_mask("")) == 0
    assert np.array_equal(_pixels(made[0].image)[outside], _pixels(_image("disc-2"))[outside])


def test_generate__sides_become_what_pipelines_take(folder):
    own = _own(image=lambda name: Image.new("RGB", (100, 61), "red"))
    (made,) = _editor(folder("pix2pix"), own=own, side=96).generate([GREEN], seeds=[0])
    assert made.image.size == (96, 64)


def test_generate__instruction_is_what_the_pipeline_is_told(folder):
    plain = _editor(folder("pix2pix"))
    told = _editor(folder("pix2pix"), instruction="make it {prompt}!")
    assert plain.generator_id != told.generator_id
    assert (
        plain.generate([GREEN], seeds=[0])[0].image.tobytes()
        != told.generate([GREEN], seeds=[0])[0].image.tobytes()
    )


def test_prompts__of_no_class_are_refused(folder):
    editor = _editor(folder("pix2pix"))
    editor.check_prompt(GREEN)
    with pytest.raises(RefusedPromptError, match="a photo of a disc"):
        editor.check_prompt("a photo of a dog")


def test_settings__every_problem_is_named(folder):
    with pytest.raises(
        ConfigError,
        match=r"(?s)strength must.*mode: 'x' .*control: .*instruction: .*side: 3",
    ):
        DiffusersEditor(model="m", mode="x", instruction="no", side=3, strength=0, control="y")
    with pytest.raises(ConfigError, match="inside a project"):
        DiffusersEditor(model=folder("pix2pix")).generate([GREEN], seeds=[0])
    with pytest.raises(ModelError, match="takes no image to change"):
        _editor(folder("words"), mode="instruct").generate([GREEN], seeds=[0])
