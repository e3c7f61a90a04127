import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.run.ingestion import find_missing_images


@pytest.fixture
def images(tmp_path):
    paths = [tmp_path / f"{number}.jpg" for number in range(5)]
    for path in paths:
        path.write_bytes(b"1")
    return paths


def _dataset(*locations):
    return dataset_from_columns(
        class_names=["a"], labels=[0] * len(locations), locations=list(locations)
    )


def test_missing__all_there_or_far_away__nothing_to_say(images):
    places = [*map(str, images[:3]), f"{images[3]}#bytes=0-1", "https://example.org/a.jpg", None]
    assert find_missing_images(_dataset(*places)) is None
    assert find_missing_images(_dataset(None, None)) is None


def test_missing__folder_moved__says_what_where_and_what_to_do(images, tmp_path):
    gone = str(tmp_path / "gone" / "x.jpg")
    found = find_missing_images(_dataset(str(images[0]), gone))
    assert (found.n_missing, found.n_looked_at, found.example) == (1, 2, gone)
    assert found.sentence == "1 of 2 images that were looked at cannot be found."
    assert str(tmp_path) not in found.sentence
    assert gone in found.notice
    assert "weakspot.toml" in found.notice
    assert find_missing_images(_dataset(gone)).sentence == (
        "None of 1 images that were looked at can be found."
    )
