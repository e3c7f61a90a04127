import json
from dataclasses import replace

import pytest

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.project.project import Project
from weakspot.project.refine.projects import (
    contact_sheet,
    family_lines,
    refine_project,
    refine_projects,
    refinement_lines,
    refinement_page,
    write_refined_family,
    write_refinement,
)
from weakspot.project.refine.training import Refinement, RefineRequest
from weakspot.run.settings import GeneratorSettings, PartSettings, Settings
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot.testing.scenes import Scene, render

REQUEST = RefineRequest(kinds=("colour",), n_each=2, most_each=4, arms=("random", "plain"))


class Silent:
    """Knows the images of the planted generator, and generates no new ones."""

    generator_id = PlantedImageGenerator().generator_id

    def generate(self, prompts, *, seeds):
        raise AssertionError


class Choosy:
    """Refuses colours."""

    generator_id = "choosy"

    def generate(self, prompts, *, seeds):
        refused = [prompt for prompt in prompts if len(prompt.split()) > 5]
        if refused:
            raise RefusedPromptError(f"“{refused[0]}” names a colour.", fix="Name a class alone.")
        return PlantedImageGenerator().generate(prompts, seeds=seeds)


@pytest.fixture(scope="module")
def make(tmp_path_factory, manifest, world):
    settings = Settings(
        language=PartSettings(name="planted"), generator=GeneratorSettings(name="planted")
    )

    def made(name, number=0):
        folder = tmp_path_factory.mktemp(f"refined-{number}") / name
        project = Project.create(
            folder,
            data=str(manifest),
            classifier=planted_classifier(world),
            embedder=PlantedEmbedder(),
            settings=settings,
        )
        project.ingest()
        return project

    return made


@pytest.fixture(scope="module")
def project(make):
    return make("one")


@pytest.fixture(scope="module")
def refined(project):
    return refine_project(project, REQUEST)


def test_refine_project__images_are_drawn_gated_classified_and_trained_on(refined, project):
    record = refined.refinement
    assert record.name == "one"
    assert [arm.arm for arm in record.arms] == ["refine", "random", "plain"]
    assert record.arms[0].n_images + sum(record.rejected.values()) >= sum(
        one.n_asked for one in record.arms[0].prompts
    )
    assert record.made_from["generator_id"] == PlantedImageGenerator().generator_id
    assert record.made_from["seed"] == project.settings.seed
    assert record.made_from["request"]["n_each"] == 2
    assert set(record.made_from["inputs"]["one"]) >= {"samples", "classifier", "encoder"}
    assert record.made_from["versions"]["weakspot"]
    assert all(images for images in refined.shown.values())


def test_refine_project__the_second_time_nothing_is_drawn_or_classified(
    refined, project, manifest, world
):
    class Tired:
        def __getattr__(self, name):
            return getattr(planted_classifier(world), name)

        def classify(self, prepared):
            raise AssertionError

    again = Project(
        project.folder, project.settings, classifier=Tired(), embedder=PlantedEmbedder()
    )
    assert (
        refine_project(again, REQUEST, generator=Silent()).refinement.arms
        == refined.refinement.arms
    )


def test_refine_project__everything_refused_says_what_can_be_drawn(project):
    with pytest.raises(RefusedPromptError, match="can generate none of") as caught:
        refine_project(project, REQUEST, generator=Choosy())
    assert caught.value.fix == "Name a class alone."


def test_refine_project__features_are_not_known(make, world):
    class Mute:
        def __getattr__(self, name):
            return getattr(planted_classifier(world), name)

        classifier_id = "mute"

        def classify(self, prepared):
            said = planted_classifier(world).classify(prepared)
            return type(said)(probabilities=said.probabilities)

    opened = make("mute", 2)
    without = Project(opened.folder, opened.settings, classifier=Mute(), embedder=PlantedEmbedder())
    with pytest.raises(ModelError, match="last layer are not known"):
        refine_project(without, REQUEST)


def test_write_refinement__page_markdown_record_sheet_and_layer(refined, tmp_path):
    files = write_refinement(refined, tmp_path / "out")
    assert [file.name for file in files] == [
        "refinement.html",
        "refinement.md",
        "refinement.json",
        "refined_head.safetensors",
        "refinement.png",
    ]
    assert Refinement.model_validate_json(files[2].read_text()) == refined.refinement
    page, text = files[0].read_text(), files[1].read_text()
    for words in ("held-out", "random", "A photo of", "data:image/jpeg"):
        assert words in page
    assert "| refine |" in text
    assert "http" not in page.replace("http://www.w3.org", "")
    assert json.loads(files[2].read_text())["record_version"] == 1


def test_refinement_lines__one_line_an_arm_with_counts(refined):
    lines = list(refinement_lines(refined.refinement))
    held = refined.refinement.arms[0].held_out
    assert f"of {held.total} held-out failures" in lines[0]
    row = next(line for line in lines if line.startswith("refine "))
    assert f"{held.count}/{held.total}" in row


def test_refinement_page__names_are_text_and_not_markup(refined):
    arm = refined.refinement.arms[0]
    prompts = tuple(one.model_copy(update={"class_name": "<b>disc"}) for one in arm.prompts)
    changed = refined.refinement.model_copy(
        update={"arms": (arm.model_copy(update={"prompts": prompts}),), "name": "<i>one"}
    )
    page = refinement_page(changed, None)
    assert "&lt;b&gt;disc" in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_contact_sheet__nothing_to_show():
    assert contact_sheet({"A photo": []}) is None


def test_refine_project__mixed_training_images_are_seen_by_the_classifier(project, world):
    planted, seen = planted_classifier(world), []

    class Tolerant:
        """Takes an image without a marker, which a mixed one is, for a plain scene."""

        def __getattr__(self, name):
            return getattr(planted, name)

        def prepare(self, image):
            try:
                return planted.prepare(image)
            except ModelError:
                seen.append(image)
                return planted.prepare(render(Scene()))

    again = Project(
        project.folder, project.settings, classifier=Tolerant(), embedder=PlantedEmbedder()
    )
    request = replace(REQUEST, arms=("cutmix-pixels",), debug_weight=0.1)
    refined, mixed = refine_project(again, request).refinement.arms
    assert (mixed.arm, mixed.n_images) == ("cutmix-pixels", refined.n_images)
    assert len(seen) > refined.n_images / 3
    assert mixed.debug_weight == refined.debug_weight


def test_refine_projects__one_set_for_two_projects(project, make, tmp_path):
    other = make("two", 3)
    family = refine_projects([project, other], REQUEST, kind=2, source="two")
    record = family.refinement
    assert (record.kind, record.source) == (2, "two")
    assert [model.name for model in record.models] == ["one", "two"]
    # The same classifier on the same images: one's own set is the other's.
    assert record.shared.count == record.shared.total
    files = write_refined_family(family, tmp_path)
    assert {file.name for file in files} >= {
        "refinement.html",
        "one_head.safetensors",
        "two_head.safetensors",
    }
    assert "from the failures of two alone (type 2)" in next(iter(family_lines(record)))


def test_refine_projects__options_that_do_not_go_together(project):
    with pytest.raises(ConfigError, match="for --type 2"):
        refine_projects([project, project], REQUEST, kind=1, source="one")
    with pytest.raises(ConfigError, match="different names"):
        refine_projects([project, project], REQUEST)
