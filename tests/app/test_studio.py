import hashlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image

from weakspot.app.config import GeneratorSettings, Settings
from weakspot.app.developing import encoded
from weakspot.app.studio import Studio, confirm_cost, gate_for, studio_for
from weakspot.core.drawn import PASS, PictureOrder
from weakspot.core.errors import ConfigError, MissingExtraError, ModelError, RefusedPromptError, StoreError, UnavailableError
from weakspot.core.roles import Cost, GeneratedPicture
from weakspot.generate.gate import Gate
from weakspot.store.drawings import Drawings
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator

PLANTED = PlantedImageGenerator()


def _orders(*seeds, prompt="a green disc", class_name="disc"):
    return [PictureOrder(class_name=class_name, prompt=prompt, seed=seed) for seed in seeds]


@dataclass
class Faulty:
    """Draws planted pictures, but does what it is told to do for some seeds and prompts; keeps a log of calls."""

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


def _with(picture, **more):
    return lambda good: GeneratedPicture(picture=picture, prompt=good.prompt, seed=good.seed, generator_id="faulty", **more)


def _studio(folder, generator=PLANTED, **more):
    return Studio(generator, Drawings(folder), **({"gate": Gate(), "batch_size": 4} | more))


def test_draw__one_record_an_order_in_their_order(tmp_path):
    orders = _orders(3, 1, 2, 1) + _orders(1, prompt="a star", class_name="star")
    studio = _studio(tmp_path, batch_size=2)
    drawn = studio.draw(orders)
    assert [one.order for one in drawn] == orders
    assert drawn[1] == drawn[3]
    assert all(one.is_kept and one.generator_id == PLANTED.generator_id for one in drawn)
    assert studio.tally() == {"kept": 4}
    assert studio.n_new == 4
    for one in drawn:
        (expected,) = PLANTED.generate([one.order.prompt], seeds=[one.order.seed])
        assert studio.picture(one).tobytes() == expected.picture.tobytes()


def test_draw__nothing_twice(tmp_path):
    generator = Faulty()
    first = _studio(tmp_path, generator)
    drawn = first.draw(_orders(*range(6)))
    assert first.draw(_orders(2, 5)) == [drawn[2], drawn[5]]
    second = _studio(tmp_path, generator)
    assert second.draw(_orders(*range(4, 9)))[:2] == drawn[4:]
    assert generator.calls == [[0, 1, 2, 3], [4, 5], [6, 7, 8]]
    assert (first.n_new, second.n_new) == (6, 3)
    assert second.tally() == {"kept": 5}


def test_draw__progress(tmp_path):
    told = []
    studio = _studio(tmp_path, progress=lambda done, total: told.append((done, total)))
    studio.draw(_orders(1, 2))
    studio.draw(_orders(*range(1, 8)))
    studio.draw(_orders(1))
    assert told == [(0, 2), (2, 2), (2, 2), (2, 7), (6, 7), (7, 7), (7, 7)]


