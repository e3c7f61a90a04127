from dataclasses import dataclass

import numpy as np
import pytest

import weakspot
from weakspot.core.errors import ConfigError
from weakspot.core.roles import ClassifierOutput
from weakspot.generate.adversarial_sources import ModelUnderTest
from weakspot.project.generated_findings import classifier_of, confirm_findings, fails
from weakspot.project.project import Project
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier

GREEN, DARK = "a photo of a green disc", "a photo of a disc in the dark"


@dataclass(frozen=True)
class Always:
    """Calls everything a disc."""

    class_names: tuple[str, ...] = ("star", "disc")
    classifier_id: str = "always"

    def prepare(self, image):
        return np.asarray(image)

    def classify(self, prepared):
        return ClassifierOutput(
            probabilities=np.tile(np.float32([0.1, 0.9]), (len(prepared), 1)), features=None
        )


@pytest.fixture(scope="module")
def found(tmp_path_factory, world, manifest):
    project = Project.create(
        tmp_path_factory.mktemp("confirmed"),
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=weakspot.Settings(generator={"name": "planted"}),
    )
    project.ingest()
    others = [
        ModelUnderTest(name="same", classifier=planted_classifier(world)),
        ModelUnderTest(name="always", classifier=Always()),
    ]
    return confirm_findings(project, "disc", [GREEN, DARK], others=others, n_each=72)


def test_confirm_findings__planted_colour_is_confirmed_and_the_light_is_not(found):
    green, dark = found.series.rates
    assert found.series.generator_id == PlantedImageGenerator().generator_id
    assert (green.caption, green.prompt, green.pairs) == (GREEN, GREEN, 72)
    lines = list(found.lines())
    assert lines[1].strip().startswith("Confirmed. ")
    assert lines[2].strip().startswith("Not confirmed. ")
    assert green.p_after_looks < 0.05 < dark.p_after_looks


def test_confirm_findings__other_classifiers_see_the_same_images(found):
    same = {one.caption: one for one in found.elsewhere if one.model == "same"}
    green = found.series.rates[0]
    assert same[GREEN].with_it.count == green.share.count
    assert same[GREEN].without.count == found.series.baseline.share.count
    assert same[GREEN].p_value < 0.05 < same[DARK].p_value
    always = [one for one in found.elsewhere if one.model == "always"]
    assert [(one.with_it.count, one.without.count, one.p_value) for one in always] == [
        (0, 0, 1.0)
    ] * 2
    assert "may be chance" in always[0].sentence()
    assert any("same fails on" in line for line in found.lines())


def test_other_classifier__class_that_it_does_not_know(found):
    other = ModelUnderTest(name="always", classifier=Always())
    with pytest.raises(ConfigError, match="does not know the class 'whale'"):
        fails(other, [], "whale", weakspot.Settings().failure.criterion())


def test_other_classifier__folder_without_a_classifier(tmp_path):
    (tmp_path / "weakspot.toml").write_text("")
    with pytest.raises(ConfigError, match="no classifier that could be asked"):
        classifier_of(tmp_path)
