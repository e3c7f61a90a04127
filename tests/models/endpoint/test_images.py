import json

import pytest

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import CostsMoney, ImageGenerator
from weakspot.models.endpoint.images import EndpointImageGenerator

BLOCKED = json.dumps(
    {
        "error": {
            "code": "moderation_blocked",
            "message": "Your request was\nrejected by the safety system.",
        }
    }
)


def _generator(server, **options):
    given = {
        "url": server.url,
        "model": "tiny",
        "size": "32x24",
        "n_retries": 2,
        "first_wait_seconds": 0.0,
        **options,
    }
    return EndpointImageGenerator(**given)


def _prompts(server):
    return [body["prompt"] for body in server.bodies]


def test_generate__one_request_a_image_with_all_that_decides_it(image_server):
    found = _generator(image_server, quality="low").generate(
        ["a dog", "a cat"], seeds=[7, 2**40 + 3]
    )
    assert [(one.prompt, one.seed, one.image.size) for one in found] == [
        ("a dog", 7, (32, 24)),
        ("a cat", 2**40 + 3, (32, 24)),
    ]
    assert image_server.paths == ["/v1/images/generations"] * 2
    bodies = sorted(image_server.bodies, key=lambda body: body["prompt"], reverse=True)
    same = {
        "model": "tiny",
        "n": 1,
        "size": "32x24",
        "quality": "low",
        "response_format": "b64_json",
    }
    assert bodies == [
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
    image_server.answers["a bad dog"] = (400, {}, BLOCKED.encode())
    found = _generator(image_server).generate(["a dog", "a bad dog", "a cat"], seeds=[1, 1, 1])
    assert [dict(one.verdicts) for one in found] == [
        {},
        {"unsafe": "Your request was rejected by the safety system."},
        {},
    ]
    assert found[1].image.size == (32, 24)
    assert found[1].image.getcolors() == [(32 * 24, (128, 128, 128))]


def test_generate__other_refusals_are_errors(image_server):
    image_server.answers["a dog"] = (
        400,
        {},
        b'{"error": {"message": "billing hard limit reached"}}',
    )
    with pytest.raises(ModelError, match="status 400.*billing hard limit"):
        _generator(image_server).generate(["a dog"], seeds=[1])


def test_generate__what_was_paid_for_is_not_asked_for_again(image_server, images):
    image_server.answers["a cat"] = (200, {}, images.answer_of(b64_json="!!!"))
    generator = _generator(image_server, concurrency=1)
    with pytest.raises(ModelError, match="is not base64.*!!!"):
        generator.generate(["a dog", "a cat", "a cow"], seeds=[1, 1, 1])
    del image_server.answers["a cat"]
    found = generator.generate(["a dog", "a cat"], seeds=[1, 1])
    assert [one.prompt for one in found] == ["a dog", "a cat"]
    assert _prompts(image_server).count("a dog") == 1
    assert (
        found[0].image.tobytes()
        == _generator(image_server).generate(["a dog"], seeds=[1])[0].image.tobytes()
    )


def test_generate__endpoint_that_is_down_is_not_asked_for_every_image(image_server):
    image_server.misbehave = [(503, {}, b"")] * 200
    with pytest.raises(UnavailableError, match="status 503"):
        _generator(image_server, concurrency=1, n_retries=0).generate(
            ["a dog"] * 60, seeds=range(60)
        )
    assert len(image_server.bodies) <= 4


def test_generate__tries_again_when_that_can_help(image_server):
    image_server.misbehave = [(429, {"Retry-After": "0"}, b""), (500, {}, b"")]
    assert len(_generator(image_server).generate(["a dog"], seeds=[1])) == 1
    assert len(image_server.bodies) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html>", "data\\[0\\] is missing.*<html>"),
        (b'{"data": []}', "data\\[0\\] is missing"),
        (b'{"data": [{}]}', "neither b64_json nor url"),
        (b'{"data": [{"b64_json": "aGVsbG8="}]}', "no image that can be read.*hello"),
        (b'{"data": [{"url": "data:image/png;base64,??"}]}', "is not base64"),
    ],
)
def test_generate__broken_answers_name_what_came(image_server, content, said):
    image_server.answers["a dog"] = (200, {}, content)
    with pytest.raises(ModelError, match=said):
        _generator(image_server).generate(["a dog"], seeds=[1])


