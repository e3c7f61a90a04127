import csv
import json

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion, Side, class_problems
from weakspot.testing.planted import PlantedProblem, label_noise, nothing, plant, rare, spurious
from weakspot.testing.scenes import FACTOR_NAMES, read_marker

EVALUATION = (Split.VALIDATION, Split.TEST)


def _rates(world, class_name, side=None):
    """Failure rate inside and outside the planted slice, on evaluation rows of the class."""
    rows = world.dataset.rows_of(*EVALUATION)
    problems = class_problems(world.dataset, rows, FailureCriterion())
    problem = next(one for one in problems if (one.class_name, one.side) == (class_name, side))
    inside = world.true_slice(class_name, side=side).inside[problem.rows]
    return problem.failed[inside].mean(), problem.failed[~inside].mean(), inside.mean()


@pytest.mark.parametrize(
    "problem", [spurious(), rare(), label_noise(), nothing()], ids=lambda problem: problem.kind
)
@pytest.mark.parametrize("is_multi_label", [False, True])
def test_plant__same_arguments_same_world_and_larger_worlds_begin_alike(problem, is_multi_label):
    small = plant(problem, 500, seed=3, is_multi_label=is_multi_label)
    again = plant(problem, 500, seed=3, is_multi_label=is_multi_label)
    large = plant(problem, 5_000, seed=3, is_multi_label=is_multi_label)
    assert small.dataset.table.equals(again.dataset.table)
    np.testing.assert_array_equal(small.dataset.probabilities, again.dataset.probabilities)
    assert large.dataset.table.slice(0, 500).equals(small.dataset.table)
    np.testing.assert_array_equal(large.embeddings(np.arange(500)), small.embeddings())
    assert not plant(problem, 500, seed=4, is_multi_label=is_multi_label).dataset.table.equals(
        small.dataset.table
    )


def test_plant__rare_kind_fails_because_training_lacks_it():
    world = plant(rare(0.02), 8_000, seed=1)
    discs = world.dataset.labels == world.dataset.class_code("disc")
    green = np.array(world.dataset.metadata("colour").to_pylist()) == "green"
    training = np.isin(np.arange(len(world)), world.dataset.rows_of(Split.TRAIN))
    assert green[discs & training].mean() == pytest.approx(0.02, abs=0.01)
    assert green[discs & ~training].mean() == pytest.approx(0.25, abs=0.02)
    inside, outside, share = _rates(world, "disc")
    assert inside > 0.6
    assert outside < 0.15
    assert share == pytest.approx(0.25, abs=0.03)
    rows = np.flatnonzero(
        world.slices[0].inside & ~training & (world.dataset.predictions != world.dataset.labels)
    )
    assert (world.dataset.predictions[rows] == world.dataset.class_code("star")).mean() > 0.75


def test_plant__rare_kind_is_learnt_when_it_is_not_rare():
    shares = [0.01, 0.05, 0.25]
    rates = [_rates(plant(rare(share), 8_000, seed=1), "disc")[0] for share in shares]
    assert rates[0] > rates[1] + 0.1 > rates[2] + 0.2


def test_plant__spurious_cue_misleads_both_classes():
    world = plant(spurious(0.95), 8_000, seed=1)
    for class_name in ("disc", "star"):
        inside, outside, _ = _rates(world, class_name)
        assert inside > outside + 0.2
    weak = _rates(plant(spurious(0.01), 8_000, seed=1), "disc")
    assert abs(weak[0] - weak[1]) < 0.06
    grassy = np.array(world.dataset.metadata("background").to_pylist()) == "grassy"
    stars = world.dataset.labels == world.dataset.class_code("star")
    train = np.isin(np.arange(len(world)), world.dataset.rows_of(Split.TRAIN))
    # 0.95 are forced to grass, and a quarter of the rest stands there by chance.
    assert grassy[stars & train].mean() == pytest.approx(0.95 + 0.05 * 0.25, abs=0.02)
    assert grassy[stars & ~train].mean() == pytest.approx(0.25, abs=0.03)


