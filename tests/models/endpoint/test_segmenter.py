import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.models.tiny_servers import bytes_of, png

from weakspot.core.errors import ModelError
from weakspot.core.roles import Segmenter
from weakspot.models.endpoint.predictions import NOTHING, EndpointSegmenter

DOCUMENT = Path(__file__).parents[3] / "docs/reference/endpoint.md"


@pytest.fixture
def server(server_of):
    return server_of("masks")


def _segmenter(server, **options):
    return EndpointSegmenter(url=server.url, **{"first_wait_seconds": 0.0, **options})


def _image(box=(8, 4, 23, 11), size=(64, 16)):
    image = Image.new("RGB", size)
    ImageDraw.Draw(image).rectangle(box, fill="white")
    return image


def test_segment__mask_has_the_size_of_the_image_and_covers_the_object(server):
    segmenter = _segmenter(server)
    assert isinstance(segmenter, Segmenter)
    found = segmenter.segment([_image(), _image((40, 0, 47, 15))], class_names=["disc", "bar"])
    assert [mask.coverage.shape for mask in found] == [(16, 64), (16, 64)]
    assert (found[0].coverage[4:12, 8:24] == 1).all()
    assert found[0].coverage.sum() == 8 * 16
    assert (found[1].coverage[:, 40:48] == 1).all()
    assert [(mask.quality, mask.refused) for mask in found] == [(0.9, "")] * 2
    assert {one["instances"][0]["class"] for one in server.bodies} == {"disc", "bar"}


def test_segment__large_image__sent_smaller_and_the_mask_comes_back_in_full_size(server):
    mask = _segmenter(server, image_side=8).segment([_image()], class_names=["disc"])[0]
    sent = base64.b64decode(server.bodies[0]["instances"][0]["image"]["b64"])
    assert Image.open(io.BytesIO(sent)).size == (32, 8)
    assert mask.coverage.shape == (16, 64)
    assert mask.coverage[8, 16] == 1
    assert mask.coverage[8, 60] == 0


@pytest.mark.parametrize(
    ("image", "quality", "reason"),
    [
        (Image.new("RGB", (8, 8)), 0.9, NOTHING),
        (_image(), 0.3, "the service gives its mask the quality 0.30"),
    ],
)
def test_segment__nothing_there_or_not_sure__refused(server, image, quality, reason):
    server.quality = quality
    mask = _segmenter(server).segment([image], class_names=["disc"])[0]
    assert mask.refused == reason
    assert mask.coverage.shape == (image.height, image.width)


def test_segment__mask_without_a_white_pixel__refused(server):
    black = {"mask": {"b64": bytes_of(png(Image.new("L", (8, 8))))}}
    server.misbehave = [(200, {}, json.dumps({"predictions": [black]}).encode())]
    assert _segmenter(server).segment([_image()], class_names=["disc"])[0].refused == NOTHING


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>", "Invalid JSON"),
        (b'{"predictions": []}', "predictions"),
        (b'{"predictions": [{"mask": {"b64": "no"}}]}', "mask"),
        (b'{"predictions": [{"mask": {"b64": "%%"}}]}', "mask"),
        (b'{"predictions": [{"mask": null, "quality": "high"}]}', "quality"),
        (b'{"predictions": [{"quality": 1.0}]}', "mask"),
    ],
)
def test_segment__answer_that_does_not_fit__says_which_field(server, answer, said):
    server.misbehave = [(200, {}, answer)]
    with pytest.raises(ModelError, match=r"docs/reference/endpoint.md") as caught:
        _segmenter(server).segment([_image()], class_names=["disc"])
    assert said in str(caught.value)


def test_segmenter_id__changes_with_what_decides_the_mask(server):
    ids = {
        _segmenter(server, **options).segmenter_id
        for options in ({}, {"version": "2"}, {"image_side": 64}, {"least_quality": 0.1})
    }
    assert len(ids) == 4


def test_document__shows_what_is_sent_and_understood(server):
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    shown = [json.loads(block) for block in blocks]
    request = next(one for one in shown if "class" in one.get("instances", [{}])[0])
    answers = [one for one in shown if "mask" in one.get("predictions", [{}])[0]]
    _segmenter(server).segment([_image()], class_names=["apple"])
    assert server.bodies[0]["instances"][0].keys() == request["instances"][0].keys()
    assert len(answers) == 2
    for answer in answers:
        server.misbehave = [(200, {}, json.dumps(answer).encode())]
        mask = _segmenter(server).segment([_image()], class_names=["apple"])[0]
        assert bool(mask.refused) == (answer["predictions"][0]["mask"] is None)
        assert np.isfinite(mask.coverage).all()
