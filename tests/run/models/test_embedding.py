from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import NotEnoughDataError
from weakspot.data.engine.local import LocalEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.models.given_embeddings import GivenEmbeddings
from weakspot.run.embedding import EmbedSettings, cached_embedder, embed
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import FlushPolicy, map_missing
from weakspot.store.array_files import packed_hashes
from weakspot.store.embeddings import SharedEmbeddings

ENGINE = LocalEngine(n_workers=2, queue_depth=4)


class ColourEmbedder:
    encoder_id = "colour@1"
    dimension = 3
    image_side = 4
    has_text = False

    def __init__(self, *, stop_after=None):
        self.n_embedded = 0
        self.stop_after = stop_after

    def prepare(self, image):
        return np.asarray(image.resize((1, 1)), dtype=np.float32).reshape(3)

    def embed_prepared(self, prepared):
        if self.stop_after is not None and self.n_embedded >= self.stop_after:
            raise ConnectionError("gone")
        self.n_embedded += len(prepared)
        return np.stack(prepared)

    def embed_texts(self, texts):
        raise AssertionError(texts)


def test_embed__in_the_order_of_the_data_set(project):
    found = embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    np.testing.assert_array_equal(
        found.space.embeddings, [[r, g, 7] for g in (10, 100) for r in (50, 100, 150)]
    )
    assert found.space.encoder_id == "colour@1"
    assert (found.n_new, found.n_embeddings, found.unreadable) == (6, 6, ())


def test_embed__second_time_costs_nothing(project):
    embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    again = ColourEmbedder()
    found = embed(project, project.dataset(), again, engine=ENGINE)
    assert (again.n_embedded, found.n_new, found.n_embeddings) == (0, 0, 6)
    assert found.space.embeddings[5].tolist() == [150, 100, 7]


def test_embed__only_new_images(project, folder):
    embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    Image.new("RGB", (8, 6), (1, 2, 3)).save(folder / "cat" / "new.png")
    (folder / "dog" / "copy.png").write_bytes((folder / "dog" / "0.png").read_bytes())
    ingest(project, ImageFolderSource(location=str(folder)), engine=ENGINE)
    embedder = ColourEmbedder()
    found = embed(project, project.dataset(), embedder, engine=ENGINE)
    assert embedder.n_embedded == 1
    assert found.n_embeddings == 8
    assert found.space.embeddings[3].tolist() == [1, 2, 3]
    assert found.space.embeddings[7].tolist() == found.space.embeddings[4].tolist()


def test_embed__interrupted_goes_on_where_it_was(project):
    settings = EmbedSettings(batch_size=1, flush=FlushPolicy(n_samples=1, seconds=60))
    with pytest.raises(ConnectionError):
        embed(
            project,
            project.dataset(),
            ColourEmbedder(stop_after=4),
            engine=ENGINE,
            settings=settings,
        )
    rest = ColourEmbedder()
    found = embed(project, project.dataset(), rest, engine=ENGINE, settings=settings)
    assert rest.n_embedded == 2
    assert found.space.embeddings[4].tolist() == [100, 100, 7]


def test_embed__moved_image_has_no_embedding_until_it_is_back(project, folder):
    (folder / "cat" / "1.png").rename(folder / "away.png")
    found = embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    is_missing = np.isnan(found.space.embeddings).all(axis=1)
    assert np.flatnonzero(is_missing).tolist() == [1]
    assert [(item.position, item.reason) for item in found.unreadable] == [(1, "missing-file")]
    assert (found.n_new, found.n_embeddings) == (5, 5)
    (folder / "away.png").rename(folder / "cat" / "1.png")
    mended = embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    assert (mended.n_new, mended.n_embeddings, mended.unreadable) == (1, 6, ())
    assert mended.space.embeddings[1].tolist() == [100, 10, 7]


def test_embed__image_changed_after_ingest_is_not_cached_under_the_old_hash(project, folder):
    Image.new("RGB", (8, 6), (255, 255, 255)).save(folder / "cat" / "0.png")
    found = embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    assert [item.reason for item in found.unreadable] == ["changed"]
    assert np.isnan(found.space.embeddings[0]).all()


def test_embed__all_images_gone(project, folder):
    for path in folder.rglob("*.png"):
        path.unlink()
    with pytest.raises(
        NotEnoughDataError, match="Not one of 6 samples could be embedded: 6 missing-file"
    ):
        embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)


