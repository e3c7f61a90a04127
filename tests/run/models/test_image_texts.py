import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from weakspot.core.errors import ModelError, StoreError, UnavailableError
from weakspot.core.run import no_progress
from weakspot.data.engine.local import LocalEngine
from weakspot.run.model_map import (
    IMAGES_PER_CALL,
    MAX_FAILURES_AT_FIRST,
    FlushPolicy,
    ImageBench,
    ImageTexts,
)
from weakspot.store import atomic
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
N_IMAGES = 40
ROWS = np.arange(N_IMAGES)


class Redness:
    """Says how red an image is, and fails as told."""

    def __init__(self, *, bad=(), error=None, down_after=None, image_side=None):
        self.bad, self.error, self.down_after = set(bad), error, down_after
        self.image_side = image_side
        self.n_spoken = self.n_calls = 0

    def speak(self, images):
        self.n_calls += 1
        reds = [image.getpixel((0, 0))[0] for image in images]
        if self.down_after is not None and self.n_spoken >= self.down_after:
            raise UnavailableError("It is down.", where="http://host")
        if self.error is not None and (not self.bad or self.bad & set(reds)):
            raise self.error
        self.n_spoken += len(images)
        return [f"red {red}" for red in reds]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images") / "thing"
    folder.mkdir()
    for number in range(N_IMAGES):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number:02d}.png")
    return folder.parent


@pytest.fixture
def store(store_of, images):
    return store_of(images)


def _texts(store, part, *, dataset=None, progress=no_progress, flush=None, identity="redness@1"):
    return ImageTexts(
        ImageBench(
            dataset=store.dataset() if dataset is None else dataset,
            store=store,
            engine=ENGINE,
            progress_of=lambda _step: progress,
        ),
        who="captioner",
        part=part,
        identity=identity if callable(identity) else lambda: identity,
        step="caption",
        flush=flush,
    )


def test_said__only_the_asked_rows_in_their_order(store):
    part = Redness()
    texts = _texts(store, part)
    assert texts.said(np.array([7, 3, 7]), part.speak) == ["red 7", "red 3", "red 7"]
    assert part.n_spoken == 2


def test_said__nothing_is_asked_twice(store):
    part, told = Redness(), []
    texts = _texts(store, part, progress=lambda *counts: told.append(counts))
    first = texts.said(ROWS, part.speak)
    assert first == [f"red {row}" for row in ROWS]
    assert told == [(0, 40), (16, 40), (32, 40), (40, 40)]
    assert texts.said(ROWS[::-1], part.speak) == first[::-1]
    other = Redness()
    assert _texts(ProjectStore.open(store.root), other).said(ROWS, other.speak) == first
    assert (part.n_spoken, other.n_spoken) == (40, 0)


def test_said__another_model_or_question_is_asked_anew(store):
    part = Redness()
    _texts(store, part).said(ROWS[:2], part.speak)
    _texts(store, part).said(ROWS[:2], part.speak, question="How red?")
    _texts(store, part, identity="redness@2").said(ROWS[:2], part.speak)
    assert part.n_spoken == 6


def test_said__unreadable_image_has_no_text_and_is_tried_again_by_the_next_run(
    tmp_path, store_of, images
):
    folder = tmp_path / "data" / "thing"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.png").write_bytes(
            (images / "thing" / f"{number:02d}.png").read_bytes()
        )
    store = store_of(folder.parent)
    kept = (folder / "1.png").read_bytes()
    (folder / "1.png").write_bytes(b"rubbish")
    part = Redness()
    texts = _texts(store, part)
    assert texts.said(ROWS[:3], part.speak) == ["red 0", "", "red 2"]
    assert texts.said(ROWS[1:2], part.speak) == [""]
    (folder / "1.png").write_bytes(kept)
    assert _texts(store, part).said(ROWS[:3], part.speak) == ["red 0", "red 1", "red 2"]


