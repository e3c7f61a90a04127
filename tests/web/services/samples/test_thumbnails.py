import threading
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from weakspot.project.project import Project
from weakspot.web.services.samples import ThumbnailFolder, sample_facts, thumbnail
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def pictured(unassigned_folder):
    return Workspace(Project.open(unassigned_folder))


def test_thumbnail__image__is_a_small_jpeg_made_once(pictured):
    first = thumbnail(pictured, 3, side=70)
    image = Image.open(BytesIO(first.data))
    assert (image.format, max(image.size)) == ("JPEG", 64)
    kept = pictured.project.store.data / "thumbnails" / first.tag[:2] / f"{first.tag}.jpg"
    assert kept.read_bytes() == first.data
    assert thumbnail(pictured, 3, side=96) == first, "the next larger step is the same size"
    assert thumbnail(pictured, 3, side=64).tag != first.tag


@pytest.mark.parametrize("row", [-1, 10**9])
def test_thumbnail__no_such_row__is_none(pictured, row):
    assert thumbnail(pictured, row, side=64) is None
    assert sample_facts(pictured, row) is None


def test_thumbnail__unreadable_or_missing_image__is_none(world_workspace, pictured, monkeypatch):
    assert thumbnail(world_workspace, 0, side=64) is None
    monkeypatch.setattr(
        "weakspot.data.images.read_location", lambda location: b"\xff\xd8\xff broken"
    )
    assert thumbnail(pictured, 5, side=512) is None


def test_folder__too_many_bytes__oldest_go(tmp_path):
    kept = ThumbnailFolder(tmp_path / "thumbnails", most_bytes=1000)
    for number in range(30):
        kept.keep(f"{number:032x}", bytes([number]) * 100)
    left = list((tmp_path / "thumbnails").glob("*/*.jpg"))
    assert sum(path.stat().st_size for path in left) <= 1000
    assert kept.get(f"{29:032x}") == bytes([29]) * 100
    assert kept.get(f"{0:032x}") is None


def test_folder__many_at_once__whole_files_or_none(tmp_path):
    kept = [ThumbnailFolder(tmp_path / "thumbnails", most_bytes=200_000) for _ in range(2)]
    found: list[bytes | None] = []

    def work(place: int) -> None:
        for _ in range(60):
            kept[place % 2].keep("ab" * 16, b"x" * 5000)
            found.append(kept[(place + 1) % 2].get("ab" * 16))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {b"x" * 5000}
    assert [path.suffix for path in (tmp_path / "thumbnails").glob("*/*")] == [".jpg"]


def test_folder__cannot_be_written__is_no_error(tmp_path):
    (tmp_path / "thumbnails").write_text("a file stands in the way")
    kept = ThumbnailFolder(tmp_path / "thumbnails")
    kept.keep("ab" * 16, b"data")
    assert kept.get("ab" * 16) is None


def test_sample_facts__sample__says_all_but_where_it_lies(pictured):
    row = int(pictured.problems["disc"].rows[0])
    found = sample_facts(pictured, row)
    assert found.labels == ["disc"]
    assert found.is_failure == bool(pictured.problems["disc"].failed[0])
    assert found.probabilities[0].class_name == found.answers[0]
    assert {"colour", "background"} <= {column.name for column in found.columns}
    assert (found.width, found.height) == (64, 64)
    location = str(pictured.samples.dataset.locations(np.array([row]))[0])
    assert location not in found.model_dump_json()
