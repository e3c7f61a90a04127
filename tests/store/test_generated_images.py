import hashlib
import os
from io import BytesIO

import pytest
from PIL import Image

from weakspot.core.errors import StoreError
from weakspot.core.generated import GenerationRequest, GenerationResult
from weakspot.store.atomic import exclusive
from weakspot.store.generated_images import JOURNAL, GeneratedImageStore, ImageFacts, StoredImage

GENERATOR = "some generator"


def _request(seed=1, *, class_name="disc", prompt="a green disc"):
    return GenerationRequest(class_name=class_name, prompt=prompt, seed=seed)


def _data(level):
    stream = BytesIO()
    Image.new("RGB", (20, 20), (level, 2, 3)).save(stream, "PNG")
    return stream.getvalue()


def _generated(request, data=None, **more):
    content = hashlib.sha256(data).hexdigest() if data is not None else ""
    return GenerationResult(request=request, generator_id=GENERATOR, content_hash=content, **more)


def _stored(stored_images, seed):
    data = _data(seed)
    return stored_images.add(
        _generated(_request(seed), data, verdicts={"black": "pass"}, parents=("a", "b")), data
    )


def test_find__gives_what_was_added_also_to_others(tmp_path):
    stored_images = GeneratedImageStore(tmp_path / "new" / "folder")
    added = _stored(stored_images, 7)
    for reader in (stored_images, GeneratedImageStore(stored_images.folder)):
        assert reader.find(GENERATOR, _request(7)) == added
        assert reader.image(added).getpixel((3, 3)) == (7, 2, 3)
        assert reader.data(added) == _data(7)
    assert added.file == f"images/{added.content_hash[:2]}/{added.content_hash}.png"
    assert (stored_images.folder / added.file).is_file()


@pytest.mark.parametrize(
    "other",
    [
        (GENERATOR, _request(2)),
        (GENERATOR, _request(1, prompt="a green disc ")),
        (GENERATOR, _request(1, class_name="star")),
        ("another generator", _request(1)),
    ],
)
def test_find__any_other_order_is_not_drawn(tmp_path, other):
    stored_images = GeneratedImageStore(tmp_path)
    _stored(stored_images, 1)
    assert stored_images.find(*other) is None


