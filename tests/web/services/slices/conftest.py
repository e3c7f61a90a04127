"""A small project with columns, embeddings and slices of several kinds, measured, and a copy that a test may change."""

import os
import shutil

import numpy as np
import pytest
from PIL import Image
from tests.build import slice_name, slice_of, write_table

from weakspot.core.failures import describe_criterion
from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.core.slices import DataUse
from weakspot.project.project import Project
from weakspot.run.stage_clock import new_record
from weakspot.web.services.workspace import Workspace

N_SAMPLES, DIMENSION = 400, 12
COLOURS, PLACES = ("red", "green"), ("shelf", "table", "floor")


@pytest.fixture(scope="session")
def sliced_folder(tmp_path_factory):
    """400 samples of two classes; green apples fail four times out of five, everything else seldom; read it only."""
    folder = tmp_path_factory.mktemp("sliced") / "groceries"
    folder.mkdir()
    draws = np.random.default_rng(5)
    colours, places = draws.integers(0, 2, N_SAMPLES), draws.integers(0, 3, N_SAMPLES)
    labels = np.arange(N_SAMPLES) % 2
    embeddings = draws.normal(scale=0.4, size=(N_SAMPLES, DIMENSION)).astype(np.float32)
    embeddings[:, 0] += 2.0 * (colours == 1)
    embeddings[:, 1] += 1.5 * (places == 0)
    embeddings[:, 2] += 1.0
    fails = draws.random(N_SAMPLES) < np.where((colours == 1) & (labels == 0), 0.8, 0.1)
    np.save(folder / "embeddings.npy", embeddings)
    names, rows = ("apple", "pear"), []
    for number, (label, colour, place) in enumerate(zip(labels, colours, places, strict=True)):
        file, said = f"{number}.png", names[label ^ int(fails[number])]
        image = Image.new("RGB", (8, 8), (number % 256, number // 256, 7))
        image.save(folder / file, compress_level=1)
        held = COLOURS[colour], PLACES[place], number % 3 == 0
        rows.append([file, names[label], said, "validation", *held])
    header = ["path", "label", "prediction", "split", "colour", "place", "is_ripe"]
    write_table(folder / "manifest.csv", header, rows)
    (folder / "weakspot.toml").write_text(
        '[data]\nsource = "manifest.csv"\n[embedder]\nname = "given-embeddings"\n[embedder.options]\npath = "embeddings.npy"\n'
    )
    project = Project.open(folder)
    project.ingest()
    record = project.verify(_with_slices(project, Workspace(project)).run_id)
    assert record.published()
    return folder


def _with_slices(project, workspace):
    """Write a run whose slices are by column, by direction and by another column."""
    found_on = DataUse.of(workspace.discovery)
    encoder_id = workspace.discovery.space("clip").encoder_id
    direction = tuple(np.eye(DIMENSION)[0].tolist())
    rules = {
        "green": ColumnRule(column="colour", values=("green",)),
        "far along": LinearRule(encoder_id=encoder_id, direction=direction, threshold=0.35),
        "on a shelf": ColumnRule(column="place", values=("shelf",)),
    }
    slices = tuple(
        slice_of(
            rule,
            method="attributes" if isinstance(rule, ColumnRule) else "directions",
            found_on=found_on,
            names=(slice_name(words, phrase=f"an apple, {words}", describer="test"),),
        )
        for words, rule in rules.items()
    )
    criterion = describe_criterion(workspace.criterion)
    record = new_record(project.settings, inputs=workspace.prepared.inputs, criterion=criterion)
    record = record.model_copy(update={"slices": slices})
    project.store.runs.save(record)
    return record


@pytest.fixture
def sliced(sliced_folder, tmp_path):
    """A workspace on a copy that may be changed."""
    # Links will do: whatever changes a file of the project writes a new one.
    return Workspace(
        Project.open(shutil.copytree(sliced_folder, tmp_path / "groceries", copy_function=os.link))
    )


@pytest.fixture
def compared(sliced, sliced_folder, tmp_path):
    """The project beside one whose classifier is right on every apple, not compared yet."""
    other, left = tmp_path / "sturdier", shutil.ignore_patterns(".weakspot", "manifest.csv")
    shutil.copytree(sliced_folder, other, copy_function=os.link, ignore=left)
    table = (sliced_folder / "manifest.csv").read_text().replace("apple,pear", "apple,apple")
    (other / "manifest.csv").write_text(table)
    Project.open(other).ingest()
    return Workspace(sliced.project, others=(other,))
