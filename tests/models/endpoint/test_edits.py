import io
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.core.roles import ComposesImages, CostsMoney, ImageGenerator, KnowsParents
from weakspot.models.endpoint.images import EndpointImageEditor

GREEN, GRASS = "a photo of a green disc", "a photo of a disc on the grass"
BOX = (8, 8, 23, 23)


def _image(sample_id):
    return Image.new("RGB", (32, 32), (30, 20 * int(sample_id[-1]), 200))


def _mask(sample_id):
    mask = Image.new("L", (32, 32))
    ImageDraw.Draw(mask).rectangle(BOX, fill=255)
    return mask


def _own(**changes):
    given = {
        "class_names": ("disc",),
        "objects": lambda name: [f"{name}-{number}" for number in range(6)],
        "backgrounds": lambda words: [],
        "background_words": (),
        "image": _image,
        "mask": _mask,
        "digest": "six",
    }
    return OwnImages(**{**given, **changes})


def _editor(server, *, own=None, **options):
    given = {"url": server.url, "model": "tiny", "side": 32, "first_wait_seconds": 0.0, **options}
    return EndpointImageEditor(**given).with_images(own or _own())


def _sent(server, place=0):
    return {
        name: Image.open(io.BytesIO(content)) for name, content in server.sent_files[place].items()
    }


def _pixels(image):
    return np.asarray(image, dtype=int)


def test_generate__sends_the_image_with_an_instruction(image_server):
    editor = _editor(image_server, quality="low")
    assert isinstance(editor, ImageGenerator)
    assert isinstance(editor, ComposesImages)
    assert isinstance(editor, KnowsParents)
    assert isinstance(editor, CostsMoney)
    (made,) = editor.generate([GREEN], seeds=[3])
    assert image_server.paths == ["/v1/images/edits"]
    assert image_server.bodies == [
        {
            "model": "tiny",
            "prompt": f"Change the image into {GREEN}. Keep everything else as it is.",
            "n": "1",
            "size": "auto",
            "quality": "low",
            "seed": "3",
            "response_format": "b64_json",
        }
    ]
    assert made.parents == editor.parents_of(GREEN, 3)
    sent = _sent(image_server)
    assert sent.keys() == {"image"}
    assert np.array_equal(_pixels(sent["image"]), _pixels(_image(made.parents[0])))
    assert (made.prompt, made.seed, made.image.size) == (GREEN, 3, (32, 24))


@pytest.mark.parametrize(("prompt", "is_around"), [(GREEN, False), (GRASS, True)])
def test_generate__what_is_transparent_in_the_mask_is_drawn_anew(image_server, prompt, is_around):
    (made,) = _editor(image_server, mode="fill", size="32x32").generate([prompt], seeds=[4])
    sent = _sent(image_server)
    inside = (_pixels(_mask("")) > 0) != is_around
    assert sent["mask"].mode == "RGBA"
    assert sent["mask"].size == sent["image"].size
    assert np.array_equal(_pixels(sent["mask"].getchannel("A")) == 0, inside)
    before = _pixels(_image(made.parents[0]))
    assert np.array_equal(_pixels(made.image)[~inside], before[~inside])
    assert np.abs(_pixels(made.image) - before)[inside].max() > 20
    assert image_server.bodies[0]["prompt"] == prompt


def test_generate__prompts_of_one_seed_are_a_pair(image_server):
    editor = _editor(image_server)
    made = editor.generate([GREEN, GRASS], seeds=[5, 5])
    assert made[0].parents == made[1].parents
    assert len({editor.parents_of(GREEN, seed) for seed in range(40)}) == 6


def test_generate__masks_of_the_segmenter(image_server):
    def found(sample_id, class_name):
        refused = "" if sample_id == "disc-2" else "it cannot be told"
        return np.asarray(_mask(sample_id), dtype=np.float32) / 255, refused

    own = _own(mask=lambda sample_id: None, found=found)
    made = _editor(image_server, own=own, mode="fill").generate([GREEN] * 3, seeds=range(3))
    assert {one.parents for one in made} == {("disc-2",)}
    with pytest.raises(ModelError, match=r"has a mask.*\[segmenter\]"):
        _editor(image_server, own=_own(mask=lambda name: None), mode="fill").generate(
            [GREEN], seeds=[0]
        )


def test_generate__what_was_paid_for_is_kept_with_its_parent(image_server):
    broken = f"Change the image into {GRASS}. Keep everything else as it is."
    image_server.answers[broken] = (200, {}, b"{}")
    editor = _editor(image_server, concurrency=1)
    with pytest.raises(ModelError, match=r"data\[0\] is missing"):
        editor.generate([GREEN, GRASS], seeds=[1, 1])
    (made,) = editor.generate([GREEN], seeds=[1])
    assert made.parents == editor.parents_of(GREEN, 1)
    assert len(image_server.bodies) == 2


def test_generate__moderation_is_a_verdict_and_unknown_fields_are_left_out(image_server):
    blocked = {"error": {"code": "moderation_blocked", "message": "no."}}
    told = f"Change the image into {GRASS}. Keep everything else as it is."
    image_server.answers[told] = (400, {}, json.dumps(blocked).encode())
    image_server.refused_fields = ("response_format",)
    plain, refused = _editor(image_server, concurrency=1).generate([GREEN, GRASS], seeds=[1, 1])
    assert (dict(plain.verdicts), dict(refused.verdicts)) == ({}, {"unsafe": "no."})
    assert [*image_server.sent_files[1]] == ["image"]


def test_editor__id_and_options(image_server):
    plain = _editor(image_server)
    others = [
        _editor(image_server, mode="fill"),
        _editor(image_server, instruction="{prompt}!"),
        _editor(image_server, side=64),
        _editor(image_server, own=_own(digest="seven")),
    ]
    assert len({one.generator_id for one in [plain, *others]}) == 5
    with pytest.raises(ConfigError, match=r"mode: 'x' .*instruction: .*side: 3"):
        _editor(image_server, mode="x", instruction="no", side=3)
    with pytest.raises(ConfigError, match="speed: there is no such option"):
        _editor(image_server, speed=1)
    with pytest.raises(RefusedPromptError, match="a photo of a disc"):
        plain.check_prompt("a photo of a dog")
    with pytest.raises(ConfigError, match="inside a project"):
        EndpointImageEditor(url=image_server.url, model="tiny").generate([GREEN], seeds=[0])
