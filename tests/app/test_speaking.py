import os
from dataclasses import dataclass

import pytest
from PIL import Image

from weakspot.app.speaking import MOST_FAILURES_AT_FIRST, SpeakWork, speak_of_pictures
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.embed.encode import PictureRequest
from weakspot.engine.local import LocalEngine
from weakspot.engine.processes import ProcessEngine

ENGINES = [LocalEngine(n_workers=2, queue_depth=4), ProcessEngine(n_workers=1)]


@dataclass(frozen=True, kw_only=True)
class Redness:
    """Says how red pictures are; fails on some of them, and dies of others."""

    bad: tuple[int, ...] = ()
    deadly: tuple[int, ...] = ()
    is_down: bool = False

    def __call__(self, pictures):
        if self.is_down:
            raise UnavailableError("It is down.")
        reds = [picture.getpixel((0, 0))[0] for picture in pictures]
        if set(reds) & set(self.deadly):
            os._exit(9)
        if set(reds) & set(self.bad):
            raise ValueError("nonsense")
        return [f" red {red} " for red in reds]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(10):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
    return [PictureRequest(position=number, location=str(folder / f"{number}.png")) for number in range(10)]


def said(requests, speak, engine, **more):
    options = {"who": "captioner", "picture_side": None, "has_spoken": True, "batch_size": 4} | more
    return list(speak_of_pictures(requests, speak, engine=engine, **options))


@pytest.mark.parametrize("engine", ENGINES, ids=["local", "processes"])
def test_speak_of_pictures__a_bad_picture_costs_its_own_text_on_any_engine(requests, engine):
    found = said(requests, Redness(bad=(5,)), engine)
    assert [batch.texts for batch in found] == [
        ("red 0", "red 1", "red 2", "red 3"),
        ("red 4", "red 6", "red 7"),
        ("red 8", "red 9"),
    ]
    assert [batch.positions.tolist() for batch in found] == [[0, 1, 2, 3], [4, 6, 7], [8, 9]]
    assert [batch.n_requests for batch in found] == [4, 4, 2]
    assert [batch.failure for batch in found] == [None] * 3


@pytest.mark.parametrize("engine", ENGINES, ids=["local", "processes"])
def test_speak_of_pictures__a_model_that_is_gone_says_so(requests, engine):
    found = said(requests, Redness(is_down=True), engine)
    assert all(batch.texts == () and isinstance(batch.failure, ModelError) for batch in found)
    assert "It is down" in str(found[0].failure)


def test_speak_of_pictures__a_picture_that_kills_its_worker_has_no_text(requests):
    found = said(requests, Redness(deadly=(5,)), ENGINES[1])
    assert [text for batch in found for text in batch.texts] == [f"red {red}" for red in range(10) if red != 5]
    assert sum(batch.n_requests for batch in found) == 10


def test_speak_work__a_model_that_has_failed_is_not_asked_again(requests):
    calls = []

    def speak(pictures):
        calls.append(len(pictures))
        raise ValueError("nonsense")

    work = SpeakWork(who="captioner", speak=speak, picture_side=None, has_spoken=False)
    ready = [work.prepare(request) for request in requests]
    first, second = work.run(ready[:4]), work.run(ready[4:])
    assert calls == [4] + [1] * MOST_FAILURES_AT_FIRST
    assert first.failure is second.failure is not None
