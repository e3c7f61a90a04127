import csv

import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.failures import Side
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.testing.planted import nothing, plant
from weakspot_lab.reproduce.directions.conditions import condition_shares, multi_label_case

COLUMNS = ("Image Index", "Finding Labels", "Patient ID", "View Position")


@pytest.fixture
def answers():
    """A classifier that sees the label `fluid` wherever an image is marked; embeddings tell the mark."""
    draws = np.random.default_rng(0)
    marked, has = draws.random(600) < 0.3, draws.random(600) < 0.3
    believed = np.clip(0.2 + 0.6 * (marked | has) + 0.05 * draws.standard_normal(600), 0, 1)
    embeddings = np.column_stack([marked, ~marked]) + 0.2 * draws.standard_normal((600, 2))
    dataset = dataset_from_columns(
        class_names=("fluid",),
        label_lists=[[0] if one else [] for one in has],
        splits=np.repeat(["validation", "test"], 300).tolist(),
        probabilities=believed[:, None].astype(np.float32),
    )
    space = EmbeddingSpace(
        encoder_id="given", embeddings=embeddings.astype(np.float32), has_text=False
    )
    rows = dataset.rows_of(Split.VALIDATION)
    return SampleSet(dataset=dataset, rows=rows, spaces={"clip": space}), marked


def test_condition_shares__the_svm_puts_first_what_misleads(answers):
    samples, marked = answers
    case = multi_label_case(samples, seed=0)
    found = condition_shares(case, marked, "fluid", Side.ABSENT, count=20)
    assert found["svm"] > 0.9
    assert found["in test"] < 0.4
    assert found["side"] == "absent"
    without = condition_shares(case, marked, "fluid", None, count=20)
    assert (without["svm"], without["confidence"], without["in test"]) == (None, None, None)


@pytest.fixture(scope="module")
def chest(tmp_path_factory):
    """Planted images in the files of ChestX-ray14: warm colours are of the AP view and have effusion, but for one in five."""
    folder = tmp_path_factory.mktemp("chest")
    (folder / "images_001" / "images").mkdir(parents=True)
    world = plant(nothing(), 480, classes=("disc", "star"), seed=4)
    lists = {"train_val_list.txt": [], "test_list.txt": []}
    with (folder / "Data_Entry_2017.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for row in range(len(world)):
            name, scene = f"{row:08d}_000.png", world.scene(row)
            world.image(row, side=32).save(folder / "images_001" / "images" / name)
            is_warm = scene.colour in ("red", "orange", "yellow", "green")
            findings = "Effusion|Mass" if is_warm != (row % 5 == 0) else "No Finding"
            writer.writerow((name, findings, row, "AP" if is_warm else "PA"))
            lists["test_list.txt" if row % 3 == 0 else "train_val_list.txt"].append(name)
    for name, lines in lists.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_radiograph_case__the_files_of_chestx_ray14_give_the_figure_of_effusion(chest, run_on_data):
    found, text = run_on_data("directions", chest)
    step = found.steps["conditions-Effusion"]
    assert (step["class"], step["side"]) == ("Effusion", "absent")
    assert step["svm"] > step["in test"]
    figure = next(one for one in found.figures if one.figure.key == "conditions")
    assert figure.measured.value == pytest.approx(100 * step["svm"])
    assert figure.measured.beside == pytest.approx(100 * step["confidence"])
    assert "Fig. 39" in text
    assert "ChestX-ray14, with the encoder" in text
    others = {one.figure.key for one in found.figures if one.measured.value is not None}
    assert others == {"conditions"}
