"""Folders with images and tables that nobody has read yet."""

import pytest
from PIL import Image

from weakspot.web.services.setup import AllowedPlaces


@pytest.fixture
def given(tmp_path):
    """A folder `given` with 12 images of two classes, and tables beside them."""
    folder = tmp_path / "given"
    lines = ["file,truth,said,where"]
    for number in range(12):
        name = ("cat", "dog")[number % 2]
        place = folder / "photos" / name / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 8), (20 * number, 40, 90)).save(place)
        lines.append(f"photos/{name}/{number}.png,{name},cat,{('in', 'out')[number // 6]}")
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")
    (folder / "model.onnx").write_bytes(b"no model")
    (folder / ".hidden").mkdir()
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture
def places(given):
    return AllowedPlaces(start=given, roots=(given,))
