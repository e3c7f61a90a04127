"""Generated images: what can be asked for and what it costs, and what is kept of what was generated."""

import shutil
from dataclasses import dataclass

import pytest
from tests.build import planted_project

from weakspot.core.errors import ConfigError, DataError, RefusedPromptError
from weakspot.core.roles import Cost
from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.testing.fakes import PlantedImageGenerator
from weakspot.web.services import generate
from weakspot.web.services.generate import counterfactual, search
from weakspot.web.services.work import do_work
from weakspot.web.services.workspace import Workspace


@pytest.fixture(scope="module")
def generated_folder(tmp_path_factory):
    """A planted project with one series of captions and one search."""
    project = planted_project(
        tmp_path_factory.mktemp("generated"), 300, more='[generator]\nname = "planted"\n'
    )
    counterfactual(
        project, no_stage_progress, class_name="disc", captions=("green", "in the dark"), n_each=16
    )
    search(project, no_stage_progress, class_name="disc", budget=200, captions=("it is green",))
    return project.folder


@pytest.fixture
def workspace(generated_folder, tmp_path):
    return Workspace(Project.open(shutil.copytree(generated_folder, tmp_path / "shapes")))


def test_counterfactual__kept_with_control_and_images(workspace):
    (kept,) = generate.kept_counterfactuals(workspace)
    assert kept.class_name == "disc"
    assert [rate.caption for rate in kept.rates] == ["green", "in the dark"]
    green = kept.rates[0]
    assert green.share.value > kept.baseline.share.value
    assert green.change_interval.low <= green.change <= green.change_interval.high
    assert kept.baseline.words == ""
    assert green.images
    failed = sum(one.fails for one in green.images)
    assert failed == green.share.count
    content = generate.generated_image(workspace, green.images[0].digest, side=64)
    assert content is not None
    assert content.startswith(b"\xff\xd8")


def test_search__kept_with_every_caption(workspace):
    (kept,) = generate.kept_searches(workspace)
    assert kept.class_name == "disc"
    assert kept.n_images <= 200
    assert kept.trials[0].caption == "it is green."
    assert kept.trials[0].phrase == "green"
    assert kept.headline.startswith("Images of “")
    digests = kept.baseline.digests
    assert all(generate.generated_image(workspace, digest, side=64) for digest in digests)


def test_counterfactual__asked_again__takes_the_place_of_the_first(workspace):
    (before,) = generate.kept_counterfactuals(workspace)
    told = []
    result = counterfactual(
        workspace.project,
        lambda stage, done, total: told.append(stage),
        class_name="disc",
        captions=("green", "in the dark"),
        n_each=16,
    )
    (after,) = generate.kept_counterfactuals(workspace)
    assert result["result_id"] == before.result_id == after.result_id
    assert after.rates == before.rates
    assert "draw" in told


def test_counterfactual__unknown_class__says_so(workspace):
    with pytest.raises(DataError, match="no class"):
        counterfactual(
            workspace.project, no_stage_progress, class_name="hexagon", captions=("green",)
        )


def test_counterfactual__bad_arguments__refused_before_anything_is_drawn(workspace):
    disc = {"class_name": "disc"}
    for given in (
        {},
        {"path": "/"},
        disc | {"captions": []},
        disc | {"captions": ["x"], "n_each": 0},
    ):
        with pytest.raises(ConfigError):
            do_work("counterfactual", workspace.project, given, no_stage_progress)


def test_kept__damaged_file__is_left_out(workspace):
    folder = workspace.project.store.data / generate.FOLDER / "counterfactuals"
    (folder / "damaged.json").write_text('{"result_id": 1')
    assert len(generate.kept_counterfactuals(workspace)) == 1


def test_keep__many_results__the_oldest_are_forgotten(workspace, monkeypatch):
    monkeypatch.setattr(generate, "MAX_KEPT", 1)
    counterfactual(
        workspace.project, no_stage_progress, class_name="disc", captions=("green",), n_each=16
    )
    (kept,) = generate.kept_counterfactuals(workspace)
    assert [rate.caption for rate in kept.rates] == ["green"]


def test_drawn_image__no_such_content__nothing(workspace):
    for digest in ("", "../../weakspot.toml", "0" * 64, "A" * 64, "0" * 63 + "/"):
        assert generate.generated_image(workspace, digest, side=64) is None


def test_drawn_image__file_with_other_content__nothing(workspace):
    path = workspace.project.store.generated / "images" / "00" / ("0" * 64 + ".png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"secret")
    assert generate.generated_image(workspace, "0" * 64, side=64) is None


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


def test_setup__no_generator__says_why(generated_folder):
    project = Project.open(generated_folder)
    settings = project.settings.model_copy(
        update={"generator": project.settings.generator.model_copy(update={"name": ""})}
    )
    workspace = Workspace(Project(generated_folder, settings))
    assert "No image generator is configured." in generate.setup(workspace).why_not
    assert "No image generator" in generate.prompt_of(workspace, "disc", "green").refusal


def test_setup__predictions_only__says_why(generated_folder):
    workspace = Workspace(Project.open(generated_folder))
    prepared = workspace.prepared
    object.__setattr__(prepared, "classifier", None)
    assert "only predictions" in generate.setup(workspace).why_not


def test_prompt_of__unknown_class__refused(workspace):
    with pytest.raises(DataError, match="no class"):
        generate.prompt_of(workspace, "hexagon", "green")
