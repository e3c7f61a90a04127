import csv
import hashlib
import json
from dataclasses import dataclass, replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

from weakspot.core.dataset import Split
from weakspot.core.errors import (
    ConfigError,
    DataError,
    ModelError,
    NotEnoughDataError,
    RefusedPromptError,
)
from weakspot.generate.adversarial import (
    COLUMNS,
    RECORD_FILE,
    TABLE_FILE,
    AdversarialEffort,
    AdversarialRequest,
    read_record,
)
from weakspot.generate.adversarial_sources import ModelUnderTest
from weakspot.project.adversarial import PAGE, adversarial_page, write_set_page
from weakspot.repair.synthetic_samples import read_synthetic
from weakspot.testing.fakes import PlantedImageGenerator, planted_classifier
from weakspot.testing.planted import nothing, plant, rare

SMALL = AdversarialEffort(most_per_caption=16, keep=3, step=8)


@dataclass(frozen=True, kw_only=True)
class Counted(PlantedImageGenerator):
    """Notes what it is asked for, and is killed after so many images."""

    asked: list
    most: int = 10**6

    def generate(self, prompts, *, seeds):
        if len(self.asked) + len(prompts) > self.most:
            raise KeyboardInterrupt
        self.asked.extend(zip(prompts, seeds, strict=True))
        return super().generate(prompts, seeds=seeds)


def _request(folder, **options):
    return AdversarialRequest(
        to=folder / "set", **{"effort": SMALL, "n_baseline": 8, "most_captions": 4, **options}
    )


def _rows(folder):
    with (folder / TABLE_FILE).open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def own_failures(stage_in, tmp_path_factory):
    """A set of the project's own failures: its folder, the stage and the set."""
    folder = tmp_path_factory.mktemp("own")
    stage = stage_in(folder / "project")
    made = stage.run(_request(folder))
    write_set_page(made, folder / "set")
    return folder / "set", stage, made


