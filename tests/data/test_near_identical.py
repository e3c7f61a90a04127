import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.data import duplicates
from weakspot.data.duplicates import group_near_identical


def _samples(embeddings, *, labels=None, splits=None, keys=None, groups=None):
    n_samples = len(embeddings)
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=[0] * n_samples if labels is None else labels,
        splits=splits,
        sample_ids=keys,
        groups=groups,
    )
    space = EmbeddingSpace(encoder_id="toy", embeddings=np.asarray(embeddings, dtype=np.float32))
    return SampleSet(dataset=dataset, rows=np.arange(n_samples), spaces={"clip": space})


def _objects(random, n_objects, size, *, jitter, n_dimensions=32):
    centres = random.standard_normal((n_objects, n_dimensions)).repeat(size, axis=0)
    return centres + jitter * random.standard_normal(centres.shape)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("n_dimensions", [16, 256])
def test_group_near_identical__images_of_one_object(size, n_dimensions):
    random = np.random.default_rng([1, size])
    embeddings = _objects(random, 80, size, jitter=0.03, n_dimensions=n_dimensions)
    found = group_near_identical(_samples(embeddings), "clip")
    assert (found.n_images, found.n_groups) == (80 * size, 80)
    assert found.dataset.groups.tolist() == np.arange(80).repeat(size).tolist()
    assert found.sentence.startswith(
        f"{80 * size} images form 80 groups of near-identical images, and groups are counted"
    )


def test_group_near_identical__some_copies_among_many_images():
    random = np.random.default_rng(2)
    alone = random.standard_normal((300, 32))
    embeddings = np.concatenate([alone, alone[:7] + 0.01 * random.standard_normal((7, 32))])
    found = group_near_identical(_samples(embeddings), "clip")
    assert (found.n_images, found.n_groups) == (14, 7)


@pytest.mark.parametrize("n_dimensions", [2, 3, 5, 32, 300])
def test_group_near_identical__independent_images_stay_apart(n_dimensions):
    embeddings = np.random.default_rng(3).standard_normal((600, n_dimensions))
    if n_dimensions == 2:  # on a circle two numbers say too little: put them on a plane
        embeddings = np.concatenate([embeddings, np.full((600, 1), 3.0)], axis=1)
    found = group_near_identical(_samples(embeddings), "clip")
    assert found.n_images <= 12


def test_group_near_identical__few_values_are_no_near_identical_images():
    embeddings = np.random.default_rng(4).standard_normal((6, 16)).repeat(30, axis=0)
    found = group_near_identical(_samples(embeddings), "clip")
    assert found.n_groups == 0
    assert found.warning.startswith("180 images lie close together in groups too large")
    assert found.dataset.groups.tolist() == list(range(180))


def test_group_near_identical__other_classes_and_training_samples_are_left_alone():
    random = np.random.default_rng(5)
    embeddings = _objects(random, 60, 2, jitter=0.02)
    labels = [0, 1] * 30 + [0] * 60
    splits = ["test"] * 90 + ["train"] * 30
    found = group_near_identical(_samples(embeddings, labels=labels, splits=splits), "clip")
    assert (found.n_images, found.n_groups) == (30, 15)
    assert found.dataset.groups[:4].tolist() == [0, 1, 2, 3]


def test_group_near_identical__groups_across_splits_are_counted():
    embeddings = _objects(np.random.default_rng(6), 40, 2, jitter=0.02)
    found = group_near_identical(_samples(embeddings, splits=["validation", "test"] * 40), "clip")
    assert found.n_across_splits == 40
    assert "(40 of them in several splits)" in found.sentence


def test_group_near_identical__named_groups_and_missing_embeddings():
    embeddings = _objects(np.random.default_rng(7), 40, 2, jitter=0.02)
    named = _samples(embeddings, groups=["x", *[None] * 79])
    assert group_near_identical(named, "clip").dataset is named.dataset
    assert group_near_identical(named, "features").sentence == ""
    embeddings[:4] = np.nan
    assert group_near_identical(_samples(embeddings), "clip").n_groups == 38


def _burst_keys(n_objects, size):
    return [
        f"IMG_{10 * number + image:05d}.jpg" for number in range(n_objects) for image in range(size)
    ]


def test_group_near_identical__bursts_of_file_names_may_differ_more():
    embeddings = _objects(np.random.default_rng(8), 40, 3, jitter=0.15)
    named = _samples(embeddings, keys=_burst_keys(40, 3))
    found = group_near_identical(named, "clip")
    assert found.n_groups >= 30
    assert group_near_identical(_samples(embeddings), "clip").n_groups < found.n_groups


def test_group_near_identical__names_that_follow_each_other_say_nothing_where_all_are_close():
    embeddings = np.random.default_rng(3).standard_normal((600, 3))
    found = group_near_identical(_samples(embeddings, keys=_burst_keys(60, 10)), "clip")
    assert (found.n_images <= 12, found.warning) == (True, "")


def test_group_near_identical__same_every_time():
    embeddings = _objects(np.random.default_rng(10), 50, 2, jitter=0.05, n_dimensions=300)
    first, second = (group_near_identical(_samples(embeddings), "clip") for _ in range(2))
    assert first.dataset.groups.tolist() == second.dataset.groups.tolist()


@pytest.mark.parametrize("n_dimensions", [4, 40, 300])
@pytest.mark.parametrize("most_compared", [1 << 24, 5_000])
@pytest.mark.parametrize("compared_whole", [0, 450])
def test_class_pairs__every_close_pair_and_no_other(
    n_dimensions, most_compared, compared_whole, monkeypatch
):
    monkeypatch.setattr(duplicates, "MAX_COMPARED", most_compared)
    monkeypatch.setattr(duplicates, "COMPARED_WHOLE", compared_whole)
    random = np.random.default_rng([8, n_dimensions])
    embeddings = _objects(random, 150, 3, jitter=0.08, n_dimensions=n_dimensions)
    samples = _samples(embeddings)
    found = duplicates._ClassPairs.of(samples, "clip", np.arange(450))
    unit = samples.embeddings("clip", np.arange(450))
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    distances = np.linalg.norm(unit[:, None] - unit[None], axis=2) / found.scale
    expected = np.argwhere(np.triu(distances <= 2 * duplicates.NEAR[0], k=1))
    assert sorted(found.pairs.tolist()) == expected.tolist()
    assert len(expected) >= 450
