import os
from dataclasses import dataclass

import pytest

from weakspot.app.drawing_work import FEWEST_ORDERS, is_drawn_elsewhere
from weakspot.app.studio import Studio
from weakspot.core.drawn import PictureOrder
from weakspot.core.errors import ConfigError, RefusedPromptError, UnavailableError
from weakspot.core.roles import Cost
from weakspot.engine.processes import ProcessEngine
from weakspot.generate.compose.composing import ComposeGenerator
from weakspot.generate.gate import Gate
from weakspot.store.drawings import Drawings
from weakspot.testing.fakes import PlantedImageGenerator

ENGINE = ProcessEngine(n_workers=1)


@dataclass(frozen=True, kw_only=True)
class Told(PlantedImageGenerator):
    """Does what the prompt says."""

    process: int = 0

    def generate(self, prompts, *, seeds):
        if os.getpid() == self.process:
            raise ValueError("It was asked in the process that it must not be asked in.")
        if any("fly" in prompt for prompt in prompts):
            raise RefusedPromptError("It cannot draw a fly.")
        if any("outage" in prompt for prompt in prompts):
            raise UnavailableError("It is down.")
        if any("death" in prompt for prompt in prompts) and 7 in seeds:
            os._exit(9)
        return super().generate(prompts, seeds=seeds)


class Charging(PlantedImageGenerator):
    def cost_of(self, n_pictures):
        return Cost(amount=1.0, currency="EUR", basis="each")


def orders(n_orders, prompt="a green disc"):
    return [PictureOrder(class_name="disc", prompt=prompt, seed=seed) for seed in range(n_orders)]


def studio(folder, *, engine=ENGINE, process=None, **more):
    generator = Told(process=os.getpid() if process is None else process)
    return Studio(generator, Drawings(folder), gate=Gate(), batch_size=16, engine=engine, **more)


def test_draw__many_pictures_are_drawn_elsewhere_and_are_the_same(tmp_path):
    told = []
    wanted = orders(FEWEST_ORDERS) + orders(2, "a star")
    there = studio(tmp_path / "there", progress=lambda done, total: told.append((done, total)))
    found = there.draw(wanted)
    here = studio(tmp_path / "here", engine=None, process=0).draw(wanted)
    assert [(one.order, one.content_hash, one.verdicts) for one in found] == [
        (one.order, one.content_hash, one.verdicts) for one in here
    ]
    assert told[0] == (0, 66)
    assert told[-1] == (66, 66)
    assert there.n_new == 66


def test_draw__refused_prompts_a_limit_and_a_generator_that_is_gone(tmp_path):
    with pytest.raises(RefusedPromptError, match="cannot draw a fly"):
        studio(tmp_path / "refused").draw(orders(FEWEST_ORDERS) + orders(1, "a fly"))
    assert len(Drawings(tmp_path / "refused")) == FEWEST_ORDERS
    limited = studio(tmp_path / "limited", max_new=20)
    with pytest.raises(ConfigError, match=r"20 new pictures.*44 are still wanted"):
        limited.draw(orders(FEWEST_ORDERS))
    assert (limited.n_new, len(Drawings(tmp_path / "limited"))) == (20, 20)
    with pytest.raises(UnavailableError, match="It is down"):
        studio(tmp_path / "gone").draw(orders(48) + orders(16, "an outage"))
    assert len(Drawings(tmp_path / "gone")) == 48


def test_draw__an_order_that_kills_its_worker_has_failed(tmp_path):
    drawn = studio(tmp_path).draw(orders(FEWEST_ORDERS) + orders(8, "death"))
    failed = [one for one in drawn if not one.is_kept]
    assert [(one.order.prompt, one.order.seed) for one in failed] == [("death", 7)]
    assert "died again and again" in failed[0].verdicts["failed"]


def test_is_drawn_elsewhere__few_pictures_charged_ones_and_composed_ones_are_drawn_here():
    many = FEWEST_ORDERS
    assert is_drawn_elsewhere(PlantedImageGenerator(), many)
    assert not is_drawn_elsewhere(PlantedImageGenerator(), many - 1)
    assert not is_drawn_elsewhere(Charging(), many)
    assert not is_drawn_elsewhere(ComposeGenerator(), many)