def test_plant__wrong_labels_are_the_slice():
    world = plant(label_noise(0.1), 6_000, seed=1)
    wrong = np.array(world.dataset.metadata("label_is_wrong").to_pylist())
    assert wrong.mean() == pytest.approx(0.1, abs=0.015)
    np.testing.assert_array_equal(np.any([found.inside for found in world.slices], axis=0), wrong)
    for class_name in world.dataset.class_names:
        inside, outside, _ = _rates(world, class_name)
        assert inside > 0.85
        assert outside < 0.2


@pytest.mark.parametrize("is_multi_label", [False, True])
def test_plant__in_the_null_failures_do_not_depend_on_any_factor(is_multi_label):
    world = plant(nothing(), 20_000, seed=2, is_multi_label=is_multi_label)
    assert world.slices == ()
    p_values = []
    for problem in class_problems(
        world.dataset, world.dataset.rows_of(*EVALUATION), FailureCriterion()
    ):
        assert problem.n_failed > 50
        for place in range(1, len(FACTOR_NAMES)):
            codes = world.codes[problem.rows, place]
            counts = [
                [np.sum((codes == code) & (problem.failed == failed)) for code in np.unique(codes)]
                for failed in (0, 1)
            ]
            p_values.append(chi2_contingency(counts).pvalue)
    # With nothing to find the smallest of m p-values is below 0.05 / m in one world of twenty.
    assert min(p_values) > 0.05 / len(p_values)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.15)


def test_plant__predictions_in_the_null_are_the_same_whatever_the_other_factors():
    world = plant(nothing(), 400, seed=5)
    changed = world.codes.copy()
    changed[:, 1:] = 0
    np.testing.assert_array_equal(world.own.of(changed, world.instances), world.features())


def test_plant__multi_label():
    world = plant(rare(0.02), 8_000, seed=1, is_multi_label=True)
    assert world.dataset.task is Task.MULTI_LABEL
    assert set(world.dataset.label_matrix.sum(axis=1)) == {1, 2, 3}
    assert world.dataset.thresholds.shape == (4,)
    assert world.scene(0).kinds == tuple(
        np.array(world.dataset.class_names)[world.dataset.label_matrix[0]]
    )
    inside, outside, _ = _rates(world, "disc", Side.PRESENT)
    assert inside > outside + 0.25
    inside, outside, _ = _rates(world, "star", Side.ABSENT)
    assert inside > outside + 0.25


def test_embeddings__do_not_depend_on_pieces_or_order(tmp_path):
    world = plant(spurious(), 3_000, seed=6)
    whole = world.embeddings()
    for chunk_rows in (1_000, 777):
        np.testing.assert_array_equal(
            np.concatenate(list(world.embedding_chunks(chunk_rows))), whole
        )
    shuffled = np.random.default_rng(0).permutation(3_000)
    np.testing.assert_array_equal(world.embeddings(shuffled), whole[shuffled])
    np.testing.assert_array_equal(world.features(shuffled), world.features()[shuffled])
    written = world.write_embeddings(tmp_path)
    np.testing.assert_array_equal(written["clip"].embeddings, whole)
    np.testing.assert_array_equal(written["features"].embeddings, world.features())
    assert isinstance(written["clip"].embeddings, np.memmap)
    assert whole.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0, atol=1e-5)


def test_plant__a_hundred_thousand_rows():
    world = plant(spurious(), 100_000)
    assert len(world) == len(set(world.dataset.sample_ids())) == 100_000
    assert world.dataset.probabilities.shape == (100_000, 4)
    assert len(next(world.embedding_chunks(10_000))) == 10_000


def test_samples__spaces_and_reference():
    world = plant(nothing(), 400)
    samples = world.samples(Split.VALIDATION)
    assert samples.name == "validation"
    assert samples.embeddings("clip").shape == (len(samples), 64)
    assert samples.embeddings("features").shape == (len(samples), 32)
    assert samples.space("clip").has_text
    assert not samples.space("features").has_text
    np.testing.assert_array_equal(samples.reference_rows, world.dataset.rows_of(Split.TRAIN))


