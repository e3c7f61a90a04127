import csv
from pathlib import Path

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.testing.planted import nothing, plant
from weakspot_lab.reproduce.dcbench_files import SliceProblem, SliceTables
from weakspot_lab.reproduce.hibug.dcbench import slice_words, strength_of

N_SAMPLES, HALF = 400, 200


def _problem(category="correlation", target="male"):
    return SliceProblem(
        key="p", base="celeba", category=category, target=target, slice_names=("a",), folder=Path()
    )


def test_slice_words__attributes_by_their_values_and_rare_things_with_their_kinds():
    assert slice_words(_problem(), "male=0_young=1") == (("young",), ("old", "elderly"))
    assert slice_words(_problem(), "male=1_young=0") == (("old", "elderly"), ("young",))
    assert slice_words(_problem(), "male=1_wearing_hat=0") == (("hat", "cap"), ())
    assert slice_words(_problem(), "male=0_gray_hair=1")[0] == ("gray",)
    words, kinds = slice_words(_problem("rare", "food.n.01"), "coffee.n.01")
    assert words == ("coffee",)
    assert "cappuccino" in kinds


def test_strength_of__predictions_that_follow_the_feature():
    feature = np.array([0, 1, 0, 1, 0, 1])
    targets = np.array([0, 1, 0, 0, 1, 1])
    tables = SliceTables(
        paths=(Path(),) * 8,
        targets=np.concatenate([[0, 1], targets]),
        probabilities=np.eye(2, dtype=np.float32)[np.concatenate([[0, 1], feature])],
        inside=np.vstack(
            [
                np.zeros((2, 2), dtype=bool),
                np.column_stack([(targets == 0) & (feature == 1), (targets == 1) & (feature == 0)]),
            ]
        ),
        n_validation=2,
    )
    assert strength_of(_problem(), tables) == pytest.approx(1.0)
    assert strength_of(_problem("rare"), tables) is None


@pytest.fixture(scope="module")
def dcbench(tmp_path_factory):
    """Planted images in the files of dcbench: a classifier of discs that says disc wherever something is red."""
    folder = tmp_path_factory.mktemp("dcbench")
    (folder / "img_align_celeba").mkdir()
    world = plant(nothing(), N_SAMPLES, classes=("disc", "star"), seed=4)
    scenes = [world.scene(row) for row in range(N_SAMPLES)]
    target = np.array([one.kinds == ("disc",) for one in scenes])
    feature = np.array([one.colour == "red" for one in scenes])
    fails = (feature != target) & (feature | (np.arange(N_SAMPLES) % 4 == 0))
    said = np.where(fails, ~target, target)
    names = []
    for row in range(N_SAMPLES):
        names.append(f"{row:06d}.png")
        world.image(row, side=32).save(folder / "img_align_celeba" / names[-1])
    slices = {
        "correlation": (~target & feature, target & ~feature),
        "rare": (target & np.array([one.background == "grassy" for one in scenes]),),
    }
    index = [("", "dataset", "slice_category", "slice_names", "target_name")]
    for kind, inside in slices.items():
        own = folder / "slice_discovery/problem/artifacts" / f"p_{kind}"
        own.mkdir(parents=True)
        _predictions(own / "val_predictions.csv", names, target, said, range(HALF))
        _predictions(own / "test_predictions.csv", names, target, said, range(HALF, N_SAMPLES))
        with (own / "test_slices.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("id", *(f"slices_{place}" for place in range(len(inside)))))
            for row in range(HALF, N_SAMPLES):
                writer.writerow((names[row], *(int(one[row]) for one in inside)))
        called = ["disc=0_red=1", "disc=1_red=0"] if kind == "correlation" else ["grass.n.01"]
        index.append((f"p_{kind}", "celeba", kind, called, "disc"))
    with (folder / "slice_discovery/problems.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(index)
    return folder


def _predictions(path, names, target, said, rows):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("id", "target", "probs_0", "probs_1"))
        for row in rows:
            likely = 0.9 if said[row] else 0.1
            writer.writerow((names[row], int(target[row]), 1 - likely, likely))


def test_dcbench_steps__table_1_by_attributes_and_by_the_mixture(dcbench, run_on_data):
    found, text = run_on_data("hibug", dcbench)
    assert list(found.steps) == ["dcbench-correlation", "dcbench-rare"]
    rows = found.steps["dcbench-correlation"]["rows"]
    assert [row["method"] for row in rows] == ["attributes", "mixture"]
    assert rows[0]["strength"] == rows[1]["strength"] > 0.3
    by_words = rows[0]
    assert (by_words["confirmed"], by_words["word"], by_words["attribute"]) == (True, True, True)
    assert by_words["note"] == ""
    measured = {one.figure.key for one in found.figures if one.measured.value is not None}
    assert {"rare_case", "rare_word", "domino_correlation", "domino_rare"} <= measured
    assert not any(key.startswith(("two", "many", "few", "generated", "fixed")) for key in measured)
    assert "followed by 0.7 or more" in text
    assert "dcbench, with the encoder of this machine in place of BLIP" in text
    assert "## Table 3" not in text
    assert "## Table 1" in text


def test_dcbench_steps__a_kind_that_dcbench_has_not(dcbench, run_on_data, tmp_path):
    (tmp_path / "img_align_celeba").symlink_to(dcbench / "img_align_celeba")
    (tmp_path / "slice_discovery").mkdir()
    (tmp_path / "slice_discovery/problem").symlink_to(dcbench / "slice_discovery/problem")
    index = (dcbench / "slice_discovery/problems.csv").read_text()
    (tmp_path / "slice_discovery/problems.csv").write_text(index.replace(",rare,", ",odd,"))
    with pytest.raises(DataError, match="a kind of problem") as caught:
        run_on_data("hibug", tmp_path)
    assert caught.value.given == "odd"
