import io

import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.report.findings import ShownImage, SliceImages, choose_images, fit_images

ASKED = 8, 160


def _noise(side):
    """An image that compresses as badly as a photograph can."""
    stream = io.BytesIO()
    Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    ).save(stream, "JPEG", quality=82)
    return stream.getvalue()


@pytest.fixture(scope="module")
def make():
    known = {}

    def of(_sample_id, side):
        return known.setdefault(side, _noise(side))

    return of


def _images(n_slices, n_each=8):
    def shown(number, end):
        return tuple(
            ShownImage(sample_id=f"{end}{number}-{place}", answer="x", has_failed=True)
            for place in range(n_each)
        )

    return {
        f"s{number}": SliceImages(hard=shown(number, "h"), easy=shown(number, "e"))
        for number in range(n_slices)
    }


def _taken(images, thumbnails):
    return sum(
        4 * len(thumbnails[name]) / 3 for each in images.values() for name in each.sample_ids
    )


def test_fit_images__few_slices__everything_as_asked(make):
    images, _thumbnails, note = fit_images(
        _images(3), make, asked=ASKED, most_bytes=9_000_000, most_megabytes=10
    )
    assert images == _images(3)
    assert note == ""


def test_fit_images__two_hundred_slices__fewer_and_smaller_and_said(make):
    images, thumbnails, note = fit_images(
        _images(200), make, asked=ASKED, most_bytes=9_000_000, most_megabytes=10
    )
    assert _taken(images, thumbnails) < 9_000_000
    assert len(images) == 200
    assert "below 10 MB" in note
    assert "of 8 images" in note


def test_fit_images__no_room_for_all__first_slices_have_them(make):
    images, thumbnails, note = fit_images(
        _images(200), make, asked=ASKED, most_bytes=100_000, most_megabytes=1
    )
    assert _taken(images, thumbnails) < 100_000
    assert 0 < len(images) < 200
    assert list(images) == [f"s{number}" for number in range(len(images))]
    assert f"findings after number {len(images)} are shown without images" in note


def test_fit_images__no_room__no_images(make):
    images, _thumbnails, note = fit_images(
        _images(2), make, asked=ASKED, most_bytes=0, most_megabytes=0.5
    )
    assert images == {}
    assert "no images are shown" in note


def test_fit_images__lost_images__are_left_blank():
    images, thumbnails, _note = fit_images(
        _images(2), lambda _name, _side: None, asked=ASKED, most_bytes=9_000_000, most_megabytes=10
    )
    assert len(images) == 2
    assert thumbnails == {}


TOP_1 = FailureCriterion()


def _samples(**changes):
    embeddings = np.array(
        [[0.9, 0.1], [-0.5, 1], [0.2, 1], [-0.9, 0.1], [np.nan, 1], [0.6, 1]], dtype=np.float32
    )
    given = {"labels": [0, 0, 0, 0, 0, 1], "predictions": np.array([1, 0, 0, 0, 1, 1])}
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], sample_ids=list("abcdef"), **{**given, **changes}
    )
    return SampleSet(
        dataset=dataset,
        rows=np.arange(6),
        spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)},
    )


def _found(**changes):
    rule = LinearRule(encoder_id="toy", direction=(1.0, 0.0), normalise=False)
    use = DataUse(name="given", n_samples=0, digest="given")
    return FailureSlice(
        **{"class_name": "apple", "rule": rule, "method": "hand", "found_on": use, **changes}
    )


def test_choose_images__deepest_and_farthest_first():
    shown = choose_images(_found(), _samples(), TOP_1)
    assert [image.sample_id for image in shown.hard] == ["a", "c"]
    assert [image.sample_id for image in shown.easy] == ["d", "b"]
    assert [(image.answer, image.has_failed) for image in shown.hard] == [
        ("pear", True),
        ("apple", False),
    ]
    assert shown.sample_ids == ("a", "c", "d", "b")


def test_choose_images__multi_label_says_right_or_wrong():
    said = np.array([[False, False]] + [[True, False]] * 4 + [[False, False]])
    samples = _samples(
        labels=None, predictions=None, label_lists=[[0]] * 5 + [[]], predicted_matrix=said
    )
    shown = choose_images(_found(side="present"), samples, TOP_1)
    assert [image.answer for image in shown.hard] == ["wrong", "right"]
