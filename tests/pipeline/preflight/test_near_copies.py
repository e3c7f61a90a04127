import numpy as np

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.pipeline.preflight.near_copies import find_near_copies

N_TRAINING, N_HELD = 200, 100


def _samples(n_copies, noise=0.003):
    draws = np.random.default_rng(0)
    embeddings = draws.normal(size=(N_TRAINING + N_HELD, 32))
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    copied = N_TRAINING + np.arange(n_copies)
    embeddings[copied] = embeddings[:n_copies] + draws.normal(0, noise, (n_copies, 32))
    dataset = dataset_from_columns(
        class_names=["a", "b"],
        labels=np.arange(N_TRAINING + N_HELD) % 2,
        splits=["train"] * N_TRAINING + ["validation"] * N_HELD,
    )
    space = EmbeddingSpace(encoder_id="e", embeddings=embeddings.astype(np.float32))
    return SampleSet(
        dataset=dataset, rows=np.arange(len(dataset)), spaces={"clip": space}, name="all"
    )


def test_find_near_copies__copies_and_no_others():
    samples = _samples(12)
    held = samples.dataset.rows_of(Split.VALIDATION)
    assert np.flatnonzero(find_near_copies(samples, "clip", held)).tolist() == list(range(12))
    assert not find_near_copies(_samples(0), "clip", held).any()


def test_find_near_copies__a_dense_cloud_is_no_copy():
    # Distances that go on without a gap: the nearest are near by chance.
    draws = np.random.default_rng(1)
    samples = _samples(0)
    flat = np.concatenate([draws.uniform(0, 1, (300, 1)), np.ones((300, 1))], axis=1)
    space = EmbeddingSpace(encoder_id="e", embeddings=flat.astype(np.float32))
    dense = SampleSet(
        dataset=samples.dataset, rows=samples.rows, spaces={"clip": space}, name="all"
    )
    held = samples.dataset.rows_of(Split.VALIDATION)
    found = find_near_copies(dense, "clip", held)
    assert found.mean() in (0.0, 1.0)


def test_find_near_copies__nothing_to_tell_by():
    samples = _samples(3)
    held = samples.dataset.rows_of(Split.VALIDATION)
    assert find_near_copies(samples, "other", held) is None
    assert find_near_copies(samples, "clip", held[:5]) is None