def test_run__the_set_holds_misclassified_images_of_the_projects_failures(own_failures, hard_world):
    folder, _, made = own_failures
    rows = _rows(folder)
    assert rows
    assert tuple(rows[0]) == COLUMNS
    assert made.record.n_kept == len(rows)
    classifier = planted_classifier(hard_world)
    for row in rows:
        content = (folder / row["image"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
        with Image.open(folder / row["image"]) as image:
            said = classifier.classify([classifier.prepare(image)]).probabilities[0].argmax()
        assert classifier.class_names[said] == row["predicted"] != row["label"]
        assert row["image"].startswith(f"{row['label']}/")
        assert row["synthetic"] == "true"
    per_caption = [len(one.kept) for one in made.record.yields]
    assert max(per_caption) == 3
    assert "misclassified images of" in (folder / PAGE).read_text()
    written = json.loads((folder / RECORD_FILE).read_text())
    assert written["is_complete"]
    assert written["inputs"]["generator"] == PlantedImageGenerator().generator_id
    assert written["versions"]["weakspot"]


def test_run__captions_have_two_sentences_after_the_baseline_prompt(own_failures):
    _, _, made = own_failures
    for one in made.record.yields:
        beginning, _, rest = one.caption.prompt.partition(". ")
        assert beginning.startswith(f"a realistic photograph of a {one.caption.class_name}")
        assert rest.count(".") == 2
        assert one.caption.origins
    assert "planted-captioner-1" in made.record.caption_source


def test_run__the_set_can_be_read_as_generated_samples(own_failures):
    folder, stage, made = own_failures
    found = read_synthetic(stage.prepared, folder, settings=stage.settings, store=stage.store)
    dataset, *_ = found
    assert len(dataset.rows_of(Split.SYNTHETIC)) == len(dataset) == made.record.n_kept
    assert not (dataset.predictions == dataset.labels).any()


def test_run__killed_it_goes_on_and_draws_nothing_twice(stage_in, tmp_path, captions):
    whole = Counted(asked=[])
    request = _request(tmp_path, captions=captions)
    expected = stage_in(tmp_path / "other" / "project", generator=whole).run(
        _request(tmp_path / "other", captions=captions)
    )
    killed, asked = Counted(asked=[], most=20), []
    with pytest.raises(KeyboardInterrupt):
        stage_in(tmp_path / "project", generator=killed).run(request)
    assert not (tmp_path / "set").exists()
    made = stage_in(tmp_path / "project", generator=Counted(asked=asked)).run(request)
    assert sorted(killed.asked + asked) == sorted(whole.asked)
    assert made.record.yields == expected.record.yields
    assert (tmp_path / "set" / TABLE_FILE).read_bytes() == (
        tmp_path / "other" / "set" / TABLE_FILE
    ).read_bytes()


def test_run__captions_of_a_table_fail_more_often_than_the_baseline(stage_in, tmp_path, captions):
    effort = AdversarialEffort(most_per_caption=40, keep=40, step=40)
    made = stage_in(tmp_path / "project").run(
        _request(tmp_path, captions=captions, effort=effort, n_baseline=40)
    )
    disc, square = made.record.classes
    assert (disc.class_name, square.class_name) == ("disc", "square")
    assert disc.captions.value > disc.baseline.value + 0.3
    assert square.captions.value < 0.4
    assert made.record.yields[0].caption.origins == ("captions.csv:2",)
    assert made.record.yields[0].caption.prompt.endswith("it is green.")
    assert "disc: baseline prompt" in adversarial_page(made.record, None)


def test_run__a_set_in_the_folder_is_replaced_and_anything_else_is_not(
    stage_in, tmp_path, captions
):
    stage = stage_in(tmp_path / "project")
    write_set_page(stage.run(_request(tmp_path, captions=captions)), tmp_path / "set")
    before = {row["image"] for row in _rows(tmp_path / "set")}
    less = AdversarialEffort(most_per_caption=16, keep=1, step=8)
    stage.run(_request(tmp_path, captions=captions, effort=less))
    after = {row["image"] for row in _rows(tmp_path / "set")}
    assert after < before
    assert {
        str(path.relative_to(tmp_path / "set")) for path in (tmp_path / "set").rglob("*/*.png")
    } == after
    assert not read_record(tmp_path / "set").is_complete
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for place, words in ((tmp_path / "mine", "something else"), (captions, "this is a file")):
        with pytest.raises(ConfigError, match=words):
            stage.run(AdversarialRequest(to=place, captions=captions))


def test_run__other_classifiers_and_other_sets(stage_in, tmp_path, captions, hard_world):
    control = planted_classifier(plant(rare(0.01), 320, seed=11))
    sound = planted_classifier(plant(nothing(), 320, seed=12))
    models = (
        ModelUnderTest(name="twin", classifier=control),
        ModelUnderTest(name="sound", classifier=sound),
    )
    stage = stage_in(tmp_path / "project", models=models)
    hard_world.write_images(tmp_path / "real", rows=hard_world.dataset.rows_of(Split.POOL))
    (tmp_path / "strange" / "unicorn").mkdir(parents=True)
    for number in range(4):
        hard_world.image(number).save(tmp_path / "strange" / "unicorn" / f"{number}.png")
    effort = AdversarialEffort(most_per_caption=48, keep=24, step=24)
    beside = (tmp_path / "real" / "pictures", tmp_path / "strange")
    made = stage.run(_request(tmp_path, captions=captions, effort=effort, beside=beside))
    matrix = made.record.transfer
    assert matrix.sets == ("set", "pictures")
    assert matrix.models == ("project", "twin", "sound")
    assert matrix.cell("set", "project").rate == 1.0
    assert matrix.cell("set", "project").is_own
    assert matrix.cell("set", "twin").rate > matrix.cell("pictures", "twin").rate + 0.2
    assert matrix.cell("set", "twin").rate > matrix.cell("set", "sound").rate
    rows = {row.name: row for row in made.record.distances}
    assert set(rows) == {"set", "pictures", "strange", "training samples"}
    assert rows["set"].kernel.value > rows["training samples"].kernel.value
    assert any("strange has labels" in note for note in made.record.notes)
    page = adversarial_page(made.record, None)
    assert "Other classifiers" in page
    assert "Distance to the test samples" in page


def test_run__distances_in_the_space_of_a_given_network_are_of_raw_features(
    stage_in, tmp_path, captions
):
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["features"]),
    ]
    given = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 16, 16])
    found = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "tiny", [given], [found])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(tmp_path / "net.onnx"),
    )
    stage = stage_in(tmp_path / "project")
    made = stage.run(_request(tmp_path, captions=captions, inception=str(tmp_path / "net.onnx")))
    by_space = {row.space: row for row in made.record.distances if row.name == "set"}
    (space,) = [
        name for name in by_space if name.startswith("inception:net.onnx") and name.endswith("/raw")
    ]
    assert by_space[space].dimension == 3
    # Unit vectors of mean colours would all lie close together; raw features keep how dark an image is.
    dataset = stage.prepared.samples.dataset
    lengths = np.linalg.norm(stage.store.embeddings(space).everything()[1], axis=1)
    assert len(lengths) == len(
        np.unique(dataset.content_hashes(dataset.rows_of(Split.TRAIN, Split.TEST)))
    )
    assert np.ptp(lengths) > 0.1


def test_run__nothing_fails(stage_in, tmp_path):
    (tmp_path / "easy.csv").write_text("label,caption\nsquare,it is red. it is large.\n")
    effort = AdversarialEffort(most_per_caption=2, keep=1, step=2)
    stage = stage_in(tmp_path / "project")
    made = stage.run(
        _request(tmp_path, captions=tmp_path / "easy.csv", effort=effort, n_baseline=0)
    )
    assert made.record.n_kept == 0
    assert _rows(tmp_path / "set") == []
    files = write_set_page(made, tmp_path / "set")
    assert "the set is empty" in files[0].read_text()
    assert {row.name for row in made.record.distances} == {"training samples"}


