from dataclasses import dataclass

import pytest
from tests.build import planted_project

from weakspot.core.errors import DataError, RefusedPromptError
from weakspot.core.roles import Cost
from weakspot.project.project import Project
from weakspot.testing.fakes import PlantedImageGenerator
from weakspot.web.services import generate
from weakspot.web.services.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Charging(PlantedImageGenerator):
    """Costs money, and generates nothing wet."""

    price: float | None = 0.02

    def cost_of(self, n_images):
        amount = None if self.price is None else self.price * n_images
        return amount and Cost(amount=amount, currency="EUR", basis="0.02 EUR an image")

    def check_prompt(self, prompt):
        if "wet" in prompt or "xqzv" in prompt:
            raise RefusedPromptError("Nothing wet can be generated.", fix="Say only dry things.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return planted_project(
        tmp_path_factory.mktemp("drawing"), 300, more='[generator]\nname = "planted"\n'
    ).folder


@pytest.fixture
def workspace(folder):
    return Workspace(Project.open(folder))


def _with(monkeypatch, generator):
    monkeypatch.setattr(generate, "build_generator", lambda *_args, **_options: generator)


def test_setup__generator_that_takes_any_words(workspace):
    found = generate.setup(workspace)
    assert set(found.class_names) == {"disc", "square", "triangle", "star"}
    assert (found.generator, found.why_not, found.can_say) == ("planted", "", "")
    assert not found.is_charged
    assert generate.cost(workspace, 100).words == "They cost nothing."


def test_setup__generator_that_knows_what_it_can_draw__says_so(workspace, monkeypatch):
    _with(monkeypatch, Charging())
    found = generate.setup(workspace)
    assert found.is_charged
    assert found.can_say == "Say only dry things."
    wet, green = (generate.prompt_of(workspace, "disc", caption) for caption in ("wet", "green"))
    assert wet.refusal == "Nothing wet can be generated."
    assert (green.prompt, green.refusal) == ("a photo of a green disc", "")


def test_cost__charged__amount_before_anything_is_drawn(workspace, monkeypatch):
    _with(monkeypatch, Charging())
    found = generate.cost(workspace, 100)
    assert (found.is_charged, found.amount, found.currency) == (True, 2.0, "EUR")
    assert "up to 2.00 EUR" in found.words


def test_cost__price_not_known__says_so(workspace, monkeypatch):
    _with(monkeypatch, Charging(price=None))
    assert generate.cost(workspace, 100).amount is None


def test_setup__no_generator__says_why(folder):
    project = Project.open(folder)
    settings = project.settings.model_copy(
        update={"generator": project.settings.generator.model_copy(update={"name": ""})}
    )
    workspace = Workspace(Project(folder, settings))
    assert "No image generator is configured." in generate.setup(workspace).why_not
    assert "No image generator" in generate.prompt_of(workspace, "disc", "green").refusal


def test_setup__predictions_only__says_why(folder):
    workspace = Workspace(Project.open(folder))
    prepared = workspace.prepared
    object.__setattr__(prepared, "classifier", None)
    assert "only predictions" in generate.setup(workspace).why_not


def test_prompt_of__unknown_class__refused(workspace):
    with pytest.raises(DataError, match="no class"):
        generate.prompt_of(workspace, "hexagon", "green")
