import hashlib
import os
from io import BytesIO

import pytest
from PIL import Image

from weakspot.core.drawn import DrawnPicture, PictureOrder
from weakspot.core.errors import StoreError
from weakspot.store.drawings import JOURNAL, Drawing, Drawings, PictureLook
from weakspot.store.lock import exclusive

GENERATOR = "some generator"


def _order(seed=1, *, class_name="disc", prompt="a green disc"):
    return PictureOrder(class_name=class_name, prompt=prompt, seed=seed)


def _data(level):
    stream = BytesIO()
    Image.new("RGB", (20, 20), (level, 2, 3)).save(stream, "PNG")
    return stream.getvalue()


def _drawn(order, data=None, **more):
    content = hashlib.sha256(data).hexdigest() if data is not None else ""
    return DrawnPicture(order=order, generator_id=GENERATOR, content_hash=content, **more)


def _stored(drawings, seed):
    data = _data(seed)
    return drawings.add(_drawn(_order(seed), data, verdicts={"black": "pass"}, parents=("a", "b")), data)


def test_find__gives_what_was_added_also_to_others(tmp_path):
    drawings = Drawings(tmp_path / "new" / "folder")
    added = _stored(drawings, 7)
    for reader in (drawings, Drawings(drawings.folder)):
        assert reader.find(GENERATOR, _order(7)) == added
        assert reader.picture(added).getpixel((3, 3)) == (7, 2, 3)
        assert reader.data(added) == _data(7)
    assert added.file == f"pictures/{added.content_hash[:2]}/{added.content_hash}.png"
    assert (drawings.folder / added.file).is_file()


@pytest.mark.parametrize(
    "other",
    [
        (GENERATOR, _order(2)),
        (GENERATOR, _order(1, prompt="a green disc ")),
        (GENERATOR, _order(1, class_name="star")),
        ("another generator", _order(1)),
    ],
)
def test_find__any_other_order_is_not_drawn(tmp_path, other):
    drawings = Drawings(tmp_path)
    _stored(drawings, 1)
    assert drawings.find(*other) is None


def test_find__an_empty_folder_and_reading_make_nothing(tmp_path):
    assert Drawings(tmp_path / "none").find(GENERATOR, _order()) is None
    assert list(Drawings(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()


def test_find__orders_without_a_picture(tmp_path):
    drawings = Drawings(tmp_path)
    added = drawings.add(_drawn(_order(), verdicts={"failed": "no"}))
    assert Drawings(tmp_path).find(GENERATOR, _order()) == added
    assert added.file == ""
    with pytest.raises(StoreError, match="cannot be read"):
        drawings.picture(added)


def test_find__a_lost_or_changed_picture_counts_as_not_drawn_and_can_be_added_again(tmp_path):
    drawings = Drawings(tmp_path)
    lost, changed, sound = (_stored(drawings, seed) for seed in (1, 2, 3))
    (tmp_path / lost.file).unlink()
    (tmp_path / changed.file).write_bytes(_data(9))
    again = Drawings(tmp_path)
    assert [again.find(GENERATOR, one.order) for one in (lost, changed, sound)] == [None, None, sound]
    assert [_stored(again, seed) for seed in (1, 2)] == [lost, changed]
    assert [Drawings(tmp_path).find(GENERATOR, one.order) for one in (lost, changed, sound)] == [lost, changed, sound]


def test_add__the_last_record_of_an_order_holds(tmp_path):
    drawings = Drawings(tmp_path)
    drawings.add(_drawn(_order(1), verdicts={"failed": "no"}))
    second = _stored(drawings, 2)
    first = _stored(drawings, 1)
    assert drawings.find(GENERATOR, _order(1)) == first
    assert list(Drawings(tmp_path)) == [second, first]
    assert len(Drawings(tmp_path)) == 2


def test_add__the_same_picture_of_two_orders_is_one_file(tmp_path):
    drawings = Drawings(tmp_path)
    for seed in (1, 2):
        drawings.add(_drawn(_order(seed), _data(5)), _data(5))
    assert len(list((tmp_path / "pictures").rglob("*.png"))) == 1
    assert len({one.order for one in Drawings(tmp_path)}) == 2


def test_add__data_must_be_what_the_record_says(tmp_path):
    for data in (None, _data(2)):
        with pytest.raises(StoreError, match="with its data"):
            Drawings(tmp_path).add(_drawn(_order(), _data(1)), data)
    assert list(Drawings(tmp_path)) == []


@pytest.mark.parametrize("n_lost", [1, 2, 40, 200])
def test_open__a_torn_last_line_is_ignored_and_cut_back(tmp_path, n_lost):
    drawings = Drawings(tmp_path)
    first = _stored(drawings, 1)
    whole = (tmp_path / JOURNAL).stat().st_size
    second = _stored(drawings, 2)
    os.truncate(tmp_path / JOURNAL, (tmp_path / JOURNAL).stat().st_size - n_lost)
    torn = (tmp_path / JOURNAL).stat().st_size
    again = Drawings(tmp_path)
    assert list(again) == [first]
    assert (tmp_path / JOURNAL).stat().st_size == torn
    with again.writing():
        assert (tmp_path / JOURNAL).stat().st_size == whole
    third, redone = _stored(again, 3), _stored(again, 2)
    assert redone == second
    assert list(Drawings(tmp_path)) == [first, third, second]


def test_open__a_damaged_line_costs_that_line(tmp_path):
    drawings = Drawings(tmp_path)
    made = [_stored(drawings, seed) for seed in (1, 2, 3)]
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    for damaged in (b"\0" * 50 + b"\n", lines[1][:90] + b"\n", b"\n", lines[1].replace(b"disc", b"star")):
        (tmp_path / JOURNAL).write_bytes(lines[0] + damaged + lines[2])
        found = Drawings(tmp_path)
        assert [found.find(GENERATOR, one.order) for one in made] == [made[0], None, made[2]]
        assert [one for one in found if one in made] == [made[0], made[2]]


def test_writing__is_for_one_and_sees_what_others_wrote(tmp_path):
    first, second = Drawings(tmp_path), Drawings(tmp_path)
    added = _stored(first, 1)
    with second.writing() as has_more:
        assert has_more
        assert second.find(GENERATOR, _order(1)) == added
        with pytest.raises(StoreError, match="being written"):
            _stored(first, 2)
        with second.writing() as has_more_inside:
            assert not has_more_inside
    with exclusive(tmp_path / "lock"), pytest.raises(StoreError, match="being written"), first.writing():
        pass
    assert _stored(first, 2).order.seed == 2


def test_writing__a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        _stored(Drawings(tmp_path / "file" / "below"), 1)


def test_add_all__looks_are_kept_and_the_journal_only_grows(tmp_path):
    drawings = Drawings(tmp_path)
    before = b""
    for seed in range(4):
        look = PictureLook(gate=f"gate {seed}", fingerprint="ab", size=(20, seed))
        drawings.add_all([Drawing(drawn=_drawn(_order(seed), _data(seed)), data=_data(seed), look=look)])
        content = (tmp_path / JOURNAL).read_bytes()
        assert content.startswith(before)
        assert len(content) > len(before)
        before = content
    assert [one.look.size for one in Drawings(tmp_path).all()] == [(20, 0), (20, 1), (20, 2), (20, 3)]
    assert Drawings(tmp_path).drawing(GENERATOR, _order(2)).look.gate == "gate 2"
