import io
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.models.tiny_servers import answer_of, bytes_of, image_bytes

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import OwnImages
from weakspot.core.roles import ComposesImages, CostsMoney, ImageGenerator, KnowsParents
from weakspot.models.endpoint.images import EndpointImageEditor, EndpointImageGenerator

BLOCKED = b'{"error": {"code": "moderation_blocked", "message": "Your request was\\nrejected."}}'
BILLING = b'{"error": {"message": "billing hard limit reached"}}'


def _generator(server, **options):
    given = {"model": "tiny", "size": "32x24", "n_retries": 2, "first_wait_seconds": 0.0}
    return EndpointImageGenerator(url=server.url, **{**given, **options})


def test_generate__one_request_a_image_with_all_that_decides_it(image_server):
    seeds = [7, 2**40 + 3]
    found = _generator(image_server, quality="low").generate(["a dog", "a cat"], seeds=seeds)
    assert [(one.prompt, one.seed, one.image.size) for one in found] == [
        ("a dog", 7, (32, 24)),
        ("a cat", 2**40 + 3, (32, 24)),
    ]
    assert image_server.paths == ["/v1/images/generations"] * 2
    same = {"model": "tiny", "n": 1, "size": "32x24", "quality": "low"}
    same |= {"response_format": "b64_json"}
    assert sorted(image_server.bodies, key=lambda body: body["prompt"], reverse=True) == [
        {"prompt": "a dog", "seed": 7, **same},
        {"prompt": "a cat", "seed": 3, **same},
    ]
    assert found[0].image.tobytes() != found[1].image.tobytes()
    assert all(one.verdicts == {} for one in found)


def test_generate__same_pair_twice_is_asked_for_once(image_server):
    found = _generator(image_server).generate(["a dog", "a dog", "a dog"], seeds=[1, 2, 1])
    assert len(image_server.bodies) == 2
    assert found[0].image.tobytes() == found[2].image.tobytes() != found[1].image.tobytes()


def test_generate__moderation_is_a_verdict_on_one_image(image_server):
    image_server.answers["a bad dog"] = (400, {}, BLOCKED)
    found = _generator(image_server).generate(["a dog", "a bad dog"], seeds=[1, 1])
    assert [one.verdicts for one in found] == [{}, {"unsafe": "Your request was rejected."}]
    assert found[1].image.getcolors() == [(32 * 24, (128, 128, 128))]


def test_generate__what_was_paid_for_is_not_asked_for_again(image_server):
    image_server.answers["a cat"] = (200, {}, answer_of(b64_json="!!!"))
    generator = _generator(image_server, concurrency=1)
    with pytest.raises(ModelError, match="is not base64.*!!!"):
        generator.generate(["a dog", "a cat", "a cow"], seeds=[1, 1, 1])
    del image_server.answers["a cat"]
    found = generator.generate(["a dog", "a cat"], seeds=[1, 1])
    assert [one.prompt for one in found] == ["a dog", "a cat"]
    assert [body["prompt"] for body in image_server.bodies].count("a dog") == 1
    afresh = _generator(image_server).generate(["a dog"], seeds=[1])[0]
    assert found[0].image.tobytes() == afresh.image.tobytes()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ((400, {}, BILLING), "status 400.*billing hard limit"),
        ((200, {}, b"<html>"), "data\\[0\\] is missing.*<html>"),
        ((200, {}, b'{"data": []}'), "data\\[0\\] is missing"),
        ((200, {}, b'{"data": [{}]}'), "neither b64_json nor url"),
        ((200, {}, answer_of(b64_json="aGVsbG8=")), "no image that can be read.*hello"),
        ((200, {}, answer_of(url="data:image/png;base64,??")), "is not base64"),
        ((200, {}, answer_of(url="http://192.0.2.1/1.png")), "another host"),
        ((200, {}, answer_of(url="http://localhost:1/1.png")), "another host"),
        ((200, {}, answer_of(url="file:///etc/passwd")), "another host"),
        ((200, {}, answer_of(url="//192.0.2.1/1.png")), "another host"),
        ((200, {}, answer_of(url="/nothing.png")), "status 404"),
        ((200, {}, answer_of(url="/large.png")), "more than 100 bytes"),
        ((200, {}, answer_of(b64_json="A" * 200)), "more than 100 bytes"),
    ],
)
def test_generate__answers_without_an_image_name_what_came(image_server, monkeypatch, step, said):
    monkeypatch.setattr("weakspot.models.endpoint.images.MAX_BYTES", 100)
    image_server.files["/large.png"] = [(200, {}, bytes(101))]
    image_server.answers["a dog"] = step
    with pytest.raises(ModelError, match=said):
        _generator(image_server).generate(["a dog"], seeds=[1])