def test_generate__addresses_on_the_same_host_are_fetched(image_server, images):
    drawn = images.image_bytes("a dog", 1)
    image_server.files["/made/1.png"] = [(503, {}, b""), (200, {}, drawn)]
    for prompt, url in (("here", "/made/1.png"), ("whole", f"{image_server.host}/made/1.png")):
        image_server.answers[prompt] = (200, {}, images.answer_of(url=url))
    image_server.answers["data"] = (
        200,
        {},
        images.answer_of(url=f"data:image/png;base64,{images.bytes_of(drawn)}"),
    )
    found = _generator(image_server, concurrency=1).generate(
        ["here", "whole", "data"], seeds=[1, 1, 1]
    )
    assert len({one.image.tobytes() for one in found}) == 1
    assert [path for path, _ in image_server.fetched] == ["/made/1.png"] * 3


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/1.png",
        "http://localhost:1/1.png",
        "file:///etc/passwd",
        "//192.0.2.1/1.png",
    ],
)
def test_generate__other_hosts_are_never_asked(image_server, images, url):
    image_server.answers["a dog"] = (200, {}, images.answer_of(url=url))
    with pytest.raises(ModelError, match="another host"):
        _generator(image_server).generate(["a dog"], seeds=[1])


def test_generate__too_much_or_nothing_at_an_address(image_server, images, monkeypatch):
    image_server.answers["a dog"] = (200, {}, images.answer_of(url="/1.png"))
    with pytest.raises(ModelError, match="status 404"):
        _generator(image_server).generate(["a dog"], seeds=[1])
    monkeypatch.setattr("weakspot.models.endpoint.images.MAX_BYTES", 100)
    image_server.files["/1.png"] = [(200, {}, bytes(101))]
    with pytest.raises(ModelError, match="more than 100 bytes"):
        _generator(image_server).generate(["a dog"], seeds=[1])
    image_server.answers["a dog"] = (200, {}, images.answer_of(b64_json="A" * 200))
    with pytest.raises(ModelError, match="more than 100 bytes"):
        _generator(image_server).generate(["a dog"], seeds=[1])


def test_generate__rewritten_prompts_stay_with_the_image(image_server, images):
    drawn = images.bytes_of(images.image_bytes("a dog", 1))
    image_server.answers["a dog"] = (
        200,
        {},
        images.answer_of(b64_json=drawn, revised_prompt="a happy dog"),
    )
    kept = _generator(image_server).generate(["a dog"], seeds=[1])[0]
    assert kept.image.info == {"revised_prompt": "a happy dog"}
    assert (kept.prompt, dict(kept.verdicts)) == ("a dog", {})
    strict = _generator(image_server, accepts_rewriting=False).generate(["a dog"], seeds=[1])[0]
    assert dict(strict.verdicts) == {"rewritten": "the service drew: a happy dog"}


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
    assert isinstance(priced, CostsMoney)
    assert isinstance(priced, ImageGenerator)
    cost = priced.cost_of(300)
    assert (cost.amount, cost.currency, cost.basis) == (
        12.0,
        "EUR",
        "300 images of tiny at 0.04 EUR each",
    )
    assert _generator(image_server).cost_of(300) is None
    assert priced.generator_id == _generator(image_server).generator_id


def test_generate__token_comes_from_the_environment_and_appears_nowhere(
    image_server, images, monkeypatch
):
    monkeypatch.setenv("IMAGE_TOKEN", "very-secret")
    generator = _generator(image_server, token_variable="IMAGE_TOKEN")
    found = generator.generate(["a dog"], seeds=[1])
    assert image_server.authorisations == ["Bearer very-secret"]
    assert "very-secret" not in generator.generator_id + repr(generator.settings) + repr(found)
    image_server.misbehave = [(401, {}, b"")]
    with pytest.raises(ConfigError, match="token_variable"):
        generator.generate(["a cat"], seeds=[1])
    monkeypatch.delenv("IMAGE_TOKEN")
    with pytest.raises(ConfigError, match="holds no token"):
        _generator(image_server, token_variable="IMAGE_TOKEN").generate(["a dog"], seeds=[1])


def test_generator__refuses_options_at_once_and_all_together():
    with pytest.raises(
        ConfigError, match=r"(?s)concurrency.*timeout_seconds.*url.*token_variable.*size"
    ):
        EndpointImageGenerator(
            url="host",
            model="m",
            token_variable="sk-1",
            size="large",
            concurrency=99,
            timeout_seconds=0,
        )
    with pytest.raises(ConfigError, match="travel unencrypted"):
        EndpointImageGenerator(url="http://example.org/v1", model="m", token_variable="TOKEN")
    with pytest.raises(ConfigError, match="steps: there is no such option"):
        EndpointImageGenerator(url="https://host/v1", model="m", steps=3)


def test_close__can_be_used_again(image_server):
    generator = _generator(image_server)
    generator.generate(["a dog"], seeds=[1])
    generator.close()
    assert len(generator.generate(["a dog"], seeds=[1])) == 1
