"""What is not enough to say anything is refused before anything is written."""

import pytest

from weakspot.core.errors import DataError
from weakspot.project.given import check_enough, gather


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"labels": [], "predictions": [], "metadata": {"a": []}}, "no samples"),
        ({"labels": [None], "predictions": [0], "metadata": {"a": [1]}}, "Not one sample has"),
        (
            {"labels": [0], "predictions": [None], "metadata": {"a": [1]}},
            "what the classifier says",
        ),
        ({"labels": [0], "predictions": [0], "metadata": {}}, "alone do not say"),
        ({"labels": [0], "predictions": [0], "images": [None]}, "Not one of 1 images"),
        ({"labels": [0], "predictions": [0], "images": ["gone/a.png"]}, "relative ones start at"),
    ],
)
def test_check_enough__says_what_is_missing(given, said):
    with pytest.raises(DataError, match=said):
        check_enough(gather(**given))


def test_check_enough__one_file_that_is_there_or_elsewhere__is_enough(tmp_path):
    (tmp_path / "a.png").touch()
    for image in (tmp_path / "a.png", "https://example.org/a.png", b"\x89PNG"):
        check_enough(gather(labels=[0, 1], predictions=[0, 1], images=["gone.png", image]))
