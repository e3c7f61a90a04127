import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.verify.pair_probe import PairProbe


def _objects(*, is_told, per_object=5, n_objects=20, seed=0):
    """Two classes that nothing tells apart; images of one object are nearly the same."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(2 * n_objects), per_object)
    embeddings = draws.normal(size=(2 * n_objects, 16))[objects]
    embeddings += 0.05 * draws.normal(size=embeddings.shape)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=(objects >= n_objects).astype(int).tolist(),
        groups=[f"object {one}" for one in objects] if is_told else None,
    )
    space = EmbeddingSpace(encoder_id="toy", embeddings=embeddings.astype(np.float32))
    rows = np.arange(len(objects))
    samples = SampleSet(dataset=dataset, rows=rows, spaces={"clip": space})
    return samples, rows[objects < n_objects], rows[objects >= n_objects]


def _probe(**given):
    samples, own, rival = _objects(**given)
    return PairProbe.of(samples, own, rival, "clip")


def test_of__an_object_is_not_judged_by_an_axis_that_saw_it():
    """Of classes that nothing tells apart, all samples lie in the bulk of both."""
    either = {}
    for is_told in (True, False):
        probes = [_probe(is_told=is_told, seed=seed) for seed in range(6)]
        either[is_told] = np.mean([probe.is_either(probe.own).mean() for probe in probes])
    assert either[False] < 0.9
    assert either[True] > either[False] + 0.05


def test_told_apart__an_object_is_not_its_own_neighbour():
    told, images = (_probe(is_told=is_told) for is_told in (True, False))
    assert images.told_apart(images.own, 3) > 0.95
    assert told.told_apart(told.own, 3) < 0.8


def test_of__one_object_is_too_few():
    samples, own, rival = _objects(is_told=True, per_object=12, n_objects=2)
    assert PairProbe.of(samples, own[:12], rival, "clip") is None
    assert PairProbe.of(samples, own, rival, "clip") is not None
