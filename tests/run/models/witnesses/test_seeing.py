import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image
from tests.run.models.witnesses.tiny_segmenter import CornerSegmenter

from weakspot.core.errors import UnavailableError
from weakspot.data.engine.local import LocalEngine
from weakspot.run.model_map import ImageBench
from weakspot.run.witnesses import MasksWitness, PropertiesWitness, Seeing

ENGINE = LocalEngine(n_workers=1, queue_depth=2)
COLOURS = ("red", "green", "blue", "white", "black", "grey")


@pytest.fixture
def store(tmp_path, store_of):
    for class_name in ("apple", "pear"):
        folder = tmp_path / "images" / class_name
        folder.mkdir(parents=True)
        for number, colour in enumerate(COLOURS):
            image = Image.new("RGB", (64, 64), (240, 240, 235) if number else (20, 20, 20))
            image.paste(Image.new("RGB", (30 + number, 30), colour), (15, 15))
            image.save(folder / f"{number}.png")
    return store_of(tmp_path / "images")


def _seeing(store, *witnesses, told=None):
    return Seeing(
        witnesses=witnesses,
        bench=ImageBench(
            dataset=store.dataset(),
            store=store,
            engine=ENGINE,
            progress_of=lambda stage: (
                lambda done, total: None if told is None else told.append((stage, done, total))
            ),
        ),
    )


@dataclass
class Counting:
    """The witness of properties, which counts the images that it looks at."""

    n_seen: Counter = field(default_factory=Counter)
    kind: str = "properties"
    is_by_class: bool = False
    witness_id: str = "witness:counting:1"
    image_side: int | None = 64

    def looker(self, class_name):
        return self

    def speak(self, images):
        self.n_seen["images"] += len(images)
        return PropertiesWitness().looker("").speak(images)

    def judge(self, words):
        return PropertiesWitness().judge(words)


class Gone(Counting):
    """A witness whose weights cannot be fetched."""

    def speak(self, images):
        self.n_seen["images"] += len(images)
        raise UnavailableError("There is no package index.")


def test_seeing__each_image_is_looked_at_once_and_only_when_asked(store):
    witness, told = Counting(), []
    seeing = _seeing(store, witness, told=told)
    rows = np.array([0, 2, 5])

    first = seeing(rows, "dark")
    assert witness.n_seen["images"] == 3
    assert first.shape == (3,)
    assert np.array_equal(seeing(rows, "dark"), first)
    seeing(rows[:2], "blurry")
    assert witness.n_seen["images"] == 3
    assert told[-1] == ("witnesses", 3, 3)


def test_seeing__another_run_goes_on_from_what_is_kept(store):
    before = _seeing(store, Counting())(np.arange(4), "dark")
    witness = Counting()

    found = _seeing(store, witness)(np.arange(6), "dark")

    assert witness.n_seen["images"] == 2
    assert np.array_equal(found[:4], before)


def test_seeing__words_that_nobody_can_tell_cost_nothing(store):
    witness = Counting()

    assert _seeing(store, witness)(np.arange(4), "with a hat") is None
    assert witness.n_seen["images"] == 0


def test_seeing__of_many_rows_only_some_at_even_steps(store):
    witness = Counting()
    seeing = _seeing(store, witness)
    every = seeing(np.arange(9), "dark")
    seeing.most_asked = 3

    found = seeing(np.arange(9), "dark")

    assert np.flatnonzero(np.isfinite(found)).tolist() == [0, 3, 6]
    assert np.array_equal(found[[0, 3, 6]], every[[0, 3, 6]])


def test_seeing__masks_are_asked_for_by_class_and_unclear_ones_are_unknown(store):
    segmenter = CornerSegmenter()
    dataset = store.dataset()

    found = _seeing(store, MasksWitness(segmenter=segmenter))(np.arange(len(dataset)), "green")

    assert Counter(segmenter.asked) == {"apple": 6, "pear": 6}
    numbers = [int(place.rsplit("/", 1)[-1][0]) for place in dataset.locations()]
    assert [score > 0.5 for score in found] == [number == 1 for number in numbers]


def test_seeing__of_several_witnesses_the_surest_counts(store):
    class Sure(Counting):
        witness_id = "witness:sure:1"

        def judge(self, words):
            return lambda said: float("nan") if json.loads(said)[0] < 0.5 else 0.9

    sure = Sure(kind="objects")
    rows = np.arange(6)
    alone = _seeing(store, Counting())(rows, "dark")

    both = _seeing(store, Counting(), sure)(rows, "dark")

    bright = alone < 0.4
    assert np.allclose(both[bright], 0.9)
    assert np.allclose(both[~bright], alone[~bright])


def test_seeing__one_that_is_not_there_is_left_out_and_named(store):
    gone = Gone()
    gone.witness_id = "witness:gone:1"
    seeing = _seeing(store, gone)

    assert seeing(np.arange(4), "dark") is None
    assert seeing(np.arange(4), "dark") is None
    assert gone.n_seen["images"] <= 4
    (note,) = seeing.notes()
    assert "'properties' was not asked" in note
    assert "no package index" in note
    assert seeing.try_said(gone, np.arange(2)) == ["", ""]
