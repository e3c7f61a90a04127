import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from weakspot.core.errors import ModelError
from weakspot.data.embed import (
    Answers,
    EmbedderModel,
    ImageRequest,
    answer_all,
    count_reasons,
    map_images,
    prepare_for,
)
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.images import content_hash, decode_image

ENGINE = LocalEngine(n_workers=2, queue_depth=4)


class Fragile:
    """The mean colour of an image; its decoder brings its process down on images of one width."""

    encoder_id = "fragile@1"
    dimension = 3
    image_side = None
    has_text = False

    def prepare(self, image):
        if image.width == 21:
            os._exit(9)
        return np.asarray(image.resize((1, 1)), dtype=np.float32).reshape(3)

    def embed_prepared(self, prepared):
        return np.stack(prepared)


def encode_images(requests, embedder, *, engine, batch_size=8):
    return map_images(
        requests, [EmbedderModel(embedder=embedder, batch_size=batch_size)], engine=engine
    )


def embedded(batch):
    """Return positions and embeddings of a batch of one model."""
    (answers,) = batch.answers
    return [
        (int(batch.positions[place]), embedding.tolist())
        for given in answers
        for place, embedding in zip(given.places, given.columns[0], strict=True)
    ]


def requests(locations):
    return [
        ImageRequest(position=10 + number, location=location)
        for number, location in enumerate(locations)
    ]


def test_encode_images__unreadable_ones_are_listed(embedder, images):
    batches = list(encode_images(requests(images), embedder, engine=ENGINE, batch_size=2))
    assert [batch.positions.tolist() for batch in batches] == [[10, 11], [12, 13], [14]]
    assert [embedded(batch) for batch in batches] == [
        [(10, [0, 7, 200])],
        [(12, [80, 7, 200])],
        [(14, [160, 7, 200])],
    ]
    unreadable = [item for batch in batches for item in batch.unreadable]
    assert [(item.position, item.reason) for item in unreadable] == [
        (11, "not-an-image"),
        (13, "missing-file"),
    ]
    assert count_reasons(unreadable) == "1 not-an-image, 1 missing-file"


def test_encode_images__file_changed_since_it_was_ingested(embedder, images):
    right = content_hash(Path(images[0]).read_bytes())
    asked = [
        ImageRequest(position=place, location=images[place], content_hash=right) for place in (0, 2)
    ]
    (batch,) = encode_images(asked, embedder, engine=ENGINE)
    assert [position for position, _ in embedded(batch)] == [0]
    assert [(item.position, item.reason) for item in batch.unreadable] == [(2, "changed")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((1, 2)), "gives 2 numbers per image and declares 3"),
        (np.zeros((2, 3)), "one row for each of 1 images"),
        (np.zeros(3), "one row for each of 1 images"),
        (np.array([[1.0, np.nan, 0.0]]), "not finite"),
    ],
)
def test_encode_images__nonsense_of_the_model(embedder, images, answer, message):
    embedder.embed_prepared = lambda prepared: answer
    with pytest.raises(ModelError, match=message):
        list(encode_images(requests(images[:1]), embedder, engine=ENGINE))


def test_encode_images__a_image_that_kills_its_worker_is_told(tmp_path):
    for number in range(6):
        Image.new("RGB", (21 if number == 3 else 20, 20), (number * 40, 7, 200)).save(
            tmp_path / f"{number}.png"
        )
    locations = [str(tmp_path / f"{number}.png") for number in range(6)]
    found = list(
        encode_images(
            requests(locations), Fragile(), engine=ProcessEngine(n_workers=1), batch_size=2
        )
    )
    given = [pair for batch in found for pair in embedded(batch)]
    assert [position for position, _ in given] == [10, 11, 12, 14, 15]
    ((position, reason, detail),) = [
        (item.position, item.reason, item.detail) for batch in found for item in batch.unreadable
    ]
    assert (position, reason) == (13, "worker-lost")
    assert "more memory" in detail
    here = list(encode_images(requests(locations[:3]), Fragile(), engine=ENGINE, batch_size=2))
    assert given[:3] == [pair for batch in here for pair in embedded(batch)]


class Recording:
    """A model that notes the size of what it is shown, and paints over it."""

    batch_size = 2

    def __init__(self, image_side):
        self.image_side = image_side
        self.calls = []

    def prepare(self, image):
        shown = np.array(image)
        image.paste((0, 0, 0), (0, 0, *image.size))
        return shown

    def answer(self, prepared):
        self.calls.append(len(prepared))
        sums = np.array([[array.sum(dtype=np.int64)] for array in prepared])
        return Answers(places=np.arange(len(prepared)), columns=(sums,))


@pytest.fixture
def jpeg(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (320, 240, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.jpg")
    return (tmp_path / "a.jpg").read_bytes()


@pytest.mark.parametrize(
    ("sides", "n_decoded"), [((30, 25), 1), ((None, 200), 1), ((30, 100, 25), 2)]
)
def test_prepare_for__every_model_sees_what_it_would_see_alone(jpeg, sides, n_decoded, monkeypatch):
    loads = []
    load = ImageFile.ImageFile.load
    monkeypatch.setattr(
        ImageFile.ImageFile, "load", lambda self: (loads.append(self.size), load(self))[1]
    )
    models = [Recording(side) for side in sides]
    arrays, decoded = prepare_for(models, range(len(models)), jpeg)
    assert len(set(loads)) == n_decoded
    for number, side in enumerate(sides):
        alone = np.asarray(decode_image(jpeg, image_side=side).image)
        np.testing.assert_array_equal(arrays[number], alone)
    assert decoded.size == (240, 320)


def test_answer_all__each_model_in_calls_of_its_size():
    first, second = Recording(None), Recording(None)
    second.batch_size = 3
    one = np.ones(1)
    images = [{0: one, 1: one}, {1: 2 * one}, {0: 3 * one, 1: 3 * one}, {}, {0: 5 * one}]
    found = answer_all([first, second], images)
    assert (first.calls, second.calls) == ([2, 1], [3])
    assert [given.places.tolist() for given in found[0]] == [[0, 2], [4]]
    assert [given.places.tolist() for given in found[1]] == [[0, 1, 2]]
    assert found[0][1].columns[0].tolist() == [[5]]
