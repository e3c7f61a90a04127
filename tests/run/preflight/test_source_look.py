import pytest
from PIL import Image
from preflight.worlds import write_images

from weakspot.core.dataset import Split
from weakspot.data.open_source import open_source
from weakspot.run.preflight import source_look
from weakspot.run.preflight.source_look import look_at_source, read_labelled_images


def _source(folder, **options):
    write_images(folder, **options)
    return open_source(str(folder / "manifest.csv"))


def test_look_at_source__labels_and_splits(tmp_path):
    look = look_at_source(_source(tmp_path, n_samples={"train": 40, "test": 12}))
    assert look.is_whole
    assert (look.n_of(Split.TRAIN), look.n_of(Split.TEST), look.n_of(None)) == (40, 12, 0)
    assert look.counts[Split.TEST]["lemon"] == 3


def test_look_at_source__of_a_large_source_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(source_look, "MAX_LISTED", 30)
    look = look_at_source(_source(tmp_path, n_samples={"train": 40}))
    assert not look.is_whole
    assert look.n_of(Split.TRAIN) == 30


def test_read_labelled_images__as_many_of_every_class_and_broken_ones_left_out(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(source_look, "MAX_TRAINING", 8)
    source = _source(tmp_path, n_samples={"train": 40, "validation": 6})
    (tmp_path / "validation-0000.png").write_bytes(b"")
    drawn = read_labelled_images(look_at_source(source), default_split="", image_side=32)
    seen = [label for _, label, is_training in drawn if is_training]
    assert len(drawn) == 8 + 5
    assert sorted(seen) == sorted(["brick", "copper", "forest", "lemon"] * 2)


@pytest.mark.parametrize("split", ["", "train"])
def test_read_labelled_images__default_split_is_that_of_samples_without_one(tmp_path, split):
    look = look_at_source(_source(tmp_path, n_samples={"": 12}), split)
    drawn = read_labelled_images(look, default_split=split, image_side=32)
    assert look.n_of(Split.TRAIN) == (12 if split else 0)
    assert {is_training for _, _, is_training in drawn} == {bool(split)}


def test_read_labelled_images__large_ones_are_kept_small(tmp_path):
    source = _source(tmp_path, n_samples={"validation": 4})
    for path in tmp_path.glob("*.png"):
        Image.new("RGB", (300, 200)).save(path)
    look = look_at_source(source)
    sizes = {
        side: {
            image.size
            for image, _, _ in read_labelled_images(look, default_split="", image_side=side)
        }
        for side in (32, 100, None)
    }
    assert sizes == {32: {(96, 64)}, 100: {(300, 200)}, None: {(300, 200)}}