def test_generate__addresses_on_the_same_host_are_fetched(image_server):
    drawn = image_bytes("a dog", 1)
    image_server.files["/made/1.png"] = [(503, {}, b""), (200, {}, drawn)]
    urls = {
        "here": "/made/1.png",
        "whole": f"{image_server.host}/made/1.png",
        "data": f"data:image/png;base64,{bytes_of(drawn)}",
    }
    image_server.answers = {name: (200, {}, answer_of(url=url)) for name, url in urls.items()}
    found = _generator(image_server, concurrency=1).generate(list(urls), seeds=[1, 1, 1])
    assert len({one.image.tobytes() for one in found}) == 1
    assert [path for path, _ in image_server.fetched] == ["/made/1.png"] * 3


def test_generate__rewritten_prompts_stay_with_the_image(image_server):
    drawn = answer_of(b64_json=bytes_of(image_bytes("a dog", 1)), revised_prompt="a happy dog")
    image_server.answers["a dog"] = (200, {}, drawn)
    kept = _generator(image_server).generate(["a dog"], seeds=[1])[0]
    assert kept.image.info == {"revised_prompt": "a happy dog"}
    assert (kept.prompt, kept.verdicts) == ("a dog", {})
    strict = _generator(image_server, accepts_rewriting=False).generate(["a dog"], seeds=[1])[0]
    assert strict.verdicts == {"rewritten": "the service drew: a happy dog"}


def test_generate__response_format_is_left_out_where_it_is_not_known(image_server):
    image_server.refused_fields = ("response_format",)
    generator = _generator(image_server)
    generator.generate(["a dog"], seeds=[1])
    generator.generate(["a cat"], seeds=[1])
    assert ["response_format" in body for body in image_server.bodies] == [True, False, False]


def test_generate__seed_that_is_not_taken_is_said_and_can_be_left_out(image_server):
    image_server.refused_fields = ("seed",)
    with pytest.raises(ModelError, match="takes no seed.*sends_seed = false"):
        _generator(image_server).generate(["a dog"], seeds=[1])
    without = _generator(image_server, sends_seed=False)
    assert len(without.generate(["a dog"], seeds=[1])) == 1
    assert without.generator_id != _generator(image_server).generator_id


def test_generate__budget_holds_for_the_object(image_server):
    generator = _generator(image_server, max_images=3)
    generator.generate(["a dog", "a cat"], seeds=[1, 1])
    with pytest.raises(ConfigError, match="Only 1 of 3 images.*max_images.*Given: 2"):
        generator.generate(["a cow", "a pig"], seeds=[1, 1])
    assert len(image_server.bodies) == 2
    generator.generate(["a cow"], seeds=[1])
    with pytest.raises(ConfigError, match="Only 0 of 3"):
        generator.generate(["a pig"], seeds=[1])


def test_cost_of__price_times_images_or_not_known(image_server):
    priced = _generator(image_server, price_per_image=0.04, currency="EUR")
    cost, basis = priced.cost_of(300), "300 images of tiny at 0.04 EUR each"
    assert (cost.amount, cost.currency, cost.basis) == (12.0, "EUR", basis)
    assert _generator(image_server).cost_of(300) is None
    assert priced.generator_id == _generator(image_server).generator_id


GREEN, GRASS = "a photo of a green disc", "a photo of a disc on the grass"
TOLD = "Change the image into {}. Keep everything else as it is."


def _image(sample_id):
    return Image.new("RGB", (32, 32), (30, 20 * int(sample_id[-1]), 200))


def _mask(sample_id):
    mask = Image.new("L", (32, 32))
    ImageDraw.Draw(mask).rectangle((8, 8, 23, 23), fill=255)
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
    files = server.sent_files[place]
    return {name: Image.open(io.BytesIO(content)) for name, content in files.items()}


def _pixels(image):
    return np.asarray(image, dtype=int)


