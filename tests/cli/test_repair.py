"""The command `repair` as a user types it, on a scikit-learn classifier over given embeddings."""

import csv
import json
import shutil

import numpy as np
import pytest
import skops.io
from PIL import Image
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import WeakspotError
from weakspot.project.project import Project

N_SAMPLES = 800
SPLITS = ("train", "validation", "test", "pool")
SETTINGS = """[data]
source = "manifest.csv"
[embedder]
name = "given-embeddings"
[embedder.options]
path = "embeddings.npy"
[classifier]
name = "sklearn"
[classifier.options]
path = "model.skops"
"""


def _weakspot(*arguments):
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "100", "NO_COLOR": "1"}
    )


def _assert_clear_error(result, *parts):
    """Typer itself, or the main function, turns these into exit code 2 without a traceback."""
    assert isinstance(result.exception, WeakspotError | SystemExit), result.exception
    assert (
        result.exit_code if isinstance(result.exception, SystemExit) else result.exception.exit_code
    ) == 2
    for part in parts:
        assert part in str(result.exception)


def _make(folder, *, odd_in_training=0.04, settings=SETTINGS):
    """Write a verified project: odd apples look like pears, and are rare in training."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(1)
    labels = np.arange(N_SAMPLES) % 2
    splits = np.array(SPLITS)[np.arange(N_SAMPLES) // 2 % 4]
    odd = (labels == 0) & (
        draws.random(N_SAMPLES) < np.where(splits == "train", odd_in_training, 0.4)
    )
    plain = np.column_stack(
        [np.where(labels == 0, 1.0, -1.0), np.zeros(N_SAMPLES), np.ones(N_SAMPLES)]
    )
    plain[odd] = [-0.8, 0.8, 1.0]
    embeddings = (plain + 0.25 * draws.normal(size=plain.shape)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    np.save(folder / "embeddings.npy", embeddings)
    names = np.array(["apple", "pear"])[labels]
    is_train = splits == "train"
    skops.io.dump(
        LogisticRegression(C=10.0).fit(embeddings[is_train], names[is_train]),
        folder / "model.skops",
    )
    for number in range(N_SAMPLES):
        Image.new("RGB", (16, 16), (number % 256, number // 256, 0)).save(folder / f"{number}.png")
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split", "kind"])
        kinds = np.where(odd, "odd", "usual")
        writer.writerows(
            zip([f"{number}.png" for number in range(N_SAMPLES)], names, splits, kinds, strict=True)
        )
    (folder / "weakspot.toml").write_text(settings)
    opened = Project.open(folder)
    opened.ingest()
    record = opened.verify(opened.discover().run_id)
    assert record.published(), "the odd apples must be confirmed for these tests to mean anything"
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return _make(tmp_path_factory.mktemp("repair") / "project")


def test_repair__text_stands_beside_baselines(project):
    result = _weakspot("repair", "-p", project)
    assert result.exit_code == 0, result.exception
    for arm in ("slice-balanced", "retrained only *", "random choice *", "least confident *"):
        assert arm in result.stdout
    assert "overall" in result.stdout.lower()
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_repair__compare_lists_strategies(project):
    result = _weakspot("repair", "-p", project, "--compare", "--budget", "10", "--json")
    assert result.exit_code == 0, result.exception
    record = json.loads(result.stdout)
    methods = {result["plan"]["repairer"] for result in record["repairs"]}
    assert {"slice-balanced", "worst-slice", "up-weight", "pool-deepest", "pool-random"} <= methods
    assert any("group labels" in note for note in record["repairs"][0]["notes"])
    report = project / ".weakspot" / "runs" / record["run_id"] / "report.html"
    page = report.read_text(encoding="utf-8")
    assert "pool-deepest" in page
    assert "<svg" in page


def test_repair__written_classifier_answers_as_measured(project, tmp_path):
    result = _weakspot("repair", "-p", project, "--write-to", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.exception
    (arm,) = [
        one
        for one in json.loads(result.stdout)["repairs"][0]["arms"]
        if one["arm"] == "slice-balanced"
    ]
    (written,) = (tmp_path / "out" / "model").glob("*.skops")
    model = skops.io.load(written, trusted=skops.io.get_untrusted_types(file=written))
    embeddings = np.load(project / "embeddings.npy")
    with (project / "manifest.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    tested = np.array([row["split"] == "test" for row in rows])
    truth = np.array([row["label"] for row in rows])
    overall = next(change for change in arm["changes"] if change["kind"] == "overall")
    assert int(np.sum(model.predict(embeddings[tested]) == truth[tested])) == overall["right_after"]
    again = _weakspot("repair", "-p", project, "--write-to", tmp_path / "out")
    _assert_clear_error(again, "plan.json", "To do")


def test_repair__plan_in_another_project(project, tmp_path):
    assert (
        _weakspot(
            "repair", "-p", project, "--method", "worst-slice", "--write-to", tmp_path / "out"
        ).exit_code
        == 0
    )
    other = tmp_path / "other"
    shutil.copytree(project, other, ignore=shutil.ignore_patterns(".weakspot"))
    assert _weakspot("ingest", "-p", other).exit_code == 0
    result = _weakspot("repair", "-p", other, "--plan", tmp_path / "out" / "plan.json", "--json")
    assert result.exit_code == 0, result.exception
    record = json.loads(result.stdout)
    assert record["repairs"][0]["plan"]["repairer"] == "worst-slice"
    assert record["evidence"], "the plan's slices are measured on this project too"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--method", "slice-balancd"), ("no repairer called 'slice-balancd'", "slice-balanced")),
        (("--slice", "zzz"), ("no confirmed slice", "zzz")),
        (("--method", "pool-deepest"), ("budget",)),
        (("--method", "synthetic"), ("generated",)),
        (("--method", "group-dro"), ("column",)),
        (("--synthetic", "nowhere"), ("nowhere",)),
        (("--labels", "nowhere.csv"), ("nowhere.csv",)),
        (("--plan", "nowhere.json"), ("nowhere.json",)),
        (("--run", "19990101"), ("no run",)),
        (("--budget", "-1"), ()),
    ],
)
def test_repair__bad_arguments(project, arguments, parts):
    _assert_clear_error(_weakspot("repair", "-p", project, *arguments), *parts)


def test_repair__plan_that_is_none(project, tmp_path):
    for content in ("{", "[]", '{"plan": 1}', json.dumps({"repairer": "plain", "slice_ids": []})):
        (tmp_path / "plan.json").write_text(content)
        _assert_clear_error(
            _weakspot("repair", "-p", project, "--plan", tmp_path / "plan.json"), "plan.json"
        )


def test_repair__slice_without_training_members(tmp_path):
    by_kind = '[discover]\nmethods = ["attributes"]\n[attributes]\nuse_vocabulary = false\nuse_properties = false\n'
    folder = _make(tmp_path / "project", odd_in_training=0.0, settings=SETTINGS + by_kind)
    _assert_clear_error(
        _weakspot("repair", "-p", folder, "--method", "slice-balanced"),
        "No training sample is a member",
        "pool",
    )
    run = _weakspot("run", "-p", folder, "--json")
    assert run.exit_code == 0, run.exception
    assert any(
        "No training sample is a member" in note["note"] for note in json.loads(run.stdout)["notes"]
    )
    added = _weakspot(
        "repair", "-p", folder, "--method", "pool-deepest", "--budget", "20", "--json"
    )
    (arm,) = [
        one
        for one in json.loads(added.stdout)["repairs"][0]["arms"]
        if one["arm"] == "pool-deepest"
    ]
    assert 0 < arm["n_added"] <= 20


def test_repair__class_missing_from_training(project, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns(".weakspot"))
    text = (folder / "manifest.csv").read_text()
    (folder / "manifest.csv").write_text(text.replace(",apple,train,", ",apple,pool,"))
    for command in ("ingest", "discover", "verify"):
        result = _weakspot(command, "-p", folder)
        assert result.exit_code == 0, result.exception
    _assert_clear_error(_weakspot("repair", "-p", folder, "--method", "slice-balanced"), "apple")


def test_repair__generated_sample_in_the_test_split(project, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns(".weakspot"))
    lines = (folder / "manifest.csv").read_text().splitlines()
    marked = [lines[0] + ",generator"] + [
        line + (",sd" if line.startswith("5.png") else ",") for line in lines[1:]
    ]
    (folder / "manifest.csv").write_text("\n".join(marked) + "\n")
    assert ",test," in lines[6]
    _assert_clear_error(_weakspot("ingest", "-p", folder), "1 generated", "test")
