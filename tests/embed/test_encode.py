import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.embed.encode import PictureRequest, count_reasons, encode_pictures
from weakspot.engine.local import LocalEngine
from weakspot.engine.processes import ProcessEngine
from weakspot.media.pictures import content_hash

ENGINE = LocalEngine(n_workers=2, queue_depth=4)


class Fragile:
    """The mean colour of a picture; its decoder brings its process down on pictures of one width."""

    encoder_id = "fragile@1"
    dimension = 3
    picture_side = None
    has_text = False

    def prepare(self, picture):
        if picture.width == 21:
            os._exit(9)
        return np.asarray(picture.resize((1, 1)), dtype=np.float32).reshape(3)

    def embed_prepared(self, prepared):
        return np.stack(prepared)


def requests(locations):
    return [PictureRequest(position=10 + number, location=location) for number, location in enumerate(locations)]


def test_encode_pictures__unreadable_ones_are_listed(embedder, pictures):
    batches = list(encode_pictures(requests(pictures), embedder, engine=ENGINE, batch_size=2))
    assert [batch.positions.tolist() for batch in batches] == [[10], [12], [14]]
    assert [batch.vectors.tolist() for batch in batches] == [[[0, 7, 200]], [[80, 7, 200]], [[160, 7, 200]]]
    unreadable = [item for batch in batches for item in batch.unreadable]
    assert [(item.position, item.reason) for item in unreadable] == [(11, "not-a-picture"), (13, "missing-file")]
    assert count_reasons(unreadable) == "1 not-a-picture, 1 missing-file"


def test_encode_pictures__only_unreadable_ones(embedder, pictures):
    batches = list(encode_pictures(requests([pictures[1], pictures[3]]), embedder, engine=ENGINE))
    assert [batch.vectors.shape for batch in batches] == [(0, 3)]
    assert len(batches[0].unreadable) == 2
    assert embedder.batches == []


def test_encode_pictures__full_batches(embedder, pictures):
    list(encode_pictures(requests([pictures[0]] * 7), embedder, engine=ENGINE, batch_size=3))
    assert embedder.batches == [3, 3, 1]


def test_encode_pictures__file_changed_since_it_was_ingested(embedder, pictures):
    right = content_hash(Path(pictures[0]).read_bytes())
    asked = [PictureRequest(position=place, location=pictures[place], content_hash=right) for place in (0, 2)]
    (batch,) = encode_pictures(asked, embedder, engine=ENGINE)
    assert batch.positions.tolist() == [0]
    assert [(item.position, item.reason) for item in batch.unreadable] == [(2, "changed")]


def test_encode_pictures__nothing(embedder):
    assert list(encode_pictures([], embedder, engine=ENGINE)) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((1, 2)), "gives 2 numbers a picture and says 3"),
        (np.zeros((2, 3)), "one row for each of 1 pictures"),
        (np.zeros(3), "one row for each of 1 pictures"),
        (np.array([[1.0, np.nan, 0.0]]), "not finite"),
    ],
)
def test_encode_pictures__nonsense_of_the_model(embedder, pictures, answer, message):
    embedder.embed_prepared = lambda prepared: answer
    with pytest.raises(ModelError, match=message):
        list(encode_pictures(requests(pictures[:1]), embedder, engine=ENGINE))


def test_encode_pictures__error_of_prepare_is_raised(embedder, pictures):
    def refuse(picture):
        raise ModelError("bad pre-processing")

    embedder.prepare = refuse
    with pytest.raises(ModelError, match="bad pre-processing"):
        list(encode_pictures(requests(pictures[:1]), embedder, engine=ENGINE))


def test_encode_pictures__a_picture_that_kills_its_worker_is_told(tmp_path):
    for number in range(6):
        Image.new("RGB", (21 if number == 3 else 20, 20), (number * 40, 7, 200)).save(tmp_path / f"{number}.png")
    locations = [str(tmp_path / f"{number}.png") for number in range(6)]
    found = list(encode_pictures(requests(locations), Fragile(), engine=ProcessEngine(n_workers=1), batch_size=2))
    assert [place for batch in found for place in batch.positions.tolist()] == [10, 11, 12, 14, 15]
    ((position, reason, detail),) = [(item.position, item.reason, item.detail) for batch in found for item in batch.unreadable]
    assert (position, reason) == (13, "worker-lost")
    assert "more memory" in detail
    here = list(encode_pictures(requests(locations[:3]), Fragile(), engine=ENGINE, batch_size=2))
    np.testing.assert_array_equal(
        np.concatenate([batch.vectors for batch in found])[:3], np.concatenate([batch.vectors for batch in here])
    )
