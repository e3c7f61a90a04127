"""The commands `lab collective` and `lab reproduce` as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import WeakspotError


def _weakspot(*arguments):
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"}
    )


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """Two verified projects on the same images, whose classifiers are files; the planted look is half of one class."""
    import csv

    import numpy as np
    import skops.io
    from PIL import Image
    from sklearn.linear_model import LogisticRegression

    from weakspot.project.project import Project

    folder = tmp_path_factory.mktemp("family")
    draws = np.random.default_rng(0)
    n_samples = 600
    labels = np.arange(n_samples) % 2
    splits = np.array(["train", "validation", "test"])[np.arange(n_samples) // 2 % 3]
    odd = (labels == 0) & (draws.random(n_samples) < np.where(splits == "train", 0.1, 0.4))
    for number in range(n_samples):
        Image.new("RGB", (16, 16), (number % 256, number // 256, 0)).save(folder / f"{number}.png")
    for name, noise in (("first", 0.25), ("second", 0.3)):
        project = folder / name
        project.mkdir()
        plain = np.column_stack(
            [np.where(labels == 0, 1.0, -1.0), np.zeros(n_samples), np.ones(n_samples)]
        )
        plain[odd] = [-0.5, 1.0, 1.0]
        embeddings = (plain + noise * draws.normal(size=plain.shape)).astype(np.float32)
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        np.save(project / "embeddings.npy", embeddings)
        is_train = splits == "train"
        names = np.array(["apple", "pear"])[labels]
        skops.io.dump(
            LogisticRegression(C=10.0).fit(embeddings[is_train], names[is_train]),
            project / "model.skops",
        )
        with (project / "manifest.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["path", "label", "split"])
            writer.writerows(
                zip([f"../{number}.png" for number in range(n_samples)], names, splits, strict=True)
            )
        (project / "weakspot.toml").write_text(
            '[data]\nsource = "manifest.csv"\n[embedder]\nname = "given-embeddings"\n[embedder.options]\npath = "embeddings.npy"\n'
            '[classifier]\nname = "sklearn"\n[classifier.options]\npath = "model.skops"\n'
        )
        opened = Project.open(project)
        opened.ingest()
        opened.verify(opened.discover().run_id)
    return folder


def test_collective__as_text_and_files(family, tmp_path):
    result = _weakspot(
        "lab", "collective", family / "first", family / "second", "--output", tmp_path / "out"
    )
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("One repair set resolves ")
    assert "Made from the failures of all models (type 1) by slice-balanced." in result.stdout
    assert result.stdout.splitlines()[-1] == f"Page: {tmp_path / 'out' / 'collective.html'}"
    assert (tmp_path / "out" / "second_head.safetensors").exists()


def test_collective__as_json_from_one_model(family):
    result = _weakspot(
        "lab",
        "collective",
        family / "first",
        family / "second",
        "--type",
        "2",
        "--from",
        family / "second",
        "--json",
    )
    assert result.exit_code == 0, result.exception
    content = json.loads(result.stdout)
    assert (content["kind"], content["source"]) == (2, "second")
    assert [model["name"] for model in content["models"]] == ["first", "second"]
    first = content["models"][0]["figures"][0]
    # Of the 200 test samples, images that look like ones that were used are left out.
    assert 180 <= first["before"]["total"] == content["n_samples"] < 200
    assert 0.9 < first["relative_accuracy"] <= 1.1


def test_collective__bad_input_is_an_error_of_ours(family, tmp_path):
    first, second = family / "first", family / "second"
    for arguments, said in (
        ((first, second, "--from", "second"), "Add --type 2"),
        ((first, tmp_path), "There is no weakspot.toml here"),
        ((first,), "two or more project folders"),
        ((first, second, "--method", "sliced"), "no repairer called 'sliced'"),
    ):
        error = _weakspot("lab", "collective", *arguments).exception
        assert isinstance(error, WeakspotError)
        assert said in str(error)
    assert _weakspot("lab", "collective", first, second, "--type", "3").exit_code == 2


def test_reproduce__without_data_it_says_which_files_are_expected(tmp_path):
    result = _weakspot("lab", "reproduce", "clarify", "--out", tmp_path / "out")
    assert isinstance(result.exception, WeakspotError)
    assert result.exception.exit_code == 2
    assert "metadata.csv" in result.exception.fix
    assert "--stand-in" in result.exception.fix
    unknown = _weakspot("lab", "reproduce", "alchemy", "--stand-in", "--out", tmp_path / "out")
    assert "no such paper" in str(unknown.exception)
    assert not (tmp_path / "out").exists()


def test_reproduce__page_without_results_says_how_to_get_some(tmp_path):
    result = _weakspot("lab", "reproduce", "page", "--out", tmp_path)
    assert result.exception.exit_code == 2
    assert "weakspot lab reproduce PAPER --stand-in" in result.exception.fix


def test_lab__without_the_package__says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("weakspot.cli.lab.entry_points", lambda group: ())
    result = _weakspot("lab", "bench")
    assert result.exit_code == 2
    assert result.stderr == "weakspot lab bench needs weakspot-lab: pip install weakspot-lab\n"
    assert "refine" in _weakspot("lab", "--help").stdout