def test_editor__sends_the_image_with_an_instruction(image_server):
    editor = _editor(image_server, quality="low")
    for role in (ImageGenerator, ComposesImages, KnowsParents, CostsMoney):
        assert isinstance(editor, role)
    (made,) = editor.generate([GREEN], seeds=[3])
    assert image_server.paths == ["/v1/images/edits"]
    asked = {"model": "tiny", "prompt": TOLD.format(GREEN), "n": "1", "size": "auto", "seed": "3"}
    assert image_server.bodies == [{**asked, "quality": "low", "response_format": "b64_json"}]
    assert made.parents == editor.parents_of(GREEN, 3)
    sent = _sent(image_server)
    assert sent.keys() == {"image"}
    assert np.array_equal(_pixels(sent["image"]), _pixels(_image(made.parents[0])))
    assert (made.prompt, made.seed, made.image.size) == (GREEN, 3, (32, 24))


@pytest.mark.parametrize(("prompt", "is_around"), [(GREEN, False), (GRASS, True)])
def test_editor__what_is_transparent_in_the_mask_is_drawn(image_server, prompt, is_around):
    (made,) = _editor(image_server, mode="fill", size="32x32").generate([prompt], seeds=[4])
    sent = _sent(image_server)
    inside = (_pixels(_mask("")) > 0) != is_around
    assert (sent["mask"].mode, sent["mask"].size) == ("RGBA", sent["image"].size)
    assert np.array_equal(_pixels(sent["mask"].getchannel("A")) == 0, inside)
    before = _pixels(_image(made.parents[0]))
    assert np.array_equal(_pixels(made.image)[~inside], before[~inside])
    assert np.abs(_pixels(made.image) - before)[inside].max() > 20
    assert image_server.bodies[0]["prompt"] == prompt


def test_editor__prompts_of_one_seed_are_a_pair(image_server):
    editor = _editor(image_server)
    made = editor.generate([GREEN, GRASS], seeds=[5, 5])
    assert made[0].parents == made[1].parents
    assert len({editor.parents_of(GREEN, seed) for seed in range(40)}) == 6


def test_editor__masks_of_the_segmenter(image_server):
    def found(sample_id, class_name):
        refused = "" if sample_id == "disc-2" else "it cannot be told"
        return np.asarray(_mask(sample_id), dtype=np.float32) / 255, refused

    own = _own(mask=lambda sample_id: None, found=found)
    made = _editor(image_server, own=own, mode="fill").generate([GREEN] * 3, seeds=range(3))
    assert {one.parents for one in made} == {("disc-2",)}
    without = _editor(image_server, own=_own(mask=lambda name: None), mode="fill")
    with pytest.raises(ModelError, match=r"has a mask.*\[segmenter\]"):
        without.generate([GREEN], seeds=[0])


def test_editor__what_was_paid_for_is_kept_with_its_parent(image_server):
    image_server.answers[TOLD.format(GRASS)] = (200, {}, b"{}")
    editor = _editor(image_server, concurrency=1)
    with pytest.raises(ModelError, match=r"data\[0\] is missing"):
        editor.generate([GREEN, GRASS], seeds=[1, 1])
    (made,) = editor.generate([GREEN], seeds=[1])
    assert made.parents == editor.parents_of(GREEN, 1)
    assert len(image_server.bodies) == 2


def test_editor__moderation_is_a_verdict_and_unknown_fields_are_left_out(image_server):
    blocked = {"error": {"code": "moderation_blocked", "message": "no."}}
    image_server.answers[TOLD.format(GRASS)] = (400, {}, json.dumps(blocked).encode())
    image_server.refused_fields = ("response_format",)
    made = _editor(image_server, concurrency=1).generate([GREEN, GRASS], seeds=[1, 1])
    assert [one.verdicts for one in made] == [{}, {"unsafe": "no."}]
    assert [*image_server.sent_files[1]] == ["image"]


def test_editor__id_and_refused_prompts(image_server):
    plain = _editor(image_server)
    changes = (
        {"mode": "fill"},
        {"instruction": "{prompt}!"},
        {"side": 64},
        {"own": _own(digest="7")},
    )
    others = [_editor(image_server, **change) for change in changes]
    assert len({one.generator_id for one in [plain, *others]}) == 5
    with pytest.raises(RefusedPromptError, match="a photo of a disc"):
        plain.check_prompt("a photo of a dog")
    with pytest.raises(ConfigError, match="inside a project"):
        EndpointImageEditor(url=image_server.url, model="tiny").generate([GREEN], seeds=[0])
