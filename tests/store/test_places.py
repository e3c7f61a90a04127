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


def test_places__stored_whole_by_an_earlier_version__found_by_the_end_of_the_path(folder, tmp_path):
    old = [f"{folder}/photos/{name}" for name in ("a.jpg", "b.jpg", "gone.jpg")]
    moved = tmp_path / "moved"
    shutil.move(folder, moved)
    found = _places(moved).real(pa.array(old)).to_pylist()
    assert found == [f"{moved}/photos/{name}" for name in ("a.jpg", "b.jpg", "gone.jpg")]


def test_places__still_where_they_were__a_copy_reads_the_first_ones(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    old = [f"{folder}/photos/a.jpg", None]
    assert _places(tmp_path / "copy").real(pa.array(old)).to_pylist() == old


def test_places__nowhere_to_be_found__stay_as_they_are(folder):
    old = ["/gone/photos/x.jpg", "/gone/y.jpg#bytes=1-2"]
    assert _places(folder).real(pa.array(old)).to_pylist() == old


def test_places__packs__become_paths(folder):
    packed = pa.array(["weakspot-pack:g/images-0000.bin#bytes=0-4"])
    assert _places(folder).real(packed).to_pylist() == [
        f"{folder}/.weakspot/ingest/g/images-0000.bin#bytes=0-4"
    ]


def test_places__opened_by_another_name__key_is_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    here = Places(packs=folder.__class__(".weakspot/ingest"), root=folder.__class__("."))
    assert here.key == _places(folder).key
    (stored,) = _through(here, str(folder / "photos" / "a.jpg"))
    assert stored == "weakspot-project:photos/a.jpg"
