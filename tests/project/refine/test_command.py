import json

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, StoreError
from weakspot.testing.planted import plant, rare

MODEL = """
from PIL import Image
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted import rare

model = planted_classifier(plant(rare(0.01), 700, seed=3))

def classify(images):
    said = model.classify([model.prepare(Image.fromarray(image)) for image in images])
    return said.probabilities, said.features

classify.class_names = model.class_names
"""
SETTINGS = """
[data]
source = "manifest.csv"
[classifier]
name = "callable"
options = { target = "planted_model_for_refining:classify", folder = "." }
[embedder]
name = "planted"
[language]
name = "planted"
[generator]
name = "planted"
"""
FEW = ("--kind", "colour", "--each", "1", "--most", "2", "--beside", "random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("refined")
    plant(rare(0.01), 700, seed=3).write_images(found)
    (found / "planted_model_for_refining.py").write_text(MODEL)
    (found / "weakspot.toml").write_text(SETTINGS)
    assert called("ingest", "-p", str(found)).exit_code == 0
    return found


def called(*arguments):
    return CliRunner().invoke(app, arguments)


def test_refine__shows_the_table_and_writes_a_page(folder):
    result = called("lab", "refine", str(folder), *FEW)
    assert result.exit_code == 0, result.output
    for words in ("held-out failures", "clean", "test before", "random", "refinement.html"):
        assert words in result.output
    assert (folder / "refinements" / "colour" / "refinement.html").exists()


def test_refine__as_json(folder, tmp_path):
    result = called("lab", "refine", str(folder), *FEW, "--to", str(tmp_path / "out"), "--json")
    record = json.loads(result.stdout)
    assert [arm["arm"] for arm in record["arms"]] == ["refine", "random"]
    assert json.loads((tmp_path / "out" / "refinement.json").read_text()) == record


def test_refine__own_predefined_values(folder, tmp_path):
    own = ("--beside", "predefined", "--predefined", "colour=purple", "--to", str(tmp_path))
    result = called("lab", "refine", str(folder), *FEW, *own, "--json")
    record = json.loads(result.stdout)
    arms = {arm["arm"]: arm for arm in record["arms"]}
    assert {one["prompt"].split()[4] for one in arms["predefined"]["prompts"]} == {"purple"}
    assert record["made_from"]["request"]["predefined"] == [["colour", ["purple"]]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kind", "taste"), "taste"),
        (("--names", "0"), "n_names must be at least 1"),
        (("--weight", "0"), "debug_weight must be above 0"),
        (("--type", "1"), "for several projects"),
        (("--predefined", "in a cave"), "A list of values needs its kind"),
        (("--kind", "colour", "--predefined", "background=in a cave"), "not among the kinds"),
        (("--beside", "easier"), "arms knows nothing of easier"),
        (("--generator", "nobody"), "nobody"),
    ],
)
def test_refine__bad_input_is_said_clearly(folder, arguments, words):
    result = called("lab", "refine", str(folder), *arguments)
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)
    assert result.exception.exit_code == 2


def test_refine__a_folder_without_samples(tmp_path):
    (tmp_path / "weakspot.toml").write_text("")
    result = called("lab", "refine", str(tmp_path))
    assert isinstance(result.exception, StoreError)
