import csv

import pytest
from PIL import Image

from weakspot.app.generated_pictures import generated_samples
from weakspot.core.errors import ConfigError
from weakspot.core.registry import part_class
from weakspot.testing.marker import read_marker

GENERATOR = part_class("image_generators", "planted")()


def _rows(folder):
    with (folder / "metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_generated_samples__pictures_show_what_prompts_say(tmp_path):
    prompts = {"disc": ["A photo of a green disc", "A photo of a disc"], "star": ["A photo of a dark star"]}
    folder = generated_samples(GENERATOR, prompts, tmp_path / "new" / "pictures", n_each=3, seed=1)
    rows = _rows(folder)
    assert [(row["label"], row["prompt"]) for row in rows] == [
        *[("disc", "A photo of a green disc")] * 3, *[("disc", "A photo of a disc")] * 3, *[("star", "A photo of a dark star")] * 3,
    ]  # fmt: skip
    assert {row["generator"] for row in rows} == {GENERATOR.generator_id}
    scenes = [read_marker(Image.open(folder / row["picture"])) for row in rows]
    assert [(scene.kinds, scene.colour) for scene in scenes[:3]] == [(("disc",), "green")] * 3
    assert {scene.lighting for scene in scenes[6:]} == {"dark"}
    assert {row["picture"].split("/")[0] for row in rows} == {"disc", "star"}


def test_generated_samples__the_seed_decides(tmp_path):
    def pictures(name, seed):
        folder = generated_samples(GENERATOR, {"disc": ["a disc"]}, tmp_path / name, n_each=4, seed=seed)
        return [(folder / row["picture"]).read_bytes() for row in _rows(folder)], [row["seed"] for row in _rows(folder)]

    assert pictures("a", 1) == pictures("b", 1)
    assert pictures("c", 2)[1] != pictures("d", 3)[1]
    assert len(set(pictures("e", 1)[0])) == 4


def test_generated_samples__more_than_one_batch_and_progress(tmp_path):
    told = []
    folder = generated_samples(
        GENERATOR,
        {"disc": ["a disc"]},
        tmp_path / "many",
        n_each=20,
        seed=1,
        progress=lambda done, total: told.append((done, total)),
    )
    assert len(_rows(folder)) == 20
    assert told[0] == (0, 20)
    assert told[-1] == (20, 20)


def test_generated_samples__odd_class_names_stay_inside_the_folder(tmp_path):
    folder = generated_samples(GENERATOR, {"../disc": ["a disc"], "a/b": ["a star"]}, tmp_path / "odd", n_each=1, seed=1)
    assert [row["label"] for row in _rows(folder)] == ["../disc", "a/b"]
    assert all((folder / row["picture"]).resolve().is_relative_to(folder.resolve()) for row in _rows(folder))


def test_generated_samples__bad_requests(tmp_path):
    for prompts, n_each in (({}, 1), ({"disc": []}, 1), ({"disc": ["a disc"]}, 0)):
        with pytest.raises(ConfigError, match="no picture to generate"):
            generated_samples(GENERATOR, prompts, tmp_path / "none", n_each=n_each, seed=1)
    generated_samples(GENERATOR, {"disc": ["a disc"]}, tmp_path / "once", n_each=1, seed=1)
    with pytest.raises(ConfigError, match="already"):
        generated_samples(GENERATOR, {"disc": ["a disc"]}, tmp_path / "once", n_each=1, seed=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        generated_samples(GENERATOR, {"disc": ["a disc"]}, tmp_path / "file", n_each=1, seed=1)
