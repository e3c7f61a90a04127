import os
import shutil

import pyarrow as pa
import pytest

from weakspot.store.samples import Places


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project" / "photos").mkdir(parents=True)
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "project" / "photos" / name).write_bytes(b"1")
    return tmp_path / "project"


def _places(root):
    return Places(packs=root / ".weakspot" / "ingest", root=root)


def _through(places, *locations):
    return places.stored(pa.array(locations, pa.string())).to_pylist()


def test_places__below_the_project__stored_without_it_and_found_where_it_is_now(folder, tmp_path):
    outside = "https://example.org/c.jpg"
    given = [str(folder / "photos" / "a.jpg"), outside, None, "/elsewhere/d.jpg"]
    stored = _through(_places(folder), *given)
    assert stored == ["weakspot-project:photos/a.jpg", outside, None, "/elsewhere/d.jpg"]
    assert _places(folder).real(pa.array(stored)).to_pylist() == given
    moved = tmp_path / "moved"
    shutil.move(folder, moved)
    assert _places(moved).real(pa.array(stored)).to_pylist()[0] == str(moved / "photos" / "a.jpg")


def test_places__beside_the_project__move_with_it(folder):
    (stored,) = _through(_places(folder), f"{folder}{os.sep}../pictures/a.jpg")
    assert stored == "weakspot-project:../pictures/a.jpg"


def test_places__opened_by_another_name__key_is_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    here = Places(packs=folder.__class__(".weakspot/ingest"), root=folder.__class__("."))
    assert here.key == _places(folder).key
    (stored,) = _through(here, str(folder / "photos" / "a.jpg"))
    assert stored == "weakspot-project:photos/a.jpg"