def test_said__one_failed_answer_costs_one_text(store):
    part = Redness(bad={4, 30}, error=ModelError("Nonsense."))
    texts = _texts(store, part)
    expected = ["" if row in (4, 30) else f"red {row}" for row in ROWS]
    assert texts.said(ROWS, part.speak) == expected
    n_calls = part.n_calls
    assert texts.said(ROWS, part.speak) == expected
    assert part.n_calls == n_calls
    well = Redness()
    assert _texts(store, well).said(ROWS, well.speak) == [f"red {row}" for row in ROWS]
    assert well.n_spoken == 2


@pytest.mark.parametrize("error", [ModelError("Nonsense."), RuntimeError("broken"), KeyError("x")])
def test_said__model_that_never_works_is_given_up_soon(store, error):
    part = Redness(error=error)
    texts = _texts(store, part)
    for _ in range(3):
        with pytest.raises(ModelError):
            texts.said(ROWS, part.speak)
    assert part.n_calls == 1 + MAX_FAILURES_AT_FIRST


def test_said__model_that_stops_working_is_given_up_later(store):
    part = Redness(bad=range(8, 40), error=ModelError("Nonsense."))
    texts = _texts(store, part)
    assert texts.said(ROWS, part.speak) == [f"red {row}" if row < 8 else "" for row in ROWS]
    assert part.n_calls < 2 * IMAGES_PER_CALL


def test_said__endpoint_that_is_down_is_asked_once(store):
    part = Redness(down_after=0)
    texts = _texts(store, part)
    for _ in range(3):
        with pytest.raises(
            ModelError, match=r"The captioner cannot be used\. It is down\. Where: http://host"
        ):
            texts.said(ROWS, part.speak)
    assert part.n_calls == 1


def test_said__endpoint_that_goes_down_keeps_what_was_said(store):
    part = Redness(down_after=IMAGES_PER_CALL)
    texts = _texts(store, part)
    assert texts.said(ROWS, part.speak) == [f"red {row}" for row in range(16)] + [""] * 24
    with pytest.raises(ModelError, match="It is down"):
        texts.said(ROWS[20:], part.speak)
    well = Redness()
    assert _texts(store, well).said(ROWS, well.speak)[39] == "red 39"
    assert well.n_spoken == 24


def test_said__written_regularly(store):
    part, n_files = Redness(), []
    texts = _texts(
        store,
        part,
        flush=FlushPolicy(n_samples=16, seconds=3600),
        progress=lambda *_: n_files.append(len(list((store.data / "texts").glob("*/shard-*")))),
    )
    texts.said(ROWS, part.speak)
    assert n_files == [0, 1, 2, 2]
    assert len(list((store.data / "texts").glob("*/shard-*"))) == 3


def test_said__wrong_number_of_texts_and_texts_that_are_none(store):
    part = Redness()
    with pytest.raises(ModelError, match="gave 2 texts for 1 images"):
        _texts(store, part).said(ROWS[:5], lambda _images: ["always", "two"])
    with pytest.raises(ModelError, match="captioner failed"):
        _texts(store, part).said(ROWS[:5], lambda images: [None] * len(images))


def test_said__id_that_cannot_be_had_is_asked_for_once(store):
    n_asked = []

    def identity():
        n_asked.append(1)
        raise UnavailableError("No such model.")

    texts = _texts(store, Redness(), identity=identity)
    for _ in range(2):
        with pytest.raises(ModelError, match="No such model"):
            texts.said(ROWS, Redness().speak)
    assert len(n_asked) == 1


def test_said__samples_without_images_have_no_text(store):
    dataset = store.dataset()
    place = dataset.table.column_names.index("location")
    empty = pa.array([None] * len(dataset), pa.string())
    without = type(dataset)(
        class_names=dataset.class_names,
        task=dataset.task,
        table=dataset.table.set_column(place, "location", empty),
    )
    part = Redness()
    assert _texts(store, part, dataset=without).said(ROWS[:3], part.speak) == ["", "", ""]
    assert part.n_calls == 0


def test_said__other_writer_is_named(store):
    part = Redness()
    with (
        atomic.exclusive(store.data / "lock"),
        pytest.raises(StoreError, match="is being written by"),
    ):
        _texts(store, part).said(ROWS, part.speak)
