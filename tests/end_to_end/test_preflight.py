"""What a user did wrong is named by `weakspot run`, each story on real images with a real ONNX file."""

import csv
import json
import shutil

import numpy as np
import pytest
from preflight.worlds import PLAIN, WAYS, write_images
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import NotEnoughDataError
from weakspot.project.project import Project

SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "onnx"
options = {{path = "model.onnx", class_names = {names}}}
[embedder]
name = "given-embeddings"
options = {{path = "embeddings.npy"}}
[discover]
methods = ["directions"]
"""
N_SAMPLES = {"train": 60, "validation": 80}


def _project(folder, *, way=PLAIN, names=None, rows=None, n_samples=None):
    """Write a project of four colours; rows, if given, changes those of the manifest."""
    world = write_images(folder, way=way, n_samples=n_samples or N_SAMPLES)
    listed = json.dumps(list(names or world.class_names))
    (folder / "weakspot.toml").write_text(SETTINGS.format(names=listed))
    if rows is not None:
        with (folder / "manifest.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([("path", "label", "split"), *map(rows, world.rows)])
    return world


def _run(folder):
    answer = CliRunner().invoke(app, ["run", "--project", str(folder), "--json"])
    assert answer.exit_code == 0, answer.exception
    return {check["check"]: check for check in json.loads(answer.stdout)["checks"]}


def _states(checks):
    return {name: check["state"] for name, check in checks.items()}


def test_run__a_healthy_classifier(tmp_path):
    _project(tmp_path / "p")
    checks = _run(tmp_path / "p")
    assert _states(checks) == {
        "class order": "ok",
        "preprocessing": "ok",
        "splits": "ok",
        "leaks": "ok",
        "class names": "ok",
        "accuracy": "ok",
        "class counts": "ok",
        "files": "ok",
        "conflicting labels": "ok",
    }


def test_run__class_names_shifted_by_one(tmp_path):
    _project(tmp_path / "p", names=("lemon", "brick", "copper", "forest"))
    check = _run(tmp_path / "p")["class order"]
    assert check["state"] == "problem"
    assert check["settings_line"] == (
        'options = {"path" = "model.onnx", "class_names" = ["brick", "copper", "forest", "lemon"]}'
    )
    text = (tmp_path / "p" / "weakspot.toml").read_text().splitlines()
    mended = [
        check["settings_line"] if line.startswith('options = {path = "model') else line
        for line in text
    ]
    (tmp_path / "p" / "weakspot.toml").write_text("\n".join(mended))
    assert _states(_run(tmp_path / "p"))["class order"] == "ok"


@pytest.mark.parametrize(
    ("way", "option"),
    [
        ("BGR", '"colour" = "bgr"'),
        ("pixels from 0 to 255", '"scale" = 1.0'),
        ("squeezed", '"crop" = "none"'),
    ],
)
def test_run__images_prepared_wrongly(tmp_path, way, option):
    _project(tmp_path / "p", way=WAYS[way])
    checks = _run(tmp_path / "p")
    assert checks["preprocessing"]["state"] == "problem"
    assert option in checks["preprocessing"]["settings_line"]
    assert checks.get("class order", {}).get("state") != "problem"


def test_run__leaks_across_splits(tmp_path):
    _project(tmp_path / "p")
    for place in range(20):
        shutil.copy(
            tmp_path / "p" / f"train-{place:04d}.png",
            tmp_path / "p" / f"validation-{place:04d}.png",
        )
    check = _run(tmp_path / "p")["leaks"]
    assert check["state"] == "problem"
    assert check["sentence"].startswith("20 of 80 evaluation images are also in training")


def test_run__splits_are_dealt(tmp_path):
    _project(tmp_path / "p", rows=lambda row: (*row[:2], ""))
    check = _run(tmp_path / "p")["splits"]
    assert check["state"] == "notice"
    assert "All 140 samples name no split and were dealt out at random" in check["sentence"]
    assert check["settings_line"] == 'default_split = "validation"'


def test_run__only_test_is_evaluated(tmp_path):
    _project(tmp_path / "p", n_samples={"test": 80})
    check = _run(tmp_path / "p")["splits"]
    assert check["state"] == "notice"
    assert "so test is evaluated" in check["sentence"]
    assert Project.open(tmp_path / "p").run_record().classifier.n_samples == 80


def test_run__only_training_is_refused_before_an_image_is_read(tmp_path):
    _project(tmp_path / "p", n_samples={"train": 40})
    for image in (tmp_path / "p").glob("*.png"):
        image.unlink()
    with pytest.raises(NotEnoughDataError, match="no labelled samples in validation or test"):
        Project.open(tmp_path / "p").run()


def test_run__classifier_with_more_classes(tmp_path):
    _project(
        tmp_path / "p", rows=lambda row: (row[0], "brick" if row[1] == "copper" else row[1], row[2])
    )
    checks = _run(tmp_path / "p")
    assert checks["extra classes"]["state"] == "notice"
    assert "1 classes that no sample has (copper)" in checks["extra classes"]["sentence"]
    assert "of 80 evaluation images" in checks["accuracy"]["sentence"]


def test_run__what_ingest_warns_of(tmp_path):
    _project(tmp_path / "p")
    shutil.copy(tmp_path / "p" / "train-0000.png", tmp_path / "p" / "train-0001.png")
    (tmp_path / "p" / "validation-0003.png").write_bytes(b"")
    embeddings = np.load(tmp_path / "p" / "embeddings.npy")
    np.save(tmp_path / "p" / "embeddings.npy", np.delete(embeddings, 63, axis=0))
    checks = _run(tmp_path / "p")
    assert checks["files"]["sentence"] == "1 of 140 samples were set aside: 1 zero-bytes."
    assert checks["conflicting labels"]["state"] == "notice"
    assert checks["conflicting labels"]["sentence"].startswith(
        "1 images occur with different labels"
    )


def test_run__a_table_of_predictions(tmp_path):
    names = ("cat", "dog", "owl", "Cat")
    rows = [
        (
            number,
            names[number % 3],
            names[(number + 1) % 3],
            ("train", "val")[number % 2],
            number % 5,
        )
        for number in range(240)
    ]
    rows += [(999, "Cat", "dog", "val", 1)]
    with (tmp_path / "table.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", "label", "prediction", "split", "size"), *rows])
    Project.create(tmp_path / "p", data=str(tmp_path / "table.csv"))
    checks = _run(tmp_path / "p")
    assert checks["class order"]["state"] == "problem"
    assert "0 % right as named" in checks["class order"]["sentence"]
    assert checks["class order"]["settings_line"] == ""
    assert checks["class names"]["state"] == "problem"
    assert "'Cat' (1) and 'cat' (80)" in checks["class names"]["sentence"]
    assert "preprocessing" not in checks
    assert "leaks" not in checks
    assert checks["class counts"]["sentence"].startswith("1 of 4 classes have fewer than 10")
