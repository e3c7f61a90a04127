import pytest
from tests.build import project_of

from weakspot.core.errors import ConfigError
from weakspot.generate.project_generator import build_generator, expected_cost, with_generator
from weakspot.run.settings import GeneratorSettings, Settings
from weakspot.testing.fakes import PlantedImageGenerator


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, world, manifest):
    made = project_of(tmp_path_factory.mktemp("generators"), world, manifest)
    made.ingest()
    return made.prepared()


def test_with_generator__options_stay_with_the_generator_they_were_given_for():
    settings = Settings(generator=GeneratorSettings(name="planted", options={"side": 48}))
    assert with_generator(settings, "").generator.options == {"side": 48}
    assert with_generator(settings, "planted") == settings
    assert with_generator(settings, "compose").generator.options == {}


def test_with_generator__a_model_behind_the_name():
    settings = Settings(generator=GeneratorSettings(name="planted", options={"side": 48}))
    chosen = with_generator(settings, "diffusers:someone/model").generator
    assert (chosen.name, chosen.options) == ("diffusers", {"model": "someone/model"})
    kept = GeneratorSettings(name="edit", options={"model": "a", "side": 256})
    changed = with_generator(Settings(generator=kept), "edit:b").generator
    assert changed.options == {"model": "b", "side": 256}


def test_build_generator__by_name_and_options(tmp_path):
    settings = Settings(generator=GeneratorSettings(name="planted", options={"side": 48}))
    assert build_generator(settings, tmp_path, purpose="train") == PlantedImageGenerator(side=48)
    with pytest.raises(ConfigError, match="No image generator"):
        build_generator(Settings(generator=GeneratorSettings(name="")), tmp_path, purpose="train")
    with pytest.raises(ConfigError, match="pencil"):
        build_generator(with_generator(settings, "pencil"), tmp_path, purpose="train")


def test_build_generator__the_default_composes_from_other_images_for_every_purpose(
    prepared, tmp_path
):
    ids = {
        build_generator(Settings(), tmp_path, prepared, purpose=purpose).generator_id
        for purpose in ("train", "measure", "search")
    }
    assert len(ids) == 3
    assert all(one.startswith("compose-") for one in ids)


def test_expected_cost__is_a_sentence_for_services_with_a_price_and_nothing_else(tmp_path):
    priced = {"url": "http://127.0.0.1:9/v1", "model": "any", "price_per_image": 0.04}
    told = expected_cost(
        Settings(generator=GeneratorSettings(name="endpoint", options=priced)), tmp_path, 200
    )
    assert told.startswith("Up to 200 images cost up to 8.00 USD (")
    unpriced = {key: value for key, value in priced.items() if key != "price_per_image"}
    assert (
        expected_cost(
            Settings(generator=GeneratorSettings(name="endpoint", options=unpriced)), tmp_path, 200
        )
        == ""
    )
    assert expected_cost(Settings(generator=GeneratorSettings(name="planted")), tmp_path, 200) == ""
    assert expected_cost(Settings(), tmp_path, 200) == ""
