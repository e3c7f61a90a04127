import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.data.image_grid import EMPTY, GAP, PAPER, ROW_NAME_WIDTH, labelled_grid

RED, GREEN = (200, 0, 0), (0, 200, 0)


def _plain(colour, size=(8, 8), mode="RGB"):
    return Image.new("RGB", size, colour).convert(mode)


def _pixels(sheet):
    return np.asarray(sheet).astype(int)


def test_labelled_grid__puts_every_image_into_its_cell():
    cells = [[_plain(RED), _plain(GREEN)], [_plain(GREEN), None]]
    sheet = labelled_grid(cells, row_names=["", ""], column_names=["", ""], cell_side=20)
    assert sheet.size == (3 * GAP + 40, 3 * GAP + 40)
    middles = [
        sheet.getpixel((GAP + 10 + column * 26, GAP + 10 + row * 26))
        for row in (0, 1)
        for column in (0, 1)
    ]
    assert middles == [RED, GREEN, GREEN, EMPTY]


def test_labelled_grid__keeps_the_whole_image_and_its_proportions():
    wide = Image.new("RGB", (40, 10), RED)
    wide.paste(GREEN, (39, 0, 40, 10))
    sheet = _pixels(labelled_grid([[wide]], row_names=[""], column_names=[""], cell_side=40))
    cell = sheet[GAP : GAP + 40, GAP : GAP + 40]
    assert (cell[20, 0] == RED).all()
    assert (cell[20, 39] == GREEN).all()
    assert [tuple(cell[row, 20]) for row in (0, 14, 15, 24, 25, 39)] == [
        EMPTY,
        EMPTY,
        RED,
        RED,
        EMPTY,
        EMPTY,
    ]


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1", "I;16"])
def test_labelled_grid__takes_any_pixel_mode(mode):
    image = _plain(RED, mode="L").convert("I;16") if mode == "I;16" else _plain(RED, mode=mode)
    assert labelled_grid([[image]], row_names=[""], column_names=[""], cell_side=20).mode == "RGB"


def test_labelled_grid__writes_names_and_captions_where_they_belong():
    cells = [[_plain(RED), _plain(RED)]]
    plain = labelled_grid(cells, row_names=[""], column_names=["", ""], cell_side=60)
    sheet = labelled_grid(
        cells,
        row_names=["harder"],
        column_names=["alpha 0", "alpha 0.3"],
        cell_side=60,
        captions=[["", "3 of 4 failed"]],
    )
    left = GAP + ROW_NAME_WIDTH
    assert sheet.width == plain.width + ROW_NAME_WIDTH
    pixels = _pixels(sheet)
    is_ink = pixels.sum(axis=2) < 200
    assert is_ink[:, :ROW_NAME_WIDTH].any()
    top = int(np.flatnonzero((pixels == RED).all(axis=2).any(axis=1))[0])
    assert is_ink[:top, left : left + 60].any()
    assert is_ink[:top, left + 66 :].any()
    assert not is_ink[top + 60 :, left : left + 60].any()
    assert is_ink[top + 60 :, left + 66 :].any()
    assert (pixels[-1] == PAPER).all()


def test_labelled_grid__wraps_long_names_and_breaks_long_words():
    long = "supercalifragilisticexpialidocious " * 3
    sheet = labelled_grid(
        [[_plain(RED)]], row_names=[""], column_names=[long], cell_side=60, captions=[[long]]
    )
    short = labelled_grid(
        [[_plain(RED)]], row_names=[""], column_names=["a"], cell_side=60, captions=[["a"]]
    )
    assert sheet.width == short.width
    assert sheet.height > short.height + 100
    assert not (_pixels(sheet)[:, 60 + GAP :].sum(axis=2) < 200).any()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"row_names": []}, "at least one row"),
        ({"column_names": ["a", "b"]}, "1 rows of 2"),
        ({"cell_side": 3}, "at least 16"),
        ({"captions": [["a", "b"]]}, "as many as cells"),
    ],
)
def test_labelled_grid__refuses_what_does_not_fit(changes, expected):
    options = {
        "row_names": ["a"],
        "column_names": ["b"],
        "cell_side": 20,
        "captions": None,
    } | changes
    with pytest.raises(ConfigError, match=expected):
        labelled_grid([[_plain(RED)]], **options)
