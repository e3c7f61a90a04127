import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.data.groups import suspect_names


def _samples(embeddings, keys, **more):
    n_samples = len(keys)
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=more.pop("labels", [0] * n_samples),
        sample_ids=keys,
        **more,
    )
    spaces = {}
    if embeddings is not None:
        values = np.asarray(embeddings, dtype=np.float32)
        spaces = {"clip": EmbeddingSpace(encoder_id="toy", embeddings=values)}
    return SampleSet(dataset=dataset, rows=np.arange(n_samples), spaces=spaces)


def _numbered(n_images, folder="apple"):
    return [f"{folder}/{number:05d}.jpg" for number in range(n_images)]


def _objects(random, *, n_objects=60, size=5, jitter=0.6):
    middles = random.standard_normal((n_objects, 16)).repeat(size, axis=0)
    return middles + jitter * random.standard_normal(middles.shape)


def _drifting(random):
    embeddings = random.standard_normal((300, 16))
    embeddings[:, 0] += np.linspace(-4, 4, 300)
    return embeddings


def _sorted_by_kind(random):
    return 0.5 * random.standard_normal((300, 16)) + 3 * np.eye(16)[np.arange(300) // 75]


@pytest.mark.parametrize(
    "made",
    [
        lambda random: random.standard_normal((300, 16)),
        lambda random: random.standard_normal((300, 3)),
        lambda random: random.standard_normal((40, 16)),
        _drifting,
        _sorted_by_kind,
    ],
)
def test_suspect_names__numbers_alone_say_nothing(made):
    for seed in range(20):
        embeddings = made(np.random.default_rng(seed))
        assert suspect_names(_samples(embeddings, _numbered(len(embeddings))), "clip") == ""


def test_suspect_names__runs_that_look_alike_are_counted():
    embeddings = _objects(np.random.default_rng(0))
    said = suspect_names(_samples(embeddings, _numbered(300)), "clip")
    n_images, of = (int(word.replace(",", "")) for word in said.split()[:3:2])
    assert of == 300
    assert n_images > 250
    assert "(about 30 would by chance)" in said
    assert "add a column that says which object an image shows" in said
    assert 'group = "none"' in said


@pytest.mark.parametrize(
    ("name", "setting"), [("o{0}/{1}.jpg", "folder:1"), ("all/o{0}_{1}.jpg", "file-name")]
)
def test_suspect_names__the_line_to_write_where_names_tell_objects_apart(name, setting):
    keys = [name.format(number // 5, number % 5) for number in range(300)]
    said = suspect_names(_samples(_objects(np.random.default_rng(0)), keys), "clip")
    assert f'write [data] group = "{setting}"' in said


def test_suspect_names__what_is_grouped_already_is_not_suspected():
    embeddings = _objects(np.random.default_rng(0))
    groups = [f"object {number // 5}" for number in range(300)]
    assert suspect_names(_samples(embeddings, _numbered(300), groups=groups), "clip") == ""


def test_suspect_names__a_few_pairs_among_many_images():
    random = np.random.default_rng(1)
    embeddings = random.standard_normal((400, 16))
    seconds = np.arange(1, 400, 10)
    embeddings[seconds] = embeddings[seconds - 1] + 0.4 * random.standard_normal((40, 16))
    assert "runs of consecutive file names" in suspect_names(
        _samples(embeddings, _numbered(400)), "clip"
    )


def test_suspect_names__training_images_and_rows_without_a_file_do_not_count():
    embeddings = _objects(np.random.default_rng(0))
    training = _samples(embeddings, _numbered(300), splits=["train"] * 300)
    assert suspect_names(training, "clip") == ""
    rows = _samples(embeddings, [str(number) for number in range(300)])
    assert suspect_names(rows, "clip") == ""
    assert suspect_names(_samples(embeddings[:5], _numbered(5)), "clip") == ""


def test_suspect_names__without_embeddings_outcomes_tell():
    random = np.random.default_rng(0)
    shared = (random.random(80) < 0.25).repeat(5).astype(np.int64)
    alone = (random.random(400) < 0.25).astype(np.int64)
    kinds = (random.random(400) < np.repeat([0.1, 0.5], 200)).astype(np.int64)
    told = suspect_names(_samples(None, _numbered(400), predictions=shared), "clip")
    assert told.startswith("Images are right or wrong together with the next one by file name")
    for predictions in (alone, kinds):
        samples = _samples(None, _numbered(400), predictions=predictions)
        assert suspect_names(samples, "clip") == ""
    assert suspect_names(_samples(None, _numbered(400)), "clip") == ""


def test_suspect_names__of_large_classes_the_first_files_are_looked_at(monkeypatch):
    monkeypatch.setattr("weakspot.data.groups.MAX_IMAGES", 200)
    embeddings = _objects(np.random.default_rng(0))
    assert "of 200 evaluation images" in suspect_names(_samples(embeddings, _numbered(300)), "clip")
