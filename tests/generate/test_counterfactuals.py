import io
import json
from dataclasses import dataclass, replace

import pytest
from PIL import Image
from tests.build import project_of
from tests.models.tiny_servers import ImageServer, answer_of, bytes_of, read_sent

import weakspot
from weakspot.core.errors import ConfigError, DataError, ModelError, RefusedPromptError
from weakspot.generate.caption_log import LOG_FILE
from weakspot.generate.counterfactuals import CounterfactualRequest, sentence, write_counterfactuals
from weakspot.project.project import Project
from weakspot.run.settings import GeneratorSettings
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot.testing.scenes import read_marker, render

ASKED = CounterfactualRequest(class_name="disc", captions=("green", "in the dark"), n_each=72)


@dataclass(frozen=True, kw_only=True)
class Counted(PlantedImageGenerator):
    """Notes what it is asked for, and refuses what is wet."""

    asked: list

    def generate(self, prompts, *, seeds):
        if any("wet" in prompt for prompt in prompts):
            raise RefusedPromptError("Nothing wet can be generated.", fix="Ask for something dry.")
        self.asked.extend(zip(prompts, seeds, strict=True))
        return super().generate(prompts, seeds=seeds)


@pytest.fixture(scope="module")
def project(tmp_path_factory, world, manifest):
    made = project_of(
        tmp_path_factory.mktemp("what-if"),
        world,
        manifest,
        settings=weakspot.Settings(generator={"name": "planted"}),
    )
    made.ingest()
    return made


def test_counterfactual__the_planted_colour_fails_more_often_and_the_light_does_not(project):
    series = project.counterfactual(ASKED).series
    green, dark = series.rates
    assert green.share.value > series.baseline.share.value + 0.3
    assert green.p_after_looks < 0.05
    assert green.change_interval.low > 0
    assert dark.p_after_looks > 0.05
    assert green.wrong_labels
    assert set(green.wrong_labels) <= {"square", "triangle", "star"}
    assert series.generator_id == PlantedImageGenerator().generator_id


def test_counterfactual__rows_share_their_seeds_and_nothing_is_drawn_twice(project):
    generator = Counted(asked=[], side=48)
    first = project.counterfactual(ASKED, generator=generator)
    seeds = {
        prompt: [seed for asked, seed in generator.asked if asked == prompt]
        for prompt, _ in generator.asked
    }
    assert len(seeds) == 3
    assert len({tuple(own) for own in seeds.values()}) == 1
    n_generated = len(generator.asked)
    again = project.counterfactual(ASKED, generator=generator)
    assert len(generator.asked) == n_generated
    assert again.series == first.series


def test_counterfactual__every_caption_counts_as_a_look_once(project):
    before = project.counterfactual(ASKED).series.n_looks
    asked = CounterfactualRequest(
        class_name="disc", captions=("striped", "green", " striped "), n_each=4
    )
    series = project.counterfactual(asked).series
    assert (series.n_looks, len(series.rates)) == (before + 1, 2)
    other = CounterfactualRequest(class_name="star", captions=("striped",), n_each=4)
    assert project.counterfactual(other).series.n_looks == 1
    path = project.folder / LOG_FILE
    path.write_text(path.read_text() + "half a line\n[]\n")
    assert project.counterfactual(other).series.n_looks == 1
    assert json.loads(path.read_text().splitlines()[0])["caption"] == "green"


def test_counterfactual__a_refused_caption_does_not_end_the_others(project):
    asked = CounterfactualRequest(class_name="disc", captions=("wet", "green"), n_each=6)
    wet, green = project.counterfactual(asked, generator=Counted(asked=[])).series.rates
    assert "Nothing wet" in wet.note
    assert "Ask for something dry" in sentence(wet)
    assert green.share.total > 0
    only = CounterfactualRequest(class_name="disc", captions=("wet",), n_each=6)
    with pytest.raises(RefusedPromptError, match="none of the captions.*Nothing wet"):
        project.counterfactual(only, generator=Counted(asked=[]))


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        (
            CounterfactualRequest(class_name="disc", captions=(" ",)),
            ConfigError,
            "nothing to measure",
        ),
        (CounterfactualRequest(class_name="whale", captions=("green",)), DataError, "whale"),
    ],
)
def test_counterfactual__bad_questions_are_refused(project, asked, error, told):
    with pytest.raises(error, match=told):
        project.counterfactual(asked)


def test_counterfactual__a_generator_that_always_fails_is_named(project):
    class Broken(PlantedImageGenerator):
        def generate(self, prompts, *, seeds):
            raise RuntimeError("out of paint")

    with pytest.raises(ModelError, match="out of paint"):
        project.counterfactual(ASKED, generator=Broken(side=40))


def test_write_counterfactuals__page_sheet_and_record(project, tmp_path):
    result = project.counterfactual(ASKED)
    page, record, sheet = write_counterfactuals(result, tmp_path / "out")
    html = page.read_text()
    assert "in the dark" in html
    assert "data:image/jpeg;base64," in html
    assert "http" not in html.replace("http://www.w3.org", "")
    assert json.loads(record.read_text())["class_name"] == "disc"
    assert sheet.stat().st_size > 1000
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_counterfactuals(result, tmp_path / "file" / "below")


class RepaintingServer(ImageServer):
    """Gives back the planted image that it is sent, in green where that is asked for."""

    def draw(self, handler):
        sent = handler.rfile.read(int(handler.headers["Content-Length"]))
        body, files = read_sent(handler.headers["Content-Type"], sent)
        scene = read_marker(Image.open(io.BytesIO(files["image"])))
        self.bodies.append((body["prompt"], scene))
        is_green = "green" in body["prompt"]
        image = render(replace(scene, colour="green") if is_green else scene, side=48)
        stream = io.BytesIO()
        image.save(stream, format="PNG")
        self._answer(handler, (200, {}, answer_of(b64_json=bytes_of(stream.getvalue()))))


def test_counterfactual__every_sample_is_edited_once_and_is_a_pair(project, world):
    server = RepaintingServer()
    options = {"url": server.url, "model": "tiny", "side": 48, "price_per_image": 0.0}
    chosen = GeneratorSettings(name="edit-endpoint", options=options)
    editing = Project(
        project.folder,
        project.settings.model_copy(update={"generator": chosen}),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
    )
    asked = CounterfactualRequest(class_name="disc", captions=("green",), n_each=30)
    try:
        found = editing.counterfactual(asked)
    finally:
        server.close()
    unchanged, green = ([one.parent for one in row] for row in found.rows)
    assert unchanged == green
    assert len(set(green)) == len(green) == 30
    scenes = {
        prompt: {scene for said, scene in server.bodies if said == prompt}
        for prompt, _ in server.bodies
    }
    assert [len(own) for own in scenes.values()] == [30, 30]
    assert len(set(map(frozenset, scenes.values()))) == 1
    (rate,) = found.series.rates
    assert (rate.pairs, rate.parents) == (30, 30)
    assert rate.p_after_looks < 0.05
    assert rate.change_interval.low > 0
