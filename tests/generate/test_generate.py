import json

import pytest
from tests.build import planted_project, project_of

from weakspot.core.errors import ConfigError, DataError, RefusedPromptError
from weakspot.generate.generated_folder import GenerateRequest
from weakspot.run.settings import GeneratorSettings, Settings


@pytest.fixture(scope="module")
def project(tmp_path_factory, world, manifest):
    settings = Settings(
        generator=GeneratorSettings(name="planted", max_images=30),
        verify={"splits": ("validation", "test")},
    )
    made = project_of(tmp_path_factory.mktemp("generated"), world, manifest, settings=settings)
    made.ingest()
    made.verify(made.discover().run_id)
    return made


def test_generate_images__of_confirmed_slices(project, tmp_path):
    facts = project.generate(tmp_path / "out", GenerateRequest(n_each=5))
    assert list(facts.prompts) == ["disc"]
    assert any("green" in prompt for prompt in facts.prompts["disc"])
    assert sum(facts.kept.values()) == len(list((tmp_path / "out" / "disc").glob("*.png")))
    assert facts.model_validate(json.loads(facts.model_dump_json())) == facts
    assert any("images of “" in line for line in facts.lines())


def test_generate_images__of_a_person_s_captions(project, tmp_path):
    facts = project.generate(
        tmp_path / "out",
        GenerateRequest(class_name="star", captions=("red", "in the dark"), n_each=2),
    )
    assert facts.prompts == {"star": ("a photo of a red star", "a photo of a star in the dark")}


@pytest.mark.parametrize(
    ("request_", "error", "told"),
    [
        (GenerateRequest(captions=("red",)), ConfigError, "need a class"),
        (GenerateRequest(class_name="whale", captions=("red",)), DataError, "whale"),
        (
            GenerateRequest(class_name="star", captions=("red",), n_each=31),
            ConfigError,
            "more than the generator may",
        ),
    ],
)
def test_generate_images__what_cannot_be_is_refused(project, tmp_path, request_, error, told):
    with pytest.raises(error, match=told):
        project.generate(tmp_path / "out", request_)
    assert not (tmp_path / "out").exists()


def test_generate_images__what_compose_cannot_draw_is_left_out_and_told(tmp_path):
    # Every image of the class is cut out by a real segmenter, so there are few.
    composing = planted_project(tmp_path, 240, more="[generator]\noptions = {side = 64}\n")
    asked = GenerateRequest(class_name="disc", captions=("red", "singing"), n_each=2)
    facts = composing.generate(tmp_path / "out", asked)
    assert facts.prompts == {"disc": ("a photo of a red disc",)}
    assert list(facts.refused) == ["a photo of a singing disc"]
    assert any("Left out" in line for line in facts.lines())
    with pytest.raises(RefusedPromptError, match="singing"):
        composing.generate(
            tmp_path / "other", GenerateRequest(class_name="disc", captions=("singing",))
        )
