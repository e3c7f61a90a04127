import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.models.prompts import read_shots, shots_id


def _table(folder, rows, *, head="image,text"):
    for number in range(3):
        Image.new("RGB", (8, 8), (80 * number, 0, 0)).save(folder / f"{number}.png")
    path = folder / "shots.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_read_shots__images_and_texts_of_a_table(tmp_path):
    table = _table(tmp_path, ["0.png,it is dark.  it is small.", '2.png,"it is red, and bright."'])
    first, second = read_shots(table)
    assert first.text == "it is dark. it is small."
    assert second.said == "Caption of this image: it is red, and bright."
    assert second.image.getpixel((0, 0)) == (160, 0, 0)
    assert (read_shots(""), shots_id("")) == ((), ())


def test_shots_id__is_of_texts_and_pixels(tmp_path):
    table = _table(tmp_path, ["0.png,dark."])
    before = shots_id(table)
    assert before == shots_id(table)
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "0.png")
    assert shots_id(table) != before


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        ([], "image,text"),
        (["9.png,dark."], "image,text"),
        (["shots.csv,dark."], "image,text"),
        (["0.png,dark."], "image,words"),
        (["0.png, "], "image,text"),
        (["0.png,dark."] * 9, "image,text"),
    ],
)
def test_read_shots__what_cannot_be_used_says_what_is_needed(tmp_path, rows, head):
    with pytest.raises(ConfigError, match="columns image and text"):
        read_shots(_table(tmp_path, rows, head=head))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_shots(tmp_path / "nothing.csv")
