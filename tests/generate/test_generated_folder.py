import csv
import hashlib
import json
from dataclasses import dataclass, replace

import pytest
from PIL import Image

from weakspot.core.errors import (
    ConfigError,
    DataError,
    NotEnoughDataError,
    UnavailableError,
)
from weakspot.core.registry import part_class
from weakspot.data.image_folder import GeneratedFolder
from weakspot.generate.generated_folder import UNFINISHED, generated_samples, read_generated
from weakspot.testing.scenes import read_marker

GENERATOR = part_class("image_generators", "planted")()


PROMPTS = {"disc": ["a green disc"], "star": ["a star"]}
DISC = {"disc": ["a disc"]}


def _made(folder, prompts=PROMPTS, *, generator=GENERATOR, n_each=2, seed=1, **more):
    return generated_samples(generator, prompts, folder, n_each=n_each, seed=seed, **more)


def _rows(folder):
    with (folder / "metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_generated_samples__images_show_what_prompts_say(tmp_path):
    prompts = {
        "disc": ["A photo of a green disc", "A photo of a disc"],
        "star": ["A photo of a dark star"],
    }
    folder = _made(tmp_path / "new" / "images", prompts, n_each=3)
    rows = _rows(folder)
    assert [(row["label"], row["prompt"]) for row in rows] == [
        *[("disc", "A photo of a green disc")] * 3, *[("disc", "A photo of a disc")] * 3, *[("star", "A photo of a dark star")] * 3,
    ]  # fmt: skip
    assert {row["generator"] for row in rows} == {GENERATOR.generator_id}
    scenes = [read_marker(Image.open(folder / row["image"])) for row in rows]
    assert [(scene.kinds, scene.colour) for scene in scenes[:3]] == [(("disc",), "green")] * 3
    assert {scene.lighting for scene in scenes[6:]} == {"dark"}
    assert {row["image"].split("/")[0] for row in rows} == {"disc", "star"}


def test_generated_samples__the_seed_decides(tmp_path):
    def images(name, seed):
        folder = _made(tmp_path / name, DISC, n_each=4, seed=seed)
        rows = _rows(folder)
        return [(folder / row["image"]).read_bytes() for row in rows], [row["seed"] for row in rows]

    assert images("a", 1) == images("b", 1)
    assert images("c", 2)[1] != images("d", 3)[1]
    assert len(set(images("e", 1)[0])) == 4


def test_generated_samples__odd_class_names_stay_inside_the_folder(tmp_path):
    folder = _made(tmp_path / "odd", {"../disc": ["a disc"], "a/b": ["a star"]}, n_each=1)
    rows = _rows(folder)
    assert [row["label"] for row in rows] == ["../disc", "a/b"]
    places = [(folder / row["image"]).resolve() for row in rows]
    assert all(place.is_relative_to(folder.resolve()) for place in places)


def test_generated_samples__bad_requests(tmp_path):
    for prompts, n_each in (({}, 1), ({"disc": []}, 1), (DISC, 0)):
        with pytest.raises(ConfigError, match="no image to generate"):
            _made(tmp_path / "none", prompts, n_each=n_each)
    _made(tmp_path / "once", DISC)
    with pytest.raises(ConfigError, match="already"):
        _made(tmp_path / "once", DISC, seed=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        _made(tmp_path / "file", DISC)


@dataclass
class Faulty:
    """Generates planted images; some seeds by place give something else."""

    faults: dict
    n_generated: int = 0
    generator_id: str = "faulty"

    def generate(self, prompts, *, seeds):
        made = GENERATOR.generate(prompts, seeds=seeds)
        for place, one in enumerate(made):
            fault = self.faults.get(self.n_generated)
            self.n_generated += 1
            if isinstance(fault, BaseException):
                raise fault
            if fault is not None:
                made[place] = replace(one, image=fault, parents=("a", "b"))
        return made


BLACK = Image.new("RGB", (64, 64))


def test_generated_samples__the_table_says_where_images_come_from(tmp_path):
    folder = _made(tmp_path / "told")
    rows = _rows(folder)
    assert {row["synthetic"] for row in rows} == {"true"}
    for row in rows:
        assert row["sha256"] == hashlib.sha256((folder / row["image"]).read_bytes()).hexdigest()
        assert set(json.loads(row["verdicts"]).values()) == {"pass"}
    assert sorted(path.name for path in folder.iterdir()) == ["disc", "metadata.csv", "star"]
    samples = list(GeneratedFolder(location=str(folder)).read())
    assert {sample.split for sample in samples} == {"synthetic"}
    assert [(sample.labels, sample.metadata["prompt"]) for sample in samples] == [
        ((row["label"],), row["prompt"]) for row in rows
    ]


def test_generated_samples__rejected_images_are_listed_with_why(tmp_path):
    generator = Faulty({1: BLACK, 3: RuntimeError("boom")})
    folder = _made(tmp_path / "some", generator=generator, n_each=3, batch_size=1)
    assert [row["label"] for row in _rows(folder)] == ["disc", "disc", "star", "star"]
    with (folder / "rejected.csv").open(newline="") as file:
        rejected = list(csv.DictReader(file))
    assert [(row["label"], row["quality"]) for row in rejected] == [
        ("disc", "black"),
        ("star", "failed"),
    ]
    assert "boom" in rejected[1]["why"]
    assert len(list(folder.rglob("*.png"))) == 4


def test_generated_samples__nothing_passes(tmp_path):
    words = "Not one of 4 images passes the quality check: 4 black"
    with pytest.raises(NotEnoughDataError, match=words):
        _made(tmp_path / "none", generator=Faulty(dict.fromkeys(range(4), BLACK)))


@pytest.mark.parametrize(
    "interruption", [KeyboardInterrupt(), UnavailableError("The service is gone.")]
)
def test_generated_samples__an_unfinished_set_is_continued(tmp_path, interruption):
    generator = Faulty({5: interruption, 7: BLACK})
    asked = {"n_each": 5, "batch_size": 2}
    with pytest.raises(type(interruption)):
        _made(tmp_path / "cut", generator=generator, **asked)
    assert not (tmp_path / "cut" / "metadata.csv").exists()
    with pytest.raises(DataError, match="holds no images"):
        list(GeneratedFolder(location=str(tmp_path / "cut")).read())
    again = Faulty({3: BLACK})
    folder = _made(tmp_path / "cut", generator=again, **asked)
    assert again.n_generated == 6
    whole = _made(tmp_path / "whole", generator=Faulty({7: BLACK}), **asked)
    contents = [
        {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }
        for place in (folder, whole)
    ]
    assert contents[0] == contents[1]
    assert "rejected.csv" in contents[0]


def test_generated_samples__an_unfinished_set_of_others_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _made(tmp_path / "cut", generator=Faulty({2: KeyboardInterrupt()}))
    same = {"generator": Faulty({})}
    for other in ({"generator": GENERATOR}, {"prompts": DISC}, {"n_each": 3}, {"seed": 2}):
        with pytest.raises(ConfigError, match=r"already, of another set"):
            _made(tmp_path / "cut", **(same | other))
    assert len(_rows(_made(tmp_path / "cut", **same))) == 4


def test_read_drawn__kept_and_rejected(tmp_path):
    star = GENERATOR.generate(["a star"], seeds=[7])[0].image
    folder = _made(tmp_path / "some", generator=Faulty({1: BLACK, 2: star}), n_each=3)
    found = read_generated(folder)
    assert [(one.request.class_name, one.is_kept, one.rejected_by) for one in found] == [
        *[("disc", True, "")] * 2, *[("star", True, "")] * 3, ("disc", False, "black"),
    ]  # fmt: skip
    assert found[1].parents == ("a", "b")
    assert [one.request.seed for one in found[:5]] == [int(row["seed"]) for row in _rows(folder)]
    assert all((folder / one.file).is_file() for one in found[:5])


@pytest.mark.parametrize("table", [None, "image,label\na,b\n", "label,prompt,seed\na,b,c\n"])
def test_read_drawn__no_such_table(tmp_path, table):
    if table is not None:
        (tmp_path / "metadata.csv").write_text(table)
    with pytest.raises(DataError, match="cannot be read"):
        read_generated(tmp_path)


def test_generated_samples__killed_after_the_table_was_written__same_call_ends_well(tmp_path):
    folder = _made(tmp_path / "done", generator=Faulty({}))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    (folder / UNFINISHED).mkdir()
    again = Faulty({})
    assert _made(tmp_path / "done", generator=again) == folder
    assert again.n_generated == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    assert not (folder / UNFINISHED).exists()
