import csv

import numpy as np
import pytest

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError
from weakspot.project.comparison import compare_projects, write_comparison
from weakspot.project.project import Project
from weakspot.testing.planted import plant, rare

TOML = '[data]\nsource = "manifest.csv"\n[embedder]\nname = "planted"\n'


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Two projects on the same images: `weak` always fails on green discs, `strong` never more than elsewhere."""
    world = plant(rare(0.02), 1200, seed=3)
    folder = tmp_path_factory.mktemp("compared")
    chosen = world.dataset.rows_of(Split.TRAIN, Split.VALIDATION)
    with world.write_images(folder, rows=chosen).manifest.open(newline="") as stream:
        entries = list(csv.DictReader(stream))
    for name in ("weak", "strong"):
        (folder / name).mkdir()
        for row, entry in zip(chosen, entries, strict=True):
            usual = (
                entry["label"]
                if int(row) % 6
                else ("square" if entry["label"] != "square" else "star")
            )
            entry["prediction"] = (
                "star" if name == "weak" and world.slices[0].inside[row] else usual
            )
            entry["path"] = (
                f"../{entry['path']}" if not entry["path"].startswith("..") else entry["path"]
            )
        with (folder / name / "manifest.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(
                stream, fieldnames=["path", "label", "split", "prediction"], extrasaction="ignore"
            )
            writer.writeheader()
            writer.writerows(entries)
        (folder / name / "weakspot.toml").write_text(TOML)
        Project.open(folder / name).ingest()
    weak = Project.open(folder / "weak", methods=["directions", "attributes"])
    weak.discover()
    weak.verify()
    return folder / "weak", folder / "strong"


def test_compare_projects__a_slice_of_one_model_does_not_hold_on_the_other(projects):
    found = compare_projects(projects)
    assert found.models == ("weak", "strong")
    assert found.overlaps[0][1] < 1.0
    assert found.failure_rates["weak"] > found.failure_rates["strong"]
    held = {(one.model, one.holds) for one in found.slices if one.title == "green discs"}
    assert held == {("weak", True), ("strong", False)}
    assert found.differences[0].difference > 0.3
    assert found.differences[0].interval.low > 0
    assert any("strong has no verified run" in note for note in found.notes)


def test_compare_projects__asked_again__is_free_and_says_the_same(projects):
    first = compare_projects(projects)
    ledger = Project.open(projects[0]).ledger()
    before = ledger.standing()
    assert compare_projects(projects) == first
    assert Project.open(projects[0]).ledger().standing() == before
    # What the run confirmed is the same question here, so only the other classifier was asked about anew.
    assert (before.n_batches, before.n_other_classifiers, before.n_checks) == (1, 1, 1)
    assert any("within this comparison only" in note for note in first.notes)


def test_write_comparison__page_and_record(projects, tmp_path):
    page, record = write_comparison(compare_projects(projects), tmp_path / "out")
    assert page.read_text().startswith("<!doctype html>")
    assert '"models"' in record.read_text()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_comparison(compare_projects(projects), tmp_path / "file")


def test_compare_projects__one_project_is_no_comparison(projects):
    with pytest.raises(ConfigError, match="two or more"):
        compare_projects([projects[0]])
    with pytest.raises(ConfigError, match="different names"):
        compare_projects([projects[0], projects[0]])


def test_compare_projects__other_images_and_other_classes(projects, tmp_path):
    world = plant(rare(0.02), 60, seed=9)
    for name, classes in (("elsewhere", None), ("renamed", "a,b")):
        folder = tmp_path / name
        manifest = world.write_images(folder).manifest
        with manifest.open(newline="") as stream:
            entries = list(csv.DictReader(stream))
        for entry in entries:
            entry["prediction"] = entry["label"]
            entry["label"] = entry["label"] if classes is None else f"new {entry['label']}"
            entry["prediction"] = entry["label"]
        with (folder / "manifest.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(
                stream, fieldnames=["path", "label", "split", "prediction"], extrasaction="ignore"
            )
            writer.writeheader()
            writer.writerows(entries)
        (folder / "weakspot.toml").write_text(TOML)
        Project.open(folder).ingest()
    with pytest.raises(DataError, match="share no labelled"):
        compare_projects([projects[0], tmp_path / "elsewhere"])
    with pytest.raises(DataError, match="different classes"):
        compare_projects([projects[0], tmp_path / "renamed"])
    assert np.isfinite(compare_projects(projects).overlaps).all()
