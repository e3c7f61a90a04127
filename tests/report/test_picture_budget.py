import io

import numpy as np
import pytest
from PIL import Image

from weakspot.report.picture_budget import PicturePlan, fit_pictures
from weakspot.report.pictures import ShownPicture, SlicePictures

ASKED = PicturePlan(n_each=8, side=160)


def _noise(side):
    """A picture that compresses as badly as a photograph can."""
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)).save(stream, "JPEG", quality=82)
    return stream.getvalue()


@pytest.fixture(scope="module")
def make():
    known = {}

    def of(_sample_id, side):
        return known.setdefault(side, _noise(side))

    return of


def _pictures(n_slices, n_each=8):
    def shown(number, end):
        return tuple(ShownPicture(sample_id=f"{end}{number}-{place}", answer="x", has_failed=True) for place in range(n_each))

    return {f"s{number}": SlicePictures(hard=shown(number, "h"), easy=shown(number, "e")) for number in range(n_slices)}


def _taken(fitted):
    return sum(4 * len(fitted.thumbnails[name]) / 3 for each in fitted.pictures.values() for name in each.sample_ids)


def test_fit_pictures__few_slices__everything_as_asked(make):
    fitted = fit_pictures(_pictures(3), make, asked=ASKED, most_bytes=9_000_000, most_megabytes=10)
    assert fitted.pictures == _pictures(3)
    assert fitted.note == ""


def test_fit_pictures__two_hundred_slices__fewer_and_smaller_and_said(make):
    fitted = fit_pictures(_pictures(200), make, asked=ASKED, most_bytes=9_000_000, most_megabytes=10)
    assert _taken(fitted) < 9_000_000
    assert len(fitted.pictures) == 200
    assert "below 10 MB" in fitted.note
    assert "of 8 pictures" in fitted.note


def test_fit_pictures__no_room_for_all__first_slices_have_them(make):
    fitted = fit_pictures(_pictures(200), make, asked=ASKED, most_bytes=100_000, most_megabytes=1)
    assert _taken(fitted) < 100_000
    assert 0 < len(fitted.pictures) < 200
    assert list(fitted.pictures) == [f"s{number}" for number in range(len(fitted.pictures))]
    assert f"findings after number {len(fitted.pictures)} are shown without pictures" in fitted.note


def test_fit_pictures__no_room__no_pictures(make):
    fitted = fit_pictures(_pictures(2), make, asked=ASKED, most_bytes=0, most_megabytes=0.5)
    assert fitted.pictures == {}
    assert "no pictures are shown" in fitted.note


def test_fit_pictures__lost_pictures__are_left_blank():
    fitted = fit_pictures(_pictures(2), lambda _name, _side: None, asked=ASKED, most_bytes=9_000_000, most_megabytes=10)
    assert len(fitted.pictures) == 2
    assert fitted.thumbnails == {}
