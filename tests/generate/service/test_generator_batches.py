import os
from dataclasses import dataclass

import pytest

from weakspot.core.errors import ConfigError, RefusedPromptError, UnavailableError
from weakspot.core.generated import GenerationRequest
from weakspot.core.roles import Cost
from weakspot.data.engine.processes import ProcessEngine
from weakspot.generate.compose.generator import ComposeGenerator
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import MIN_REQUESTS, GeneratorService, is_generated_elsewhere
from weakspot.store.generated_images import GeneratedImageStore
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
            raise RefusedPromptError("It cannot generate a fly.")
        if any("outage" in prompt for prompt in prompts):
            raise UnavailableError("It is down.")
        if any("death" in prompt for prompt in prompts) and 7 in seeds:
            os._exit(9)
        return super().generate(prompts, seeds=seeds)


class Charging(PlantedImageGenerator):
    def cost_of(self, n_images):
        return Cost(amount=1.0, currency="EUR", basis="each")


def requests(n_requests, prompt="a green disc"):
    return [
        GenerationRequest(class_name="disc", prompt=prompt, seed=seed) for seed in range(n_requests)
    ]


def service(folder, *, engine=ENGINE, process=None, **more):
    generator = Told(process=os.getpid() if process is None else process)
    return GeneratorService(
        generator,
        GeneratedImageStore(folder),
        quality=QualityCheck(),
        batch_size=16,
        engine=engine,
        **more,
    )


def test_draw__many_images_are_drawn_elsewhere_and_are_the_same(tmp_path):
    told = []
    wanted = requests(MIN_REQUESTS) + requests(2, "a star")
    there = service(tmp_path / "there", progress=lambda done, total: told.append((done, total)))
    found = there.generate(wanted)
    here = service(tmp_path / "here", engine=None, process=0).generate(wanted)
    assert [(one.request, one.content_hash, one.verdicts) for one in found] == [
        (one.request, one.content_hash, one.verdicts) for one in here
    ]
    assert told[0] == (0, 66)
    assert told[-1] == (66, 66)
    assert there.n_new == 66


def test_draw__refused_prompts_a_limit_and_a_generator_that_is_gone(tmp_path):
    with pytest.raises(RefusedPromptError, match="cannot generate a fly"):
        service(tmp_path / "refused").generate(requests(MIN_REQUESTS) + requests(1, "a fly"))
    assert len(GeneratedImageStore(tmp_path / "refused")) == MIN_REQUESTS
    limited = service(tmp_path / "limited", max_new=20)
    with pytest.raises(ConfigError, match=r"20 new images.*44 are still wanted"):
        limited.generate(requests(MIN_REQUESTS))
    assert (limited.n_new, len(GeneratedImageStore(tmp_path / "limited"))) == (20, 20)
    with pytest.raises(UnavailableError, match="It is down"):
        service(tmp_path / "gone").generate(requests(48) + requests(16, "an outage"))
    assert len(GeneratedImageStore(tmp_path / "gone")) == 48


def test_draw__an_order_that_kills_its_worker_has_failed(tmp_path):
    generated = service(tmp_path).generate(requests(MIN_REQUESTS) + requests(8, "death"))
    failed = [one for one in generated if not one.is_kept]
    assert [(one.request.prompt, one.request.seed) for one in failed] == [("death", 7)]
    assert "died again and again" in failed[0].verdicts["failed"]


def test_is_drawn_elsewhere__few_images_charged_ones_and_composed_ones_are_drawn_here():
    many = MIN_REQUESTS
    assert is_generated_elsewhere(PlantedImageGenerator(), many)
    assert not is_generated_elsewhere(PlantedImageGenerator(), many - 1)
    assert not is_generated_elsewhere(Charging(), many)
    assert not is_generated_elsewhere(ComposeGenerator(), many)
