"""One pass over the images of a source: what is read and decoded once, and what happens when something goes wrong."""

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image, ImageFile

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.roles import ClassifierOutput
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.run.embedding import EmbedSettings, cached_embedder, embed
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import FlushPolicy, KnownContents, PassModels
from weakspot.run.models import ClassifySettings, cached_classifier, classify
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=2, queue_depth=4)


class MeanClassifier:
    """Answers by the mean red of an image."""

    classifier_id = "mean@1"
    task = Task.SINGLE_LABEL
    head = None

    def __init__(self, *, class_names=("cat", "dog"), image_side=8, fails_at=None):
        self.class_names = class_names
        self.image_side = image_side
        self.fails_at = fails_at
        self.n_seen = 0

    def prepare(self, image):
        return np.asarray(image, dtype=np.float32).mean(axis=(0, 1))

    def classify(self, prepared):
        if self.fails_at is not None and self.n_seen >= self.fails_at:
            raise ConnectionError("gone")
        self.n_seen += len(prepared)
        red = np.stack(prepared)[:, 0] / 255
        return ClassifierOutput(probabilities=np.stack([red, 1 - red], axis=1), features=None)


class MeanEmbedder:
    """The mean colour of an image."""

    encoder_id = "colour@1"
    dimension = 3
    has_text = False

    def __init__(self, *, image_side=8):
        self.image_side = image_side
        self.n_seen = 0

    def prepare(self, image):
        return np.asarray(image, dtype=np.float32).mean(axis=(0, 1))

    def embed_prepared(self, prepared):
        self.n_seen += len(prepared)
        return np.stack(prepared) / 255


@pytest.fixture
def folder(tmp_path):
    noise = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(5):
            pixels = noise.integers(0, 255, (90, 120, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / name / f"{number}.jpg")
    (tmp_path / "data" / "cat" / "broken.jpg").write_bytes(
        (tmp_path / "data" / "cat" / "0.jpg").read_bytes()[:900]
    )
    (tmp_path / "data" / "dog" / "same.jpg").write_bytes(
        (tmp_path / "data" / "dog" / "1.jpg").read_bytes()
    )
    return tmp_path / "data"


@pytest.fixture
def decoded(monkeypatch):
    """Count the images whose pixels are decoded."""
    sizes = []
    load = ImageFile.ImageFile.load

    def counting(self):
        if self.tile:
            sizes.append(self.size)
        return load(self)

    monkeypatch.setattr(ImageFile.ImageFile, "load", counting)
    return sizes


def read(store, folder, classifier, embedder, *, engine=ENGINE, **more):
    def models():
        return PassModels(
            models=(
                cached_classifier(store, classifier, ClassifySettings(batch_size=4)),
                cached_embedder(store, embedder, EmbedSettings(batch_size=4)),
            ),
            classifier=classifier,
        )

    return ingest(
        store, ImageFolderSource(location=str(folder)), engine=engine, models=models, **more
    )


def test_ingest__every_image_is_decoded_once_for_all(tmp_path, folder, decoded):
    store, classifier, embedder = (
        ProjectStore.create(tmp_path / "p"),
        MeanClassifier(),
        MeanEmbedder(image_side=6),
    )
    summary = read(store, folder, classifier, embedder)
    assert (summary.n_samples, dict(summary.quarantined)) == (11, {"truncated": 1})
    # Of twelve files each is decoded once; the broken one a second time, for the reason.
    assert len(decoded) == 13
    assert summary.n_answered == (10, 10)
    classified = classify(store, store.dataset(), classifier, engine=ENGINE)
    embedded = embed(store, store.dataset(), embedder, engine=ENGINE)
    assert (classified.n_new, classified.n_predictions) == (0, 11)
    assert (embedded.n_new, embedded.n_embeddings) == (0, 11)
    assert len(decoded) == 13


@pytest.mark.parametrize("sides", [(8, 6), (60, 8), (None, 30)])
@pytest.mark.parametrize("engine", [ENGINE, ProcessEngine(n_workers=2)], ids=["here", "elsewhere"])
def test_ingest__gives_what_separate_passes_give(tmp_path, folder, sides, engine):
    one, other = (ProjectStore.create(tmp_path / name) for name in ("one", "other"))
    classifier, embedder = MeanClassifier(image_side=sides[0]), MeanEmbedder(image_side=sides[1])
    read(one, folder, classifier, embedder, engine=engine)
    ingest(other, ImageFolderSource(location=str(folder)), engine=ENGINE)
    assert one.dataset().table.equals(other.dataset().table)
    found = [classify(store, store.dataset(), classifier, engine=ENGINE) for store in (one, other)]
    assert [result.n_new for result in found] == [0, 10]
    np.testing.assert_array_equal(found[0].dataset.probabilities, found[1].dataset.probabilities)
    spaces = [
        embed(store, store.dataset(), embedder, engine=ENGINE).space for store in (one, other)
    ]
    np.testing.assert_array_equal(spaces[0].embeddings, spaces[1].embeddings)


def test_ingest__what_a_model_knows_is_not_asked_again(tmp_path, folder):
    store = ProjectStore.create(tmp_path / "p")
    read(store, folder, MeanClassifier(), MeanEmbedder())
    moved = folder.rename(tmp_path / "moved")
    Image.new("RGB", (9, 9), (1, 2, 3)).save(moved / "dog" / "new.png")
    classifier, embedder = MeanClassifier(), MeanEmbedder()
    read(store, moved, classifier, embedder)
    assert (classifier.n_seen, embedder.n_seen) == (1, 1)


def test_ingest__interrupted__goes_on_where_it_was(tmp_path, folder):
    store = ProjectStore.create(tmp_path / "p")
    often = {"flush": FlushPolicy(n_samples=4, seconds=60)}
    with pytest.raises(ConnectionError, match="gone"):
        read(store, folder, MeanClassifier(fails_at=5), MeanEmbedder(), **often)
    classifier, embedder = MeanClassifier(), MeanEmbedder()
    summary = read(store, folder, classifier, embedder, **often)
    assert summary.n_samples == 11
    assert 0 < classifier.n_seen <= 7
    assert embedder.n_seen == classifier.n_seen
    assert classify(store, store.dataset(), classifier, engine=ENGINE).n_predictions == 11


def test_ingest__a_label_that_the_classifier_does_not_know_ends_it_at_once(tmp_path, folder):
    store = ProjectStore.create(tmp_path / "p")
    classifier = MeanClassifier(class_names=("kitten", "dog"))
    with pytest.raises(ModelError, match=r"do not have the same classes.*\['cat'\].*kitten"):
        read(store, folder, classifier, MeanEmbedder())


def test_known_contents__halves_of_hashes():
    hashes = ["00" * 16, "ab" * 16, "ff" * 16]
    known = KnownContents(packed_hashes(pa.array(hashes)))
    assert all(one in known for one in hashes)
    assert "ab" * 7 + "ac" + "ab" * 8 not in known
    assert "ab" * 16 not in KnownContents(packed_hashes(pa.array([], pa.string())))
