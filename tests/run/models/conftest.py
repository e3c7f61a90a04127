import pytest
from tests.build import write_image_folder

from weakspot.data.engine.local import LocalEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.run.ingestion import ingest
from weakspot.store.project import ProjectStore


@pytest.fixture
def folder(tmp_path):
    """Three images of one colour for each of two classes: red 50, 100, 150, and green 10 or 100."""
    return write_image_folder(tmp_path / "data", {"cat": 10, "dog": 100}, 3)


@pytest.fixture
def store_of(tmp_path):
    """Make a store of a folder of images, under a name; they are ingested."""

    def made(folder, name="project"):
        store = ProjectStore.create(tmp_path / name)
        engine = LocalEngine(n_workers=2, queue_depth=4)
        ingest(store, ImageFolderSource(location=str(folder)), engine=engine)
        return store

    return made


@pytest.fixture
def project(store_of, folder):
    return store_of(folder)
