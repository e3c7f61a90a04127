"""The whole way on tiny real models: a CLIP of transformers embeds, a Stable unCLIP pipeline of diffusers decodes its space."""

import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image
from tests.models import tiny_pipelines
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.rules import LinearRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.project.project import Project
from weakspot.run.stage_clock import new_record

SETTINGS = """
[data]
source = "manifest.csv"
[embedder]
name = "transformers"
options = { model = "clip", device = "cpu" }
[generator]
name = "unclip"
options = { model = "unclip", text_encoder = "TOWER", device = "cpu", steps = 2 }
off_class_margin = 0.0
near_duplicate_bits = 0
"""


@pytest.fixture(autouse=True)
def _one_thread():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("lab", "decode")
    tiny, random = tiny_pipelines, np.random.default_rng(0)
    tiny.save_clip(made / "clip")
    tiny.save_clip(made / "other-clip", seed=1)
    tiny.save_unclip_from_images(made / "unclip")
    rows = ["path,label,prediction,split"]
    for number in range(12):
        Image.fromarray(random.integers(256, size=(16, 16, 3), dtype=np.uint8)).save(
            made / f"{number}.png"
        )
        rows.append(
            f"{number}.png,{'cat' if number % 2 else 'dog'},{'cat' if number % 3 else 'dog'},validation"
        )
    (made / "manifest.csv").write_text("\n".join(rows) + "\n")
    (made / "weakspot.toml").write_text(SETTINGS.replace("TOWER", "clip"))
    project = Project.open(made)
    project.ingest()
    samples = project.samples()
    rule = LinearRule(
        encoder_id=samples.space("clip").encoder_id,
        direction=tuple(random.normal(size=16).tolist()),
    )
    found = FailureSlice(
        class_name="cat", rule=rule, method="directions", found_on=DataUse.of(samples)
    )
    record = new_record(project.settings, inputs={}, criterion="wrong").model_copy(
        update={"slices": (found,)}
    )
    with project.store.writing():
        project.store.runs.save(record)
    return made


def _run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=True)


def test_decode__draws_both_series_and_says_where_they_are(folder, tmp_path):
    result = _run(
        "lab", "decode", "-p", folder, "-n", 2, "--alpha", 0, "--alpha", 0.3, "--to", tmp_path
    )
    assert result.exit_code == 0, result.output
    assert "harder 0.3: 2 images" in result.output
    rows = list(csv.DictReader((tmp_path / "metadata.csv").read_text().splitlines()))
    assert [(row["series"], float(row["alpha"])) for row in rows] == [
        (series, alpha) for series in ("harder", "easier") for alpha in (0.0, 0.3) for _ in range(2)
    ]
    drawn = {row["image"]: (tmp_path / row["image"]).read_bytes() for row in rows}
    places = [
        f"images/{series}-{alpha:.3f}-000.png"
        for series in ("harder", "easier")
        for alpha in (0, 0.3)
    ]
    same, harder, also_same, easier = (drawn[place] for place in places)
    assert same == also_same
    assert len({same, harder, easier}) == 3
    with Image.open(tmp_path / "decoded.png") as sheet:
        assert sheet.mode == "RGB"


def test_decode__gives_the_facts_as_json(folder, tmp_path):
    result = _run(
        "lab", "decode", "-p", folder, "-n", 1, "--alpha", 0.1, "--to", tmp_path, "--json"
    )
    facts = json.loads(result.stdout)
    assert facts["caption"] == "a photo of a cat"
    assert facts["generator_id"].startswith("unclip:unclip@")
    assert [point["series"] for point in facts["points"]] == ["harder", "easier"]
    assert facts["points"][0]["failures"] is None


def test_decode__a_decoder_of_another_space_is_refused(folder, tmp_path):
    for found in (*folder.glob("*clip"), *folder.glob("*.png"), folder / "manifest.csv"):
        (tmp_path / found.name).symlink_to(found)
    (tmp_path / "weakspot.toml").write_text(SETTINGS.replace("TOWER", "other-clip"))
    project = Project.open(tmp_path)
    project.ingest()
    with project.store.writing():
        project.store.runs.save(Project.open(folder).run_record())
    result = _run("lab", "decode", "-p", tmp_path, "-n", 1)
    assert isinstance(result.exception, ConfigError)
    assert "another space" in str(result.exception)


def test_decode__other_generators_and_projects_without_a_run_say_what_to_do(folder, tmp_path):
    result = _run("lab", "decode", "-p", folder, "--generator", "planted")
    assert isinstance(result.exception, ConfigError)
    assert 'name = "unclip"' in str(result.exception)
    (tmp_path / "weakspot.toml").write_text(SETTINGS)
    assert isinstance(_run("lab", "decode", "-p", tmp_path).exception, StoreError)