def test_run__images_given_by_hand(stage_in, tmp_path, hard_world):
    failures = np.flatnonzero(
        (hard_world.dataset.predictions != hard_world.dataset.labels)
        & (hard_world.dataset.labels == 0)
    )[:4]
    hard_world.write_images(tmp_path / "list", rows=failures)
    made = stage_in(tmp_path / "project").run(
        _request(tmp_path, images=tmp_path / "list" / "manifest.csv")
    )
    assert {one.caption.class_name for one in made.record.yields} == {"disc"}
    assert "the images in manifest.csv" in made.record.caption_source
    again = stage_in(tmp_path / "project").run(
        _request(tmp_path, images=tmp_path / "list" / "pictures")
    )
    assert {one.caption.prompt for one in again.record.yields} == {
        one.caption.prompt for one in made.record.yields
    }
    assert all(
        origin.endswith(".png") for one in again.record.yields for origin in one.caption.origins
    )


def test_run__without_a_captioner_the_column_of_captions_is_taken(
    stage_in, tmp_path, hard_settings
):
    silent = hard_settings.model_copy(update={"captioner": type(hard_settings.captioner)()})
    made = stage_in(tmp_path / "project", settings=silent).run(_request(tmp_path))
    assert "captions that came with them" in made.record.caption_source


def test_run__nobody_to_caption_is_an_error(stage_in, tmp_path, hard_settings, hard_world):
    silent = hard_settings.model_copy(update={"captioner": type(hard_settings.captioner)()})
    hard_world.write_images(tmp_path / "list", rows=np.arange(4))
    with pytest.raises(ConfigError, match="nobody to caption"):
        stage_in(tmp_path / "project", settings=silent).run(
            _request(tmp_path, images=tmp_path / "list" / "pictures")
        )


def test_run__lists_that_cannot_be_used(stage_in, tmp_path, hard_world):
    stage = stage_in(tmp_path / "project")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty"):
        stage.run(_request(tmp_path, images=tmp_path / "empty"))
    (tmp_path / "odd" / "unicorn").mkdir(parents=True)
    hard_world.image(0).save(tmp_path / "odd" / "unicorn" / "1.png")
    with pytest.raises(DataError, match="unicorn"):
        stage.run(_request(tmp_path, images=tmp_path / "odd"))
    assert not (tmp_path / "set").exists()


def test_run__a_captioner_that_says_nothing(stage_in, tmp_path):
    class Silent:
        captioner_id = "silent-1"

        def caption(self, images, *, about=None):
            return ["..."] * len(images)

    with pytest.raises(NotEnoughDataError, match="images got a caption"):
        stage_in(tmp_path / "project", captioner=Silent()).run(_request(tmp_path))


def test_run__sentences_that_cannot_be_drawn_leave_room_for_those_that_can(stage_in, tmp_path):
    class Plain:
        captioner_id = "plain-2"

        def caption(self, images, *, about=None):
            return ["It is chewy. It is green. It is loud. It is dark."] * len(images)

    @dataclass(frozen=True, kw_only=True)
    class Choosy(PlantedImageGenerator):
        def check_prompt(self, prompt):
            if "chewy" in prompt or "loud" in prompt:
                raise RefusedPromptError("There is no such thing.")

    stage = stage_in(tmp_path / "project", captioner=Plain(), generator=Choosy())
    made = stage.run(_request(tmp_path))
    assert made.record.yields
    for one in made.record.yields:
        assert one.caption.prompt.endswith("it is green. it is dark.")
        assert one.refusal == ""


def test_run__a_classifier_of_other_classes_is_refused(stage_in, tmp_path, captions):
    other = planted_classifier(plant(nothing(), 320, seed=1, classes=("disc", "heart")))
    stage = stage_in(tmp_path / "project", models=(ModelUnderTest(name="other", classifier=other),))
    with pytest.raises(ModelError, match="knows other classes"):
        stage.run(_request(tmp_path, captions=captions))
    assert not (tmp_path / "set").exists()


def test_run__a_project_without_a_classifier_is_refused_at_once(stage_in, tmp_path, captions):
    stage = stage_in(tmp_path / "project")
    vars(stage)["prepared"] = replace(stage.prepared, classifier=None)
    with pytest.raises(ConfigError, match="Without a classifier"):
        stage.run(_request(tmp_path, captions=captions))


def test_run__names_must_differ(stage_in, tmp_path, captions, hard_world):
    own = ModelUnderTest(name="project", classifier=planted_classifier(hard_world))
    with pytest.raises(ConfigError, match="different names"):
        stage_in(tmp_path / "project", models=(own,)).run(_request(tmp_path, captions=captions))
    (tmp_path / "a" / "set").mkdir(parents=True)
    with pytest.raises(ConfigError, match="different names"):
        stage_in(tmp_path / "project").run(
            _request(tmp_path, captions=captions, beside=(tmp_path / "a" / "set",))
        )


def test_request__images_and_a_table_at_once_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="not from both"):
        AdversarialRequest(to=tmp_path, images=tmp_path, captions=tmp_path)
    with pytest.raises(ConfigError, match="most_captions must be at least 1"):
        AdversarialRequest(to=tmp_path, most_captions=0)
