import numpy as np
import pytest
from repair_results.cifar import BY_TRUTH, CifarExperiment, CifarRun, split_samples
from repair_results.cifar_project import CifarImages, RememberedTexts
from repair_results.cifar_tables import ALL, BEFORE, CLOSEST, RANDOM
from repair_results.patches import PatchLearner

from weakspot.core.dataset import Split
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare

LEARNER = PatchLearner(n_filters=16, n_patches=2_000, n_rounds=4)
PER_CLASS = 12


@pytest.fixture(scope="module")
def images():
    """Return squares in the colour of their class; those of green discs look like stars, which are hard to tell."""
    world = plant(rare(0.5), 900, split_shares={Split.TRAIN: 0.6, Split.TEST: 0.4})
    labels = np.where(
        world.slices[0].inside, world.dataset.class_code("star"), world.dataset.labels
    )
    random = np.random.default_rng(0)
    colours = np.array([[150, 95, 95], [95, 150, 95], [95, 95, 150], [150, 140, 80]])
    pixels = np.full((len(world), 16, 16, 3), 110.0)
    pixels[:, 5:11, 5:11] = colours[labels][:, None, None]
    pixels += random.normal(0, 70, pixels.shape)
    return CifarImages(
        dataset=world.dataset,
        pixels=np.clip(pixels, 0, 255).astype(np.uint8),
        joint=world.spaces()["clip"],
        embed_texts=RememberedTexts(PlantedEmbedder()),
    )


@pytest.fixture(scope="module")
def run(images):
    return CifarRun.of(images, LEARNER, seed=1)


@pytest.fixture(scope="module")
def figures(run):
    return list(run.figures("run 0", PER_CLASS))


def test_split_samples__shares_within_every_class_and_test_untouched(images):
    dataset = split_samples(images, LEARNER, seed=3).dataset
    others = images.dataset.rows_of(Split.TRAIN)
    assert dataset.rows_of(Split.TEST).tolist() == images.dataset.rows_of(Split.TEST).tolist()
    for code in range(4):
        own = others[dataset.labels[others] == code]
        shares = [
            np.isin(own, dataset.rows_of(split)).mean()
            for split in (Split.TRAIN, Split.VALIDATION, Split.POOL)
        ]
        assert np.allclose(shares, [0.2, 0.2, 0.6], atol=0.01)


def test_split_samples__features_depend_on_training_images_alone(images):
    first = split_samples(images, LEARNER, seed=3)
    other = images.pixels.copy()
    held_out = np.setdiff1d(np.arange(len(other)), first.dataset.rows_of(Split.TRAIN))
    other[held_out] = 255 - other[held_out]
    changed = CifarImages(
        dataset=images.dataset, pixels=other, joint=images.joint, embed_texts=images.embed_texts
    )
    rows = first.dataset.rows_of(Split.TRAIN)
    assert np.array_equal(
        first.embeddings("features", rows),
        split_samples(changed, LEARNER, seed=3).embeddings("features", rows),
    )


def test_additions__so_many_of_every_class_from_the_pool(run):
    dataset = run.samples.dataset
    added = dict(run.additions(PER_CLASS))
    assert set(added) == {"by direction", "by confidence in the likeliest class", RANDOM, BY_TRUTH}
    for rows in added.values():
        assert np.isin(rows, dataset.rows_of(Split.POOL)).all()
        assert np.bincount(dataset.labels[rows]).tolist() == [PER_CLASS] * 4
        assert len(set(rows.tolist())) == len(rows)


def test_additions__by_direction_are_the_deepest(run):
    dataset, pool = run.samples.dataset, run.samples.dataset.rows_of(Split.POOL)
    found = run.slices[0]
    own = pool[dataset.labels[pool] == dataset.class_code(found.class_name)]
    chosen = np.isin(own, dict(run.additions(PER_CLASS))["by direction"])
    scores = found.rule.scores(run.samples, own)
    assert scores[chosen].min() >= scores[~chosen].max()


def test_slices__one_direction_a_class_found_on_validation(run):
    validation = run.samples.dataset.rows_of(Split.VALIDATION)
    assert [found.class_name for found in run.slices] == list(run.samples.dataset.class_names)
    assert {found.found_on.n_samples for found in run.slices} == {len(validation)}


def test_figures__every_arm_overall_and_per_class(figures, run):
    arms = [BEFORE, *dict(run.additions(PER_CLASS))]
    assert [(one.part, one.arm) for one in figures] == [
        (part, arm) for arm in arms for part in (ALL, *run.samples.dataset.class_names)
    ]
    last = figures[-1].values
    assert {f"{place} {count}" for place in ("name", "direction") for count in CLOSEST} <= set(last)


def test_figures__agree_with_counting_by_hand(figures, run):
    dataset, found = run.samples.dataset, run.slices[0]
    test = dataset.rows_of(Split.TEST)
    own = test[dataset.labels[test] == dataset.class_code(found.class_name)]
    deepest = own[np.argsort(-found.rule.scores(run.samples, own), kind="stable")[:20]]
    value = next(
        one for one in figures if (one.part, one.arm) == (found.class_name, BEFORE)
    ).values["direction 20"]
    assert value == pytest.approx(np.mean(dataset.predictions[deepest] == dataset.labels[deepest]))


def test_page__all_tables(figures):
    page = CifarExperiment(n_runs=1, n_images=600).page(figures)
    assert "| added | K = 10 | K = 20 | K = 30 | K = 40 | K = 50 |" in page
    assert "| by direction | " in page
    assert "nan" not in page
