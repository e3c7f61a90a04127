from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.errors import ConfigError, DataError, StoreError
from weakspot.core.generated import GenerationRequest
from weakspot.core.roles import ClassifierOutput
from weakspot.data.engine.processes import ProcessEngine
from weakspot.generate import project_generator
from weakspot.generate.project_generator import GeneratedPredictions
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import GeneratorService
from weakspot.models.given_embeddings import GivenEmbeddings
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.store.generated_images import GeneratedImageStore
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot.testing.planted import plant, rare

REQUESTS = [
    GenerationRequest(class_name="disc", prompt="a photo of a green disc", seed=seed)
    for seed in range(6)
]


class Counting:
    """A classifier that counts its images."""

    def __init__(self, inner):
        self.inner = inner
        self.n_asked = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def classify(self, prepared):
        self.n_asked += len(prepared)
        return self.inner.classify(prepared)


class Noting:
    """Another process, which notes how much it is asked."""

    def __init__(self):
        self.inner = ProcessEngine(n_workers=1)
        self.n_items = []

    def map_batches(self, build, items, **options):
        self.n_items.append(len(items))
        return self.inner.map_batches(build, items, **options)


@pytest.fixture
def prepared(world):
    samples = world.samples()
    return Prepared(
        samples=samples,
        assistants=NO_ASSISTANTS,
        embedder=PlantedEmbedder(),
        classifier=Counting(planted_classifier(world)),
        summary=EmbedResult(),
        inputs={},
    )


def predictions_of(prepared, folder):
    service = GeneratorService(
        PlantedImageGenerator(), GeneratedImageStore(folder), quality=QualityCheck()
    )
    return GeneratedPredictions(service, prepared, folder)


def test_drawn_predictions__each_image_is_asked_about_once_also_by_another_session(
    prepared, world, tmp_path
):
    predictions = predictions_of(prepared, tmp_path)
    keys = [one.content_hash for one in predictions.generate(REQUESTS) if one.is_kept]
    first = predictions.probabilities(keys)
    assert first.shape == (len(keys), 4)
    assert np.allclose(first.sum(axis=1), 1.0, atol=1e-4)
    predictions.flush()
    again = predictions_of(prepared, tmp_path)
    again.generate(REQUESTS)
    assert np.array_equal(again.probabilities(keys[::-1]), first[::-1])
    assert prepared.classifier.n_asked == len(keys)


def test_drawn_predictions__columns_are_in_the_order_of_the_data_set(prepared, tmp_path):
    class Turned(Counting):
        @property
        def class_names(self):
            return self.inner.class_names[::-1]

        def classify(self, prepared):
            return ClassifierOutput(
                probabilities=self.inner.classify(prepared).probabilities[:, ::-1]
            )

    straight, turned = predictions_of(prepared, tmp_path / "1"), None
    turned = predictions_of(
        replace(prepared, classifier=Turned(prepared.classifier.inner)), tmp_path / "2"
    )
    keys = [one.content_hash for one in straight.generate(REQUESTS) if one.is_kept]
    turned.generate(REQUESTS)
    assert np.array_equal(straight.probabilities(keys), turned.probabilities(keys))


def test_drawn_predictions__embeddings_are_those_of_the_embedder(prepared, tmp_path):
    predictions = predictions_of(prepared, tmp_path)
    keys = [one.content_hash for one in predictions.generate(REQUESTS) if one.is_kept]
    embedder = PlantedEmbedder()
    expected = embedder.embed_prepared([embedder.prepare(predictions.image(key)) for key in keys])
    assert np.allclose(predictions.embeddings(keys), expected, atol=1e-6)
    assert predictions.embeddings([]).shape == (0, embedder.dimension)
    assert predictions.probabilities([]).shape == (0, 4)


def test_drawn_predictions__a_classifier_of_embeddings_gets_embeddings(prepared, tmp_path):
    class OfEmbeddings(Counting):
        reads = "embeddings"

        def classify(self, embeddings):
            return ClassifierOutput(
                probabilities=np.full((len(embeddings), 4), 0.25, dtype=np.float32)
            )

    predictions = predictions_of(
        replace(prepared, classifier=OfEmbeddings(prepared.classifier.inner)), tmp_path
    )
    keys = [one.content_hash for one in predictions.generate(REQUESTS) if one.is_kept]
    assert predictions.probabilities(keys).tolist() == [[0.25] * 4] * len(keys)


def test_drawn_predictions__what_cannot_work_is_refused(prepared, tmp_path):
    with pytest.raises(ConfigError, match="Without a classifier"):
        predictions_of(replace(prepared, classifier=None), tmp_path)
    many = plant(rare(0.05), 200, seed=1, is_multi_label=True)
    with pytest.raises(DataError, match="single-label"):
        predictions_of(replace(prepared, samples=many.samples()), tmp_path)
    np.save(tmp_path / "embeddings.npy", np.eye(4, dtype=np.float32))
    given = predictions_of(
        replace(prepared, embedder=GivenEmbeddings(path=tmp_path / "embeddings.npy")), tmp_path
    )
    keys = [one.content_hash for one in given.generate(REQUESTS) if one.is_kept]
    assert not given.has_embeddings
    with pytest.raises(ConfigError, match="embedder cannot make any"):
        given.embeddings(keys)


def test_probabilities__many_images_are_classified_elsewhere_and_are_the_same(
    prepared, world, tmp_path, monkeypatch
):
    monkeypatch.setattr(project_generator, "MIN_KEYS", 4)
    here = predictions_of(prepared, tmp_path)
    keys = [one.content_hash for one in here.generate(REQUESTS) if one.is_kept]
    engine = Noting()
    there = GeneratedPredictions(
        here._service,
        replace(prepared, classifier=planted_classifier(world)),
        tmp_path / "there",
        engine=engine,
    )
    there.generate(REQUESTS)
    np.testing.assert_array_equal(there.probabilities(keys), here.probabilities(keys))
    assert engine.n_items == [len(keys)]
    assert there.probabilities(keys).shape == (len(keys), 4)
    assert engine.n_items == [len(keys)]
    (here._service.place(there._kept[keys[0]])).write_bytes(b"rubbish")
    with pytest.raises(StoreError, match="cannot be read: 1 not-an-image"):
        there._classify(keys)