def test_find__an_empty_folder_and_reading_make_nothing(tmp_path):
    assert GeneratedImageStore(tmp_path / "none").find(GENERATOR, _request()) is None
    assert list(GeneratedImageStore(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()


def test_find__orders_without_a_image(tmp_path):
    stored_images = GeneratedImageStore(tmp_path)
    added = stored_images.add(_generated(_request(), verdicts={"failed": "no"}))
    assert GeneratedImageStore(tmp_path).find(GENERATOR, _request()) == added
    assert added.file == ""
    with pytest.raises(StoreError, match="cannot be read"):
        stored_images.image(added)


def test_find__a_lost_or_changed_image_counts_as_not_drawn_and_can_be_added_again(tmp_path):
    stored_images = GeneratedImageStore(tmp_path)
    lost, changed, sound = (_stored(stored_images, seed) for seed in (1, 2, 3))
    (tmp_path / lost.file).unlink()
    (tmp_path / changed.file).write_bytes(_data(9))
    again = GeneratedImageStore(tmp_path)
    assert [again.find(GENERATOR, one.request) for one in (lost, changed, sound)] == [
        None,
        None,
        sound,
    ]
    assert [_stored(again, seed) for seed in (1, 2)] == [lost, changed]
    assert [
        GeneratedImageStore(tmp_path).find(GENERATOR, one.request) for one in (lost, changed, sound)
    ] == [
        lost,
        changed,
        sound,
    ]


def test_add__the_last_record_of_an_order_holds(tmp_path):
    stored_images = GeneratedImageStore(tmp_path)
    stored_images.add(_generated(_request(1), verdicts={"failed": "no"}))
    second = _stored(stored_images, 2)
    first = _stored(stored_images, 1)
    assert stored_images.find(GENERATOR, _request(1)) == first
    assert list(GeneratedImageStore(tmp_path)) == [second, first]
    assert len(GeneratedImageStore(tmp_path)) == 2


def test_add__data_must_be_what_the_record_says(tmp_path):
    for data in (None, _data(2)):
        with pytest.raises(StoreError, match="with its data"):
            GeneratedImageStore(tmp_path).add(_generated(_request(), _data(1)), data)
    assert list(GeneratedImageStore(tmp_path)) == []


@pytest.mark.parametrize("n_lost", [1, 2, 40, 200])
def test_open__a_torn_last_line_is_ignored_and_cut_back(tmp_path, n_lost):
    stored_images = GeneratedImageStore(tmp_path)
    first = _stored(stored_images, 1)
    whole = (tmp_path / JOURNAL).stat().st_size
    second = _stored(stored_images, 2)
    os.truncate(tmp_path / JOURNAL, (tmp_path / JOURNAL).stat().st_size - n_lost)
    torn = (tmp_path / JOURNAL).stat().st_size
    again = GeneratedImageStore(tmp_path)
    assert list(again) == [first]
    assert (tmp_path / JOURNAL).stat().st_size == torn
    with again.writing():
        assert (tmp_path / JOURNAL).stat().st_size == whole
    third, redone = _stored(again, 3), _stored(again, 2)
    assert redone == second
    assert list(GeneratedImageStore(tmp_path)) == [first, third, second]


def test_open__a_damaged_line_costs_that_line(tmp_path):
    stored_images = GeneratedImageStore(tmp_path)
    made = [_stored(stored_images, seed) for seed in (1, 2, 3)]
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    for damaged in (
        b"\0" * 50 + b"\n",
        lines[1][:90] + b"\n",
        b"\n",
        lines[1].replace(b"disc", b"star"),
    ):
        (tmp_path / JOURNAL).write_bytes(lines[0] + damaged + lines[2])
        found = GeneratedImageStore(tmp_path)
        assert [found.find(GENERATOR, one.request) for one in made] == [made[0], None, made[2]]
        assert [one for one in found if one in made] == [made[0], made[2]]


def test_writing__is_for_one_and_sees_what_others_wrote(tmp_path):
    first, second = GeneratedImageStore(tmp_path), GeneratedImageStore(tmp_path)
    added = _stored(first, 1)
    with second.writing() as has_more:
        assert has_more
        assert second.find(GENERATOR, _request(1)) == added
        with pytest.raises(StoreError, match="being written"):
            _stored(first, 2)
        with second.writing() as has_more_inside:
            assert not has_more_inside
    with (
        exclusive(tmp_path / "lock"),
        pytest.raises(StoreError, match="being written"),
        first.writing(),
    ):
        pass
    assert _stored(first, 2).request.seed == 2


def test_writing__a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        _stored(GeneratedImageStore(tmp_path / "file" / "below"), 1)


def test_add_all__looks_are_kept_and_the_journal_only_grows(tmp_path):
    stored_images = GeneratedImageStore(tmp_path)
    before = b""
    for seed in range(4):
        look = ImageFacts(quality=f"quality check {seed}", fingerprint="ab", size=(20, seed))
        stored_images.add_all(
            [
                StoredImage(
                    generated=_generated(_request(seed), _data(seed)), data=_data(seed), look=look
                )
            ]
        )
        content = (tmp_path / JOURNAL).read_bytes()
        assert content.startswith(before)
        assert len(content) > len(before)
        before = content
    assert [one.look.size for one in GeneratedImageStore(tmp_path).all()] == [
        (20, 0),
        (20, 1),
        (20, 2),
        (20, 3),
    ]
    assert (
        GeneratedImageStore(tmp_path).stored(GENERATOR, _request(2)).look.quality
        == "quality check 2"
    )