def test_predictions__are_those_of_the_head():
    world = plant(rare(), 400)
    np.testing.assert_allclose(
        world.head.probabilities(world.features()), world.dataset.probabilities, atol=1e-6
    )
    np.testing.assert_array_equal(
        world.dataset.probabilities.argmax(axis=1), world.dataset.predictions
    )


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_write_images__folder_per_class_and_manifest(tmp_path, suffix):
    world = plant(rare(), 300)
    rows = world.dataset.rows_of(Split.VALIDATION)[:6]
    written = world.write_images(tmp_path, rows=rows, suffix=suffix)
    with written.manifest.open() as file:
        entries = list(csv.DictReader(file))
    assert len(entries) == len(list(written.images.rglob(f"*.{suffix}"))) == 6
    for row, entry in zip(rows, entries, strict=True):
        label = world.dataset.class_names[world.dataset.labels[row]]
        assert entry["path"] == f"pictures/validation/{label}/{row:07d}.{suffix}"
        assert (entry["label"], entry["split"], entry["caption"]) == (
            label,
            "validation",
            world.scene(row).caption,
        )
        assert entry["colour"] == world.scene(row).colour
    with_images = written.dataset
    assert [place is not None for place in with_images.locations()] == np.isin(
        np.arange(300), rows
    ).tolist()
    from PIL import Image

    with Image.open(with_images.locations(rows)[0]) as image:
        assert read_marker(image) == world.scene(rows[0])


def test_write_images__multi_label(tmp_path):
    world = plant(rare(), 300, is_multi_label=True)
    written = world.write_images(tmp_path, rows=np.arange(3))
    entries = [json.loads(line) for line in written.manifest.read_text().splitlines()]
    assert [entry["labels"] for entry in entries] == [
        list(world.scene(row).kinds) for row in range(3)
    ]
    assert (tmp_path / entries[0]["path"]).is_file()


def test_write_images__unknown_suffix(tmp_path):
    with pytest.raises(ConfigError, match=r"'gif'.*'png'"):
        plant(nothing(), 300).write_images(tmp_path, suffix="gif")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "between 1 and"),
        ({"n_samples": 20_000_000}, "between 1 and"),
        ({"classes": ["disc"]}, "two to eight"),
        ({"classes": ["disc", "disc"]}, "two to eight"),
        ({"classes": ["disc", "apple"]}, "two to eight"),
        ({"classes": ["disc", "ring"]}, "a class that the world has not"),
    ],
)
def test_plant__refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        plant(rare(), **arguments)


def test_plant__too_small_to_train_on():
    with pytest.raises(NotEnoughDataError, match="Plant a larger world"):
        plant(nothing(), 3)


def test_plant__two_classes():
    world = plant(rare(), 2_000, classes=("disc", "star"))
    assert world.head.weights.shape == (2, 32)
    assert (world.dataset.predictions == world.dataset.labels).mean() > 0.75


def test_true_slice__unknown():
    with pytest.raises(ConfigError, match=r"Nothing was planted in 'square'.*'disc'"):
        plant(rare(), 300).true_slice("square")


def test_problems__in_short():
    assert (spurious(0.8).kind, spurious(0.8).strength) == ("spurious", 0.8)
    assert (rare(0.1, value="red").factor, rare(0.1, value="red").usual_value) == ("colour", "blue")
    assert label_noise(0.3).strength == 0.3
    assert nothing() == PlantedProblem()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strength": 1.5}, r"\[0, 1\]"),
        ({"strength": -0.1}, r"\[0, 1\]"),
        ({"evaluation_share": 0.5}, "evaluation_share must lie in"),
        ({"factor": "kind"}, "no factor 'kind'; choose"),
        ({"value": "beige"}, "Two different values"),
        ({"value": "plain", "usual_value": "plain"}, "Two different values"),
        ({"class_name": "star", "rival": "star"}, "Two different classes"),
    ],
)
def test_planted_problem__refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        PlantedProblem(**wrong)
