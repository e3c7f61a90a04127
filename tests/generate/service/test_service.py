import hashlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import (
    ConfigError,
    MissingExtraError,
    ModelError,
    RefusedPromptError,
    StoreError,
    UnavailableError,
)
from weakspot.core.generated import GenerationRequest
from weakspot.core.roles import Cost, GeneratedImage
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import (
    GeneratorService,
    confirm_cost,
    encoded,
    quality_check_for,
    service_for,
)
from weakspot.run.settings import GeneratorSettings, Settings
from weakspot.store.generated_images import GeneratedImageStore
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator

PLANTED = PlantedImageGenerator()


def _requests(*seeds, prompt="a green disc", class_name="disc"):
    return [GenerationRequest(class_name=class_name, prompt=prompt, seed=seed) for seed in seeds]


@dataclass
class Faulty:
    """Generates planted images, but does what it is told to do for some seeds and prompts; keeps a log of calls."""

    faults: dict = field(default_factory=dict)
    calls: list = field(default_factory=list)
    generator_id = "faulty"

    def generate(self, prompts, *, seeds):
        self.calls.append(list(seeds))
        made = [self._made(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        return [one for one in made if one != "missing"]

    def _made(self, prompt, seed):
        (good,) = PLANTED.generate([prompt], seeds=[seed])
        fault = self.faults.get(seed, self.faults.get(prompt))
        if isinstance(fault, BaseException):
            raise fault
        if fault is None or callable(fault):
            return good if fault is None else fault(good)
        return None if fault == "none" else fault


def _with(image, **more):
    return lambda good: GeneratedImage(
        image=image, prompt=good.prompt, seed=good.seed, generator_id="faulty", **more
    )


def _service(folder, generator=PLANTED, **more):
    return GeneratorService(
        generator,
        GeneratedImageStore(folder),
        **({"quality": QualityCheck(), "batch_size": 4} | more),
    )


def test_draw__one_record_an_order_in_their_order(tmp_path):
    requests = _requests(3, 1, 2, 1) + _requests(1, prompt="a star", class_name="star")
    service = _service(tmp_path, batch_size=2)
    generated = service.generate(requests)
    assert [one.request for one in generated] == requests
    assert generated[1] == generated[3]
    assert all(one.is_kept and one.generator_id == PLANTED.generator_id for one in generated)
    assert service.tally() == {"kept": 4}
    assert service.n_new == 4
    for one in generated:
        (expected,) = PLANTED.generate([one.request.prompt], seeds=[one.request.seed])
        assert service.image(one).tobytes() == expected.image.tobytes()


def test_draw__nothing_twice(tmp_path):
    generator = Faulty()
    first = _service(tmp_path, generator)
    generated = first.generate(_requests(*range(6)))
    assert first.generate(_requests(2, 5)) == [generated[2], generated[5]]
    second = _service(tmp_path, generator)
    assert second.generate(_requests(*range(4, 9)))[:2] == generated[4:]
    assert generator.calls == [[0, 1, 2, 3], [4, 5], [6, 7, 8]]
    assert (first.n_new, second.n_new) == (6, 3)
    assert second.tally() == {"kept": 5}


BAD = {
    "raises": (RuntimeError("boom"), "failed", "RuntimeError: boom"),
    "none": ("none", "failed", "no image came"),
    "a-number": (3, "failed", "no image came"),
    "too-few": ("missing", "failed", "0 images for 1 prompts"),
    "no-image": (_with(None), "failed", "not an image"),
    "an-array": (_with(np.zeros((8, 8, 3))), "failed", "not an image"),
    "bad-verdicts": (_with(Image.new("RGB", (64, 64)), verdicts=3), "failed", "not an image"),
    "black": (_with(Image.new("RGB", (64, 64))), "black", "nearly black"),
    "blank": (_with(Image.new("RGB", (64, 64), "red")), "blank", "deviation"),
    "size-zero": (_with(Image.new("RGB", (0, 64))), "wrong-size", "0 x 64"),
    "tiny": (_with(Image.new("RGB", (3, 3))), "wrong-size", "3 x 3"),
    "another-size": (
        lambda good: _with(good.image.resize((80, 80)))(good),
        "wrong-size",
        "others of this generator have 64 x 64",
    ),
    "nan": (
        _with(Image.fromarray(np.full((64, 64), np.nan, dtype=np.float32))),
        "not-finite",
        "not finite",
    ),
    "unsafe": (
        lambda good: _with(good.image, verdicts={"unsafe": "nudity 0.9"})(good),
        "unsafe",
        "nudity 0.9",
    ),
    "copy": (
        lambda good: _with(PLANTED.generate([good.prompt], seeds=[0])[0].image)(good),
        "near-duplicate",
        "seed 0",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_draw__whatever_comes_is_a_verdict(tmp_path, name):
    fault, quality, said = BAD[name]
    service = _service(tmp_path, Faulty(faults={5: fault}), batch_size=3)
    generated = service.generate(_requests(*range(9)))
    assert [one.rejected_by for one in generated] == [
        quality if place == 5 else "" for place in range(9)
    ]
    assert said in generated[5].verdicts[quality]
    assert not generated[5].is_kept
    assert service.tally() == {"kept": 8, quality: 1}


def test_draw__a_batch_that_fails_is_asked_again_one_by_one(tmp_path):
    generator = Faulty(faults={2: ValueError("bad seed")})
    generated = _service(tmp_path, generator).generate(_requests(*range(6)))
    assert generator.calls == [[0, 1, 2, 3], [0], [1], [2], [3], [4, 5]]
    assert [one.is_kept for one in generated] == [True, True, False, True, True, True]


def test_draw__failures_are_tried_again_by_the_next_studio_only(tmp_path):
    generator = Faulty(faults={2: ValueError("bad seed")})
    first = _service(tmp_path, generator)
    first.generate(_requests(*range(4)))
    n_calls = len(generator.calls)
    assert first.generate(_requests(2))[0].rejected_by == "failed"
    assert len(generator.calls) == n_calls
    generator.faults.clear()
    second = _service(tmp_path, generator)
    assert second.generate(_requests(*range(4)))[2].is_kept
    assert generator.calls[n_calls:] == [[2]]
    assert second.tally() == {"kept": 4}


@pytest.mark.parametrize("fault", [RuntimeError("out of memory"), "none"])
def test_draw__a_generator_that_breaks_is_given_up_later(tmp_path, fault):
    generator = Faulty(faults=dict.fromkeys(range(3, 100), fault))
    with pytest.raises(ModelError, match=r"times in a row"):
        _service(tmp_path, generator).generate(_requests(*range(40)))
    kept = list(GeneratedImageStore(tmp_path))
    assert [one.is_kept for one in kept[:3]] == [True] * 3
    assert 16 <= sum(one.rejected_by == "failed" for one in kept) < 20
    generator.faults = dict.fromkeys(range(3, 12), fault)
    assert (
        sum(one.is_kept for one in _service(tmp_path, generator).generate(_requests(*range(40))))
        == 31
    )


def test_draw__refused_prompts_are_raised_after_everything_else(tmp_path):
    refusal = RefusedPromptError("It cannot generate a zebra.", fix="Say disc or star.")
    generator = Faulty(faults={"a zebra": refusal})
    requests = _requests(1, 2) + _requests(1, 2, 3, prompt="a zebra") + _requests(3, 4)
    service = _service(tmp_path, generator)
    for _ in range(2):
        with pytest.raises(RefusedPromptError, match="zebra") as caught:
            service.generate(requests)
        assert caught.value is refusal
    assert generator.calls == [[1, 2, 1, 2], [1], [2], [1], [3, 4]]
    assert [one.request for one in GeneratedImageStore(tmp_path)] == _requests(1, 2, 3, 4)
    assert len(service.generate(_requests(1, 2, 3, 4))) == 4


def test_draw__several_refused_prompts_are_all_named(tmp_path):
    faults = {
        name: RefusedPromptError(f"It cannot generate {name}.", fix="Say disc.")
        for name in ("a zebra", "a yak")
    }
    with pytest.raises(RefusedPromptError, match=r"(?s)a zebra.*a yak.*Say disc"):
        _service(tmp_path, Faulty(faults=faults)).generate(
            _requests(1, prompt="a zebra") + _requests(1, prompt="a yak") + _requests(1)
        )


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("The service is gone."),
        MissingExtraError("torch", extra="torch", purpose="Generators"),
    ],
)
def test_draw__a_generator_that_is_gone_ends_the_call_and_what_was_drawn_is_kept(tmp_path, error):
    generator = Faulty(faults={5: error})
    with pytest.raises(type(error)) as caught:
        _service(tmp_path, generator).generate(_requests(*range(12)))
    assert caught.value is error
    assert [one.request.seed for one in GeneratedImageStore(tmp_path)] == [0, 1, 2, 3]
    assert generator.calls == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert all(one.is_kept for one in _service(tmp_path, Faulty()).generate(_requests(*range(12))))


def test_draw__a_limit_of_new_images(tmp_path):
    service = _service(tmp_path, max_new=6)
    with pytest.raises(ConfigError, match=r"6 new images.*4 are still wanted.*max_images"):
        service.generate(_requests(*range(10)))
    assert service.n_new == 6
    assert len(service.generate(_requests(*range(6)))) == 6
    assert len(_service(tmp_path, max_new=4).generate(_requests(*range(10)))) == 10


def test_draw__another_gate_judges_anew_without_drawing(tmp_path):
    generator = Faulty(faults={2: BAD["copy"][0], 3: BAD["unsafe"][0], 4: BAD["black"][0]})
    requests = _requests(*range(6))
    before = _service(tmp_path, generator).generate(requests)
    n_calls = len(generator.calls)
    lenient = _service(
        tmp_path,
        generator,
        quality=QualityCheck(near_duplicate_bits=None, dark_share=1.1, least_deviation=-1.0),
    )
    assert [one.rejected_by for one in lenient.generate(requests)] == ["", "", "", "unsafe", "", ""]
    assert len(generator.calls) == n_calls
    assert lenient.n_new == 0
    assert _service(tmp_path, generator).generate(requests) == before


def _records(generated):
    return [(one.request, one.content_hash, one.verdicts) for one in generated]


def _copying():
    """Return a generator whose every third image is a copy of an earlier one, and that gives a wrong size now and then."""
    copies = {
        seed: (
            lambda good: _with(PLANTED.generate([good.prompt], seeds=[good.seed // 3])[0].image)(
                good
            )
        )
        for seed in range(3, 40, 3)
    }
    return Faulty(faults=copies | {7: BAD["another-size"][0], 11: BAD["black"][0]})


@pytest.mark.parametrize(
    "parts", [[(0, 24)], [(0, 8), (8, 16), (16, 24)], [(0, 5), (0, 17), (3, 24)], [(0, 1), (1, 24)]]
)
def test_draw__verdicts_do_not_depend_on_how_a_series_is_asked_for(tmp_path, parts):
    whole = _service(tmp_path / "whole", _copying(), batch_size=8).generate(_requests(*range(24)))
    assert {one.rejected_by for one in whole} == {"", "near-duplicate", "wrong-size", "black"}
    for name, is_new in (("same", False), ("new", True)):
        service = _service(tmp_path / name, _copying(), batch_size=3)
        for first, last in parts:
            service = _service(tmp_path / name, _copying(), batch_size=5) if is_new else service
            service.generate(_requests(*range(first, last)))
            service.generate(_requests(first, prompt="a red star"))
        assert _records(service.generate(_requests(*range(24)))) == _records(whole)


def test_draw__another_studio_beside(tmp_path):
    one, other = _service(tmp_path, _copying()), _service(tmp_path, _copying())
    for start in range(0, 24, 4):
        (one if start % 8 else other).generate(_requests(*range(start, start + 4)))
    whole = _service(tmp_path / "whole", _copying()).generate(_requests(*range(24)))
    assert _records(one.generate(_requests(*range(24)))) == _records(whole)


def test_studio_for__takes_the_gate_from_the_settings(tmp_path):
    chosen = {"embedder": PlantedEmbedder(), "class_names": ("disc", "star")}
    requests = _requests(1) + _requests(1, prompt="a red star")
    service = service_for(Settings(), PLANTED, tmp_path, **chosen)
    assert [one.rejected_by for one in service.generate(requests)] == ["", "off-class"]
    assert service.tally() == {"kept": 1, "off-class": 1}
    without = Settings(generator=GeneratorSettings(off_class_margin=0.0))
    assert [
        one.rejected_by
        for one in service_for(without, PLANTED, tmp_path, **chosen).generate(requests)
    ] == ["", ""]
    limited = Settings(generator=GeneratorSettings(max_images=1))
    with pytest.raises(ConfigError, match="max_images"):
        service_for(limited, PLANTED, tmp_path / "other", **chosen).generate(requests)


def test_gate_for__no_comparison_with_classes_without_the_means():
    class NoText(PlantedEmbedder):
        has_text = False

    class Given(PlantedEmbedder):
        def embeddings_for(self, dataset):
            return None

    settings, names = GeneratorSettings(near_duplicate_bits=5), ("disc", "star")
    for embedder, classes in (
        (None, names),
        (NoText(), names),
        (Given(), names),
        (PlantedEmbedder(), ("disc",)),
    ):
        assert quality_check_for(settings, embedder=embedder, class_names=classes).off_class is None
    found = quality_check_for(settings, embedder=PlantedEmbedder(), class_names=names)
    assert found.off_class.margin == settings.off_class_margin
    assert (found.near_duplicate_bits, found.has_one_size) == (5, True)


class Priced(PlantedImageGenerator):
    def cost_of(self, n_images):
        return (
            Cost(amount=0.04 * n_images, currency="USD", basis="0.04 an image")
            if n_images < 1000
            else None
        )


def test_confirm_cost():
    confirm_cost(PLANTED, 10**6, GeneratorSettings())
    confirm_cost(Priced(), 100, GeneratorSettings(max_cost=4.0))
    confirm_cost(Priced(), 1000, GeneratorSettings(max_cost=4.0))
    with pytest.raises(
        ConfigError, match=r"100 images cost up to 4.00 USD \(0.04 an image\).*max_cost"
    ):
        confirm_cost(Priced(), 100, GeneratorSettings())
    with pytest.raises(ConfigError, match="price is not known"):
        confirm_cost(Priced(), 1000, GeneratorSettings())


def test_draw__an_embedder_that_is_gone_ends_the_call_but_not_the_studio(tmp_path):
    asked = []

    class Gone(PlantedEmbedder):
        def embed_prepared(self, prepared):
            asked.append(len(prepared))
            if len(asked) == 2:
                raise UnavailableError("The embedder is gone.")
            return super().embed_prepared(prepared)

    quality = quality_check_for(GeneratorSettings(), embedder=Gone(), class_names=("disc", "star"))
    generator = _copying()
    service = _service(tmp_path, generator, quality=quality, batch_size=4)
    with pytest.raises(UnavailableError, match="embedder is gone"):
        service.generate(_requests(*range(24)))
    assert [one.request.seed for one in GeneratedImageStore(tmp_path)] == [0, 1, 2, 3]
    whole = _service(tmp_path / "whole", _copying(), quality=quality, batch_size=4)
    assert _records(service.generate(_requests(*range(24)))) == _records(
        whole.generate(_requests(*range(24)))
    )


def test_draw__a_disk_that_cannot_be_written_is_an_error(tmp_path):
    service = _service(tmp_path)
    first = service.generate(_requests(0))
    content = (tmp_path / "journal.jsonl").read_bytes()
    shown = PLANTED.generate(["a green disc"], seeds=[1])[0].image
    name = hashlib.sha256(encoded(shown)).hexdigest()
    (tmp_path / "images" / name[:2]).write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        service.generate(_requests(0, 1))
    assert (tmp_path / "journal.jsonl").read_bytes() == content
    (tmp_path / "images" / name[:2]).unlink()
    assert service.generate(_requests(0, 1))[0] == first[0]
    assert service.generate(_requests(0, 1))[1].content_hash == name