BAD = {
    "raises": (RuntimeError("boom"), "failed", "RuntimeError: boom"),
    "none": ("none", "failed", "no picture came"),
    "a-number": (3, "failed", "no picture came"),
    "too-few": ("missing", "failed", "0 pictures for 1 prompts"),
    "no-picture": (_with(None), "failed", "not a picture"),
    "an-array": (_with(np.zeros((8, 8, 3))), "failed", "not a picture"),
    "bad-verdicts": (_with(Image.new("RGB", (64, 64)), verdicts=3), "failed", "not a picture"),
    "black": (_with(Image.new("RGB", (64, 64))), "black", "nearly black"),
    "blank": (_with(Image.new("RGB", (64, 64), "red")), "blank", "deviation"),
    "size-zero": (_with(Image.new("RGB", (0, 64))), "wrong-size", "0 x 64"),
    "tiny": (_with(Image.new("RGB", (3, 3))), "wrong-size", "3 x 3"),
    "another-size": (
        lambda good: _with(good.picture.resize((80, 80)))(good),
        "wrong-size",
        "others of this generator have 64 x 64",
    ),
    "nan": (_with(Image.fromarray(np.full((64, 64), np.nan, dtype=np.float32))), "not-finite", "not finite"),
    "unsafe": (lambda good: _with(good.picture, verdicts={"unsafe": "nudity 0.9"})(good), "unsafe", "nudity 0.9"),
    "copy": (lambda good: _with(PLANTED.generate([good.prompt], seeds=[0])[0].picture)(good), "near-duplicate", "seed 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_draw__whatever_comes_is_a_verdict(tmp_path, name):
    fault, gate, said = BAD[name]
    studio = _studio(tmp_path, Faulty(faults={5: fault}), batch_size=3)
    drawn = studio.draw(_orders(*range(9)))
    assert [one.rejected_by for one in drawn] == [gate if place == 5 else "" for place in range(9)]
    assert said in drawn[5].verdicts[gate]
    assert not drawn[5].is_kept
    assert studio.tally() == {"kept": 8, gate: 1}


def test_draw__own_verdicts_that_pass_and_parents_are_kept(tmp_path):
    fault = {1: lambda good: _with(good.picture, verdicts={"unsafe": PASS}, parents=("a", "b"))(good)}
    (drawn,) = _studio(tmp_path, Faulty(faults=fault)).draw(_orders(1))
    assert drawn.is_kept
    assert next(iter(drawn.verdicts.items())) == ("unsafe", PASS)
    assert drawn.parents == ("a", "b")


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "CMYK", "I;16", "1"])
def test_draw__other_modes_become_rgb(tmp_path, mode):
    fault = (
        {1: lambda good: _with(good.picture.convert(mode))(good)}
        if mode != "I;16"
        else {1: lambda good: _with(Image.fromarray(np.asarray(good.picture.convert("L")).astype(np.uint16) * 257))(good)}
    )
    studio = _studio(tmp_path, Faulty(faults=fault))
    (drawn,) = studio.draw(_orders(1))
    assert drawn.is_kept
    assert studio.picture(drawn).mode == "RGB"


def test_draw__a_batch_that_fails_is_asked_again_one_by_one(tmp_path):
    generator = Faulty(faults={2: ValueError("bad seed")})
    drawn = _studio(tmp_path, generator).draw(_orders(*range(6)))
    assert generator.calls == [[0, 1, 2, 3], [0], [1], [2], [3], [4, 5]]
    assert [one.is_kept for one in drawn] == [True, True, False, True, True, True]


def test_draw__failures_are_tried_again_by_the_next_studio_only(tmp_path):
    generator = Faulty(faults={2: ValueError("bad seed")})
    first = _studio(tmp_path, generator)
    first.draw(_orders(*range(4)))
    n_calls = len(generator.calls)
    assert first.draw(_orders(2))[0].rejected_by == "failed"
    assert len(generator.calls) == n_calls
    generator.faults.clear()
    second = _studio(tmp_path, generator)
    assert second.draw(_orders(*range(4)))[2].is_kept
    assert generator.calls[n_calls:] == [[2]]
    assert second.tally() == {"kept": 4}


def test_draw__a_generator_that_never_works_is_given_up_soon(tmp_path):
    generator = Faulty(faults={"a green disc": RuntimeError("no weights")})
    with pytest.raises(ModelError, match=r"2 times in a row.*no weights"):
        _studio(tmp_path, generator).draw(_orders(*range(12)))
    assert generator.calls == [[0, 1, 2, 3], [0], [1]]


@pytest.mark.parametrize("fault", [RuntimeError("out of memory"), "none"])
def test_draw__a_generator_that_breaks_is_given_up_later(tmp_path, fault):
    generator = Faulty(faults=dict.fromkeys(range(3, 100), fault))
    with pytest.raises(ModelError, match=r"times in a row"):
        _studio(tmp_path, generator).draw(_orders(*range(40)))
    kept = list(Drawings(tmp_path))
    assert [one.is_kept for one in kept[:3]] == [True] * 3
    assert 16 <= sum(one.rejected_by == "failed" for one in kept) < 20
    generator.faults = dict.fromkeys(range(3, 12), fault)
    assert sum(one.is_kept for one in _studio(tmp_path, generator).draw(_orders(*range(40)))) == 31


def test_draw__refused_prompts_are_raised_after_everything_else(tmp_path):
    refusal = RefusedPromptError("It cannot draw a zebra.", fix="Say disc or star.")
    generator = Faulty(faults={"a zebra": refusal})
    orders = _orders(1, 2) + _orders(1, 2, 3, prompt="a zebra") + _orders(3, 4)
    studio = _studio(tmp_path, generator)
    for _ in range(2):
        with pytest.raises(RefusedPromptError, match="zebra") as caught:
            studio.draw(orders)
        assert caught.value is refusal
    assert generator.calls == [[1, 2, 1, 2], [1], [2], [1], [3, 4]]
    assert [one.order for one in Drawings(tmp_path)] == _orders(1, 2, 3, 4)
    assert len(studio.draw(_orders(1, 2, 3, 4))) == 4


