import json

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.testing.planted import plant, rare

MODEL = """
from PIL import Image
from weakspot.testing.fakes import planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted import rare

model = planted_classifier(plant(rare(0.01), 1200, seed=3))

def classify(images):
    return model.classify([model.prepare(Image.fromarray(image)) for image in images]).probabilities

classify.class_names = model.class_names
"""
SETTINGS = """
[data]
source = "manifest.csv"
[classifier]
name = "callable"
options = { target = "planted_model_for_search:classify", folder = "." }
[embedder]
name = "planted"
[captioner]
name = "planted"
[generator]
name = "planted"
[search]
most_baseline = 120
most_per_caption = 60
budget = 900
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("searched")
    world = plant(rare(0.01), 1200, seed=3)
    rows = world.dataset.rows_of(Split.TRAIN, Split.VALIDATION)[:500]
    world.write_images(found, rows=rows)
    (found / "planted_model_for_search.py").write_text(MODEL)
    (found / "weakspot.toml").write_text(SETTINGS)
    assert called("ingest", "-p", str(found)).exit_code == 0
    return found


def called(*arguments):
    return CliRunner().invoke(app, arguments)


def test_search__finds_the_planted_colour_and_writes_a_page(folder, tmp_path):
    further = ("--prove", "--confirm", "planted", "--also", str(folder))
    result = called(
        "search", "--class", "disc", "-p", str(folder), "--to", str(tmp_path / "out"), *further
    )
    assert result.exit_code == 0, result.output
    assert "green" in result.output
    assert "Confirmed. " in result.output
    assert f"{folder.name} fails on" in result.output
    confirmed = json.loads((tmp_path / "out" / "confirmation.json").read_text())
    assert len(confirmed["elsewhere"]) == len(confirmed["series"]["rates"]) > 0
    assert "On your own samples" in result.output
    page = (tmp_path / "out" / "search.html").read_text()
    assert "proven" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    record = json.loads((tmp_path / "out" / "search.json").read_text())
    assert any("green" in finding["trial"]["caption"] for finding in record["result"]["findings"])
    assert record["inputs"]["generator"].startswith("planted-image")
    assert (tmp_path / "out" / "search.png").stat().st_size > 1000


def test_search__the_same_again_draws_nothing_and_says_the_same(folder):
    drawn = folder / ".weakspot" / "generated"
    first = json.loads(called("search", "--class", "disc", "-p", str(folder), "--json").stdout)
    before = sorted(path.stat().st_mtime_ns for path in drawn.rglob("*.png"))
    second = json.loads(called("search", "--class", "disc", "-p", str(folder), "--json").stdout)
    assert second["result"] == first["result"]
    assert sorted(path.stat().st_mtime_ns for path in drawn.rglob("*.png")) == before


def test_search__a_person_s_own_caption_is_measured(folder):
    result = called(
        "search",
        "--class",
        "star",
        "--caption",
        "it is dark.",
        "--budget",
        "300",
        "-p",
        str(folder),
        "--json",
    )
    assert result.exit_code == 0, result.output
    trials = json.loads(result.stdout)["result"]["trials"]
    assert [trial["caption"] for trial in trials if trial["step"] == "user"] == ["it is dark."]


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (("search", "--class", "whale"), DataError, "whale"),
        (("search", "--class", "disc", "--target", "whale"), DataError, "whale"),
        (("search", "--class", "disc", "--generator", "pencil"), ConfigError, "pencil"),
        (("counterfactual", "green", "--class", "whale"), DataError, "whale"),
        (("counterfactual", " ", "--class", "disc"), ConfigError, "nothing to measure"),
        (("generate", "green", "--to", "x"), ConfigError, "need a class"),
        (("generate", "--to", "x", "--class", "star"), NotEnoughDataError, "no confirmed slice"),
    ],
)
def test_commands_that_draw__bad_input_is_refused(
    folder, monkeypatch, tmp_path, arguments, error, told
):
    monkeypatch.chdir(tmp_path)
    result = called(*arguments, "-p", str(folder))
    assert isinstance(result.exception, error), result.output
    assert told in str(result.exception)


def test_counterfactual__says_how_much_more_often_it_fails(folder, tmp_path):
    result = called(
        "counterfactual",
        "green",
        "in the dark",
        "--class",
        "disc",
        "-n",
        "16",
        "-p",
        str(folder),
        "--to",
        str(tmp_path),
    )
    assert result.exit_code == 0, result.output
    assert "“green”" in result.output
    assert (tmp_path / "counterfactual.html").exists()
    told = json.loads(
        called(
            "counterfactual", "green", "--class", "disc", "-n", "16", "-p", str(folder), "--json"
        ).stdout
    )
    assert told["rates"][0]["share"]["total"] > 10


def test_generate__images_that_repair_can_train_on(folder, tmp_path):
    out = tmp_path / "images"
    result = called(
        "generate", "green", "--class", "disc", "-n", "4", "--to", str(out), "-p", str(folder)
    )
    assert result.exit_code == 0, result.output
    assert "4 images of “a photo of a green disc”" in result.output
    assert len(list((out / "disc").glob("*.png"))) == 4
    assert (out / "metadata.csv").exists()