def test_embed__damaged_embeddings_are_made_anew(project):
    embed(project, project.dataset(), ColourEmbedder(), engine=ENGINE)
    folder = project.embeddings("colour@1").folder
    for path in (*folder.glob("shard-*.npy"), *folder.glob("matrix-*.npy")):
        path.write_bytes(path.read_bytes()[:-1])
    embedder = ColourEmbedder()
    found = embed(project, project.dataset(), embedder, engine=ENGINE)
    assert embedder.n_embedded == 6
    assert found.space.embeddings[5].tolist() == [150, 100, 7]


def test_embed__given_embeddings(project, tmp_path):
    np.save(tmp_path / "given.npy", np.eye(6, dtype=np.float32))
    found = embed(
        project, project.dataset(), GivenEmbeddings(path=tmp_path / "given.npy"), engine=ENGINE
    )
    assert found.space.embeddings.tolist() == np.eye(6).tolist()
    assert (found.n_new, found.n_embeddings) == (0, 6)
    assert not (Path(project.data) / "embeddings").exists()


class CompanyEmbedder(ColourEmbedder):
    """Its numbers depend on which images share a batch, as rounding in a matrix product may."""

    encoder_id = "company@1"

    def embed_prepared(self, prepared):
        return super().embed_prepared(prepared) + np.sum(prepared, dtype=np.float32)


@pytest.mark.parametrize("stop_after", [2, 4])
def test_embed__a_resumed_run_has_the_batches_of_a_whole_one(project, store_of, folder, stop_after):
    every_batch = EmbedSettings(batch_size=2, flush=FlushPolicy(n_samples=1, seconds=3600))
    with pytest.raises(ConnectionError):
        embed(
            project,
            project.dataset(),
            CompanyEmbedder(stop_after=stop_after),
            engine=ENGINE,
            settings=every_batch,
        )
    again = CompanyEmbedder()
    resumed = embed(project, project.dataset(), again, engine=ENGINE, settings=every_batch)
    assert again.n_embedded == 6 - stop_after
    other = store_of(folder, "other")
    whole = embed(other, other.dataset(), CompanyEmbedder(), engine=ENGINE, settings=every_batch)
    np.testing.assert_array_equal(resumed.space.embeddings, whole.space.embeddings)


def test_embed__another_project_of_the_same_images_computes_nothing(folder, store_of, tmp_path):
    shared = EmbedSettings(shared=SharedEmbeddings(folder=tmp_path / "shared"))
    first, second = (store_of(folder, name) for name in ("first", "second"))
    made = embed(first, first.dataset(), ColourEmbedder(), engine=ENGINE, settings=shared)
    assert (made.n_new, made.n_shared) == (6, 0)
    Image.new("RGB", (8, 6), (1, 2, 3)).save(folder / "cat" / "new.png")
    second = store_of(folder, "third")
    embedder = ColourEmbedder()
    again = embed(second, second.dataset(), embedder, engine=ENGINE, settings=shared)
    assert (again.n_new, again.n_shared, embedder.n_embedded) == (1, 6, 1)
    alone = store_of(folder, "alone")
    expected = embed(alone, alone.dataset(), ColourEmbedder(), engine=ENGINE)
    np.testing.assert_array_equal(again.space.embeddings, expected.space.embeddings)


def test_embed__shared_ones_gone_after_the_pass__computed_after_all(folder, store_of, tmp_path):
    shared = SharedEmbeddings(folder=tmp_path / "shared")
    settings = EmbedSettings(shared=shared)
    first, second = (store_of(folder, name) for name in ("first", "second"))
    embed(first, first.dataset(), ColourEmbedder(), engine=ENGINE, settings=settings)
    embedder = ColourEmbedder()
    dataset = second.dataset()
    keys = packed_hashes(dataset.table.column("content_hash"))
    models = [cached_embedder(second, embedder, settings)]
    (done,) = map_missing(dataset, keys, models, engine=ENGINE)
    assert (done.n_new, embedder.n_embedded) == (0, 0)
    for path in shared.folder.glob("*/shard-*.npy"):
        path.unlink()
    made = embed(second, dataset, embedder, engine=ENGINE, settings=settings, done=done)
    assert (made.n_new, made.n_embeddings, embedder.n_embedded) == (6, 6, 6)
