from dataclasses import replace

import numpy as np
import pytest

from weakspot.app import drawn_outcomes
from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.app.preparation import EmbedSummary, Prepared
from weakspot.app.studio import Studio
from weakspot.backends.given_vectors import GivenVectors
from weakspot.core.assistants import NOBODY
from weakspot.core.drawn import PictureOrder
from weakspot.core.errors import ConfigError, DataError, ModelError, StoreError
from weakspot.core.roles import ClassifierOutput
from weakspot.engine.processes import ProcessEngine
from weakspot.generate.gate import Gate
from weakspot.store.drawings import Drawings
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import rare

ORDERS = [PictureOrder(class_name="disc", prompt="a photo of a green disc", seed=seed) for seed in range(6)]


class Counting:
    """A classifier that counts its pictures."""

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
        assistants=NOBODY,
        embedder=PlantedEmbedder(),
        classifier=Counting(planted_classifier(world)),
        summary=EmbedSummary(),
        inputs={},
    )


def outcomes_of(prepared, folder):
    studio = Studio(PlantedImageGenerator(), Drawings(folder), gate=Gate())
    return DrawnOutcomes(studio, prepared, folder)


def test_drawn_outcomes__each_picture_is_asked_about_once_also_by_another_session(prepared, world, tmp_path):
    outcomes = outcomes_of(prepared, tmp_path)
    keys = [one.content_hash for one in outcomes.draw(ORDERS) if one.is_kept]
    first = outcomes.probabilities(keys)
    assert first.shape == (len(keys), 4)
    assert np.allclose(first.sum(axis=1), 1.0, atol=1e-4)
    outcomes.flush()
    again = outcomes_of(prepared, tmp_path)
    again.draw(ORDERS)
    assert np.array_equal(again.probabilities(keys[::-1]), first[::-1])
    assert prepared.classifier.n_asked == len(keys)


def test_drawn_outcomes__columns_are_in_the_order_of_the_data_set(prepared, tmp_path):
    class Turned(Counting):
        @property
        def class_names(self):
            return self.inner.class_names[::-1]

        def classify(self, prepared):
            return ClassifierOutput(probabilities=self.inner.classify(prepared).probabilities[:, ::-1])

    straight, turned = outcomes_of(prepared, tmp_path / "1"), None
    turned = outcomes_of(replace(prepared, classifier=Turned(prepared.classifier.inner)), tmp_path / "2")
    keys = [one.content_hash for one in straight.draw(ORDERS) if one.is_kept]
    turned.draw(ORDERS)
    assert np.array_equal(straight.probabilities(keys), turned.probabilities(keys))


def test_drawn_outcomes__vectors_are_those_of_the_embedder(prepared, tmp_path):
    outcomes = outcomes_of(prepared, tmp_path)
    keys = [one.content_hash for one in outcomes.draw(ORDERS) if one.is_kept]
    embedder = PlantedEmbedder()
    expected = embedder.embed_prepared([embedder.prepare(outcomes.picture(key)) for key in keys])
    assert np.allclose(outcomes.vectors(keys), expected, atol=1e-6)
    assert outcomes.vectors([]).shape == (0, embedder.dimension)
    assert outcomes.probabilities([]).shape == (0, 4)


def test_drawn_outcomes__a_classifier_of_vectors_gets_vectors(prepared, tmp_path):
    class OfVectors(Counting):
        reads = "vectors"

        def classify(self, vectors):
            return ClassifierOutput(probabilities=np.full((len(vectors), 4), 0.25, dtype=np.float32))

    outcomes = outcomes_of(replace(prepared, classifier=OfVectors(prepared.classifier.inner)), tmp_path)
    keys = [one.content_hash for one in outcomes.draw(ORDERS) if one.is_kept]
    assert outcomes.probabilities(keys).tolist() == [[0.25] * 4] * len(keys)


def test_drawn_outcomes__what_cannot_work_is_refused(prepared, tmp_path):
    with pytest.raises(ConfigError, match="Without a classifier"):
        outcomes_of(replace(prepared, classifier=None), tmp_path)
    many = plant(rare(0.05), 200, seed=1, is_multi_label=True)
    with pytest.raises(DataError, match="single-label"):
        outcomes_of(replace(prepared, samples=many.samples()), tmp_path)
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    given = outcomes_of(replace(prepared, embedder=GivenVectors(path=tmp_path / "vectors.npy")), tmp_path)
    keys = [one.content_hash for one in given.draw(ORDERS) if one.is_kept]
    assert not given.has_vectors
    with pytest.raises(ConfigError, match="embedder cannot make any"):
        given.vectors(keys)


def test_drawn_outcomes__logits_are_noticed(prepared, tmp_path):
    class Logits(Counting):
        def classify(self, prepared):
            return ClassifierOutput(probabilities=np.full((len(prepared), 4), 3.0, dtype=np.float32))

    outcomes = outcomes_of(replace(prepared, classifier=Logits(prepared.classifier.inner)), tmp_path)
    keys = [one.content_hash for one in outcomes.draw(ORDERS) if one.is_kept]
    with pytest.raises(ModelError, match="outside"):
        outcomes.probabilities(keys)


def test_probabilities__many_pictures_are_classified_elsewhere_and_are_the_same(prepared, world, tmp_path, monkeypatch):
    monkeypatch.setattr(drawn_outcomes, "FEWEST_KEYS", 4)
    here = outcomes_of(prepared, tmp_path)
    keys = [one.content_hash for one in here.draw(ORDERS) if one.is_kept]
    engine = Noting()
    there = DrawnOutcomes(here._studio, replace(prepared, classifier=planted_classifier(world)), tmp_path / "there", engine=engine)
    there.draw(ORDERS)
    np.testing.assert_array_equal(there.probabilities(keys), here.probabilities(keys))
    assert engine.n_items == [len(keys)]
    assert there.probabilities(keys).shape == (len(keys), 4)
    assert engine.n_items == [len(keys)]
    (here._studio.place(there._kept[keys[0]])).write_bytes(b"rubbish")
    with pytest.raises(StoreError, match="cannot be read: 1 not-a-picture"):
        there._classified(keys)
