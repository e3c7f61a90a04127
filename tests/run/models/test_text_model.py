import os
from dataclasses import dataclass

import pytest
from PIL import Image

from weakspot.core.errors import ModelError, UnavailableError
from weakspot.data.embed import ImageRequest, map_images
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.run.model_map import TextModel

ENGINES = [LocalEngine(n_workers=2, queue_depth=4), ProcessEngine(n_workers=1)]


@dataclass(frozen=True, kw_only=True)
class Redness:
    """Says how red images are; fails on some of them, and dies of others."""

    bad: tuple[int, ...] = ()
    deadly: tuple[int, ...] = ()
    is_down: bool = False

    def __call__(self, images):
        if self.is_down:
            raise UnavailableError("It is down.")
        reds = [image.getpixel((0, 0))[0] for image in images]
        if set(reds) & set(self.deadly):
            os._exit(9)
        if set(reds) & set(self.bad):
            raise ValueError("nonsense")
        return [f" red {red} " for red in reds]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number in range(10):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    return [
        ImageRequest(position=number, location=str(folder / f"{number}.png"))
        for number in range(10)
    ]


def texts_of(requests, speak, engine, **more):
    options = {"who": "captioner", "image_side": None, "has_spoken": True, "batch_size": 4} | more
    model = TextModel(speak=speak, **options)
    return [
        (batch, given)
        for batch in map_images(requests, [model], engine=engine)
        for given in batch.answers[0]
    ]


@pytest.mark.parametrize("engine", ENGINES, ids=["local", "processes"])
def test_text_model__a_bad_image_costs_its_own_text_on_any_engine(requests, engine):
    found = texts_of(requests, Redness(bad=(5,)), engine)
    assert [list(given.columns[0]) for _, given in found] == [
        ["red 0", "red 1", "red 2", "red 3"],
        ["red 4", "red 6", "red 7"],
        ["red 8", "red 9"],
    ]
    assert [batch.positions[given.places].tolist() for batch, given in found] == [
        [0, 1, 2, 3],
        [4, 6, 7],
        [8, 9],
    ]
    assert [given.failure for _, given in found] == [None] * 3


@pytest.mark.parametrize("engine", ENGINES, ids=["local", "processes"])
def test_text_model__a_model_that_is_gone_says_so(requests, engine):
    found = texts_of(requests, Redness(is_down=True), engine)
    assert all(
        not len(given.places) and isinstance(given.failure, ModelError) for _, given in found
    )
    assert "It is down" in str(found[0][1].failure)


def test_text_model__an_image_that_kills_its_worker_has_no_text(requests):
    found = texts_of(requests, Redness(deadly=(5,)), ENGINES[1])
    assert [text for _, given in found for text in given.columns[0]] == [
        f"red {red}" for red in range(10) if red != 5
    ]