def test_draw__several_refused_prompts_are_all_named(tmp_path):
    faults = {name: RefusedPromptError(f"It cannot draw {name}.", fix="Say disc.") for name in ("a zebra", "a yak")}
    with pytest.raises(RefusedPromptError, match=r"(?s)a zebra.*a yak.*Say disc"):
        _studio(tmp_path, Faulty(faults=faults)).draw(_orders(1, prompt="a zebra") + _orders(1, prompt="a yak") + _orders(1))


@pytest.mark.parametrize(
    "error", [UnavailableError("The service is gone."), MissingExtraError("torch", extra="torch", purpose="Generators")]
)
def test_draw__a_generator_that_is_gone_ends_the_call_and_what_was_drawn_is_kept(tmp_path, error):
    generator = Faulty(faults={5: error})
    with pytest.raises(type(error)) as caught:
        _studio(tmp_path, generator).draw(_orders(*range(12)))
    assert caught.value is error
    assert [one.order.seed for one in Drawings(tmp_path)] == [0, 1, 2, 3]
    assert generator.calls == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert all(one.is_kept for one in _studio(tmp_path, Faulty()).draw(_orders(*range(12))))


def test_draw__an_interruption_loses_the_batch_under_way(tmp_path):
    generator = Faulty(faults={9: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        _studio(tmp_path, generator).draw(_orders(*range(12)))
    assert [one.order.seed for one in Drawings(tmp_path)] == list(range(8))
    generator.faults.clear()
    _studio(tmp_path, generator).draw(_orders(*range(12)))
    assert generator.calls == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [8, 9, 10, 11]]


def test_draw__a_limit_of_new_pictures(tmp_path):
    studio = _studio(tmp_path, max_new=6)
    with pytest.raises(ConfigError, match=r"6 new pictures.*4 are still wanted.*max_pictures"):
        studio.draw(_orders(*range(10)))
    assert studio.n_new == 6
    assert len(studio.draw(_orders(*range(6)))) == 6
    assert len(_studio(tmp_path, max_new=4).draw(_orders(*range(10)))) == 10


def test_draw__a_lost_picture_is_drawn_again(tmp_path):
    drawn = _studio(tmp_path).draw(_orders(1, 2, 3))
    (tmp_path / drawn[1].file).unlink()
    studio = _studio(tmp_path)
    assert studio.draw(_orders(1, 2, 3)) == drawn
    assert studio.n_new == 1


def test_draw__another_gate_judges_anew_without_drawing(tmp_path):
    generator = Faulty(faults={2: BAD["copy"][0], 3: BAD["unsafe"][0], 4: BAD["black"][0]})
    orders = _orders(*range(6))
    before = _studio(tmp_path, generator).draw(orders)
    n_calls = len(generator.calls)
    lenient = _studio(tmp_path, generator, gate=Gate(near_duplicate_bits=None, dark_share=1.1, least_deviation=-1.0))
    assert [one.rejected_by for one in lenient.draw(orders)] == ["", "", "", "unsafe", "", ""]
    assert len(generator.calls) == n_calls
    assert lenient.n_new == 0
    assert _studio(tmp_path, generator).draw(orders) == before


def _records(drawn):
    return [(one.order, one.content_hash, one.verdicts) for one in drawn]


def _copying():
    """Return a generator whose every third picture is a copy of an earlier one, and that gives a wrong size now and then."""
    copies = {
        seed: (lambda good: _with(PLANTED.generate([good.prompt], seeds=[good.seed // 3])[0].picture)(good))
        for seed in range(3, 40, 3)
    }
    return Faulty(faults=copies | {7: BAD["another-size"][0], 11: BAD["black"][0]})


@pytest.mark.parametrize("parts", [[(0, 24)], [(0, 8), (8, 16), (16, 24)], [(0, 5), (0, 17), (3, 24)], [(0, 1), (1, 24)]])
def test_draw__verdicts_do_not_depend_on_how_a_series_is_asked_for(tmp_path, parts):
    whole = _studio(tmp_path / "whole", _copying(), batch_size=8).draw(_orders(*range(24)))
    assert {one.rejected_by for one in whole} == {"", "near-duplicate", "wrong-size", "black"}
    for name, is_new in (("same", False), ("new", True)):
        studio = _studio(tmp_path / name, _copying(), batch_size=3)
        for first, last in parts:
            studio = _studio(tmp_path / name, _copying(), batch_size=5) if is_new else studio
            studio.draw(_orders(*range(first, last)))
            studio.draw(_orders(first, prompt="a red star"))
        assert _records(studio.draw(_orders(*range(24)))) == _records(whole)


def test_draw__another_studio_beside(tmp_path):
    one, other = _studio(tmp_path, _copying()), _studio(tmp_path, _copying())
    for start in range(0, 24, 4):
        (one if start % 8 else other).draw(_orders(*range(start, start + 4)))
    whole = _studio(tmp_path / "whole", _copying()).draw(_orders(*range(24)))
    assert _records(one.draw(_orders(*range(24)))) == _records(whole)


def test_studio_for__takes_the_gate_from_the_settings(tmp_path):
    chosen = {"embedder": PlantedEmbedder(), "class_names": ("disc", "star")}
    orders = _orders(1) + _orders(1, prompt="a red star")
    studio = studio_for(Settings(), PLANTED, tmp_path, **chosen)
    assert [one.rejected_by for one in studio.draw(orders)] == ["", "off-class"]
    assert studio.tally() == {"kept": 1, "off-class": 1}
    without = Settings(generator=GeneratorSettings(off_class_margin=0.0))
    assert [one.rejected_by for one in studio_for(without, PLANTED, tmp_path, **chosen).draw(orders)] == ["", ""]
    limited = Settings(generator=GeneratorSettings(max_pictures=1))
    with pytest.raises(ConfigError, match="max_pictures"):
        studio_for(limited, PLANTED, tmp_path / "other", **chosen).draw(orders)


def test_gate_for__no_comparison_with_classes_without_the_means():
    class NoText(PlantedEmbedder):
        has_text = False

    class Given(PlantedEmbedder):
        def vectors_for(self, dataset):
            return None

    settings, names = GeneratorSettings(near_duplicate_bits=5), ("disc", "star")
    for embedder, classes in ((None, names), (NoText(), names), (Given(), names), (PlantedEmbedder(), ("disc",))):
        assert gate_for(settings, embedder=embedder, class_names=classes).off_class is None
    found = gate_for(settings, embedder=PlantedEmbedder(), class_names=names)
    assert found.off_class.margin == settings.off_class_margin
    assert (found.near_duplicate_bits, found.has_one_size) == (5, True)


class Priced(PlantedImageGenerator):
    def cost_of(self, n_pictures):
        return Cost(amount=0.04 * n_pictures, currency="USD", basis="0.04 a picture") if n_pictures < 1000 else None


def test_confirm_cost():
    confirm_cost(PLANTED, 10**6, GeneratorSettings())
    confirm_cost(Priced(), 100, GeneratorSettings(max_cost=4.0))
    confirm_cost(Priced(), 1000, GeneratorSettings(max_cost=4.0))
    with pytest.raises(ConfigError, match=r"100 pictures cost up to 4.00 USD \(0.04 a picture\).*max_cost"):
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

    gate = gate_for(GeneratorSettings(), embedder=Gone(), class_names=("disc", "star"))
    generator = _copying()
    studio = _studio(tmp_path, generator, gate=gate, batch_size=4)
    with pytest.raises(UnavailableError, match="embedder is gone"):
        studio.draw(_orders(*range(24)))
    assert [one.order.seed for one in Drawings(tmp_path)] == [0, 1, 2, 3]
    whole = _studio(tmp_path / "whole", _copying(), gate=gate, batch_size=4)
    assert _records(studio.draw(_orders(*range(24)))) == _records(whole.draw(_orders(*range(24))))


def test_draw__a_disk_that_cannot_be_written_is_an_error(tmp_path):
    studio = _studio(tmp_path)
    first = studio.draw(_orders(0))
    content = (tmp_path / "journal.jsonl").read_bytes()
    shown = PLANTED.generate(["a green disc"], seeds=[1])[0].picture
    name = hashlib.sha256(encoded(shown)).hexdigest()
    (tmp_path / "pictures" / name[:2]).write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written"):
        studio.draw(_orders(0, 1))
    assert (tmp_path / "journal.jsonl").read_bytes() == content
    (tmp_path / "pictures" / name[:2]).unlink()
    assert studio.draw(_orders(0, 1))[0] == first[0]
    assert studio.draw(_orders(0, 1))[1].content_hash == name
