import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.generate.compose import ComposeGenerator
from weakspot.generate.compose.folder import pictures_of_folder


@pytest.fixture
def folder(tmp_path, shapes):
    planted, _ = shapes
    for kind in ("disc", "star"):
        (tmp_path / kind).mkdir()
        for number in range(2):
            planted(kind, instance=number).save(tmp_path / kind / f"{number}.png")
    place = tmp_path / "backgrounds" / "green_grass"
    place.mkdir(parents=True)
    Image.fromarray(np.random.default_rng(0).integers(40, 120, (90, 140, 3), dtype=np.uint8)).save(place / "a.jpg")
    (tmp_path / "disc" / "notes.txt").write_text("no picture")
    (tmp_path / "disc" / "2.jpg").write_bytes((place / "a.jpg").read_bytes()[:300])
    Image.new("L", (128, 128), 255).save(tmp_path / "star" / "0.png_mask.png")
    Image.new("L", (128, 128), 255).save(tmp_path / "star" / "1_mask.png")
    return tmp_path


def test_pictures_of_folder__finds_classes_backgrounds_and_masks(folder):
    own = pictures_of_folder(str(folder))
    assert own.class_names == ("disc", "star")
    assert own.objects("disc") == ["disc/0.png", "disc/1.png", "disc/2.jpg"]
    assert own.objects("star") == ["star/0.png", "star/1.png"]
    assert own.objects("ring") == []
    assert own.background_words == ("green grass",)
    assert own.backgrounds("green grass") == own.backgrounds("on green grass") == ["backgrounds/green_grass/a.jpg"]
    assert own.backgrounds("sand") == []
    assert own.mask("disc/0.png") is None
    assert {own.mask(name).mode for name in own.objects("star")} == {"L"}
    assert own.picture("backgrounds/green_grass/a.jpg").size == (140, 90)


def test_pictures_of_folder__broken_pictures_raise_only_when_asked_for(folder):
    own = pictures_of_folder(str(folder))
    with pytest.raises(WeakspotError):
        own.picture("disc/2.jpg")


def test_pictures_of_folder__digest_follows_the_content(folder):
    before = pictures_of_folder(str(folder)).digest
    assert pictures_of_folder(str(folder)).digest == before
    Image.new("RGB", (20, 20)).save(folder / "disc" / "1.png")
    assert pictures_of_folder(str(folder)).digest != before


def test_pictures_of_folder__says_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        pictures_of_folder(str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="no pictures in folders of classes"):
        pictures_of_folder(str(tmp_path))


def test_compose__draws_from_a_folder(folder):
    compose = ComposeGenerator(pictures=str(folder), side=64)
    found = compose.generate(["a photo of a blue disc on green grass"], seeds=[1])[0]
    assert found.parents[0] in ("disc/0.png", "disc/1.png")
    assert found.parents[1] == "backgrounds/green_grass/a.jpg"
    assert compose.generator_id.startswith("compose-1-64-")
