import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from weakspot.models.embedded.witnesses import (
    TextLine,
    TextReader,
    _boxes,
    _cut_out,
    lines_in,
    read_characters,
    written_lines,
)


@pytest.fixture(scope="module")
def reader():
    return TextReader(threads=1, side=320)


def _written(word, *, angle=0.0):
    image = Image.new("RGB", (320, 320), (70, 110, 80))
    ImageDraw.Draw(image).text((70, 140), word, fill="white", font=ImageFont.load_default(size=42))
    return image.rotate(angle, resample=Image.Resampling.BICUBIC, fillcolor=(70, 110, 80))


@pytest.mark.network
def test_read__word_and_place(reader):
    (lines,) = reader.read([_written("MARKET")])

    assert [line.text for line in lines] == ["MARKET"]
    assert lines[0].confidence > 0.9
    assert lines[0].centre == pytest.approx((0.48, 0.52), abs=0.06)
    assert 0.05 < lines[0].share < 0.25


@pytest.mark.network
@pytest.mark.parametrize("angle", [20.0, -25.0])
def test_read__turned_word(reader, angle):
    (lines,) = reader.read([_written("Bakery", angle=angle)])

    assert [line.text for line in lines] == ["Bakery"]


@pytest.mark.network
def test_read__no_text(reader):
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(90, 140, (64, 64, 3), dtype=np.uint8)).resize((320, 200))

    assert reader.read([noise, Image.new("RGB", (320, 320), "grey")]) == [(), ()]


@pytest.mark.network
def test_speak__says_that_it_looked(reader):
    assert reader.speak([Image.new("RGB", (64, 64))]) == ["[]"]


def test_boxes__a_bar_is_grown_by_its_thickness():
    cores = np.zeros((100, 200), dtype=np.float32)
    cores[40:50, 60:140] = 0.9
    cores[80:90, 10:60] = 0.4
    cores[5:7, 5:7] = 0.9

    ((corners, share),) = _boxes(cores)

    grown = 1.6 * 80 * 10 / (2 * 90)
    assert share == pytest.approx((80 + 2 * grown) * (10 + 2 * grown) / 20000, rel=1e-3)
    assert corners[0] == pytest.approx([(60 - grown) / 200, (40 - grown) / 100], abs=0.006)
    assert corners[2] == pytest.approx([(140 + grown) / 200, (50 + grown) / 100], abs=0.006)


def test_cut_out__standing_line_is_turned():
    pixels = np.zeros((100, 100, 3), dtype=np.uint8)
    pixels[10:30, 45:55] = (255, 0, 0)
    pixels[70:90, 45:55] = (0, 0, 255)
    corners = np.array([[0.45, 0.1], [0.55, 0.1], [0.55, 0.9], [0.45, 0.9]])

    strip = np.asarray(_cut_out(Image.fromarray(pixels), corners))

    assert strip.shape[:2] == (48, 48 * 8)
    assert strip[24, 20].argmax() == 0
    assert strip[24, -20].argmax() == 2


def test_read_characters__blank_parts_repeated_ones():
    characters = ("", "o", "l", " ")
    path = [1, 1, 0, 1, 3, 2, 0, 2]
    scores = np.full((len(path), 4), 0.1)
    scores[np.arange(len(path)), path] = 0.7

    assert read_characters(scores, characters) == ("oo ll", 0.7)


def test_read_characters__nothing():
    assert read_characters(np.array([[0.9, 0.1]]), ("", "a")) == ("", 0.0)


def test_lines_in__what_was_written():
    lines = (
        TextLine(text='50% "é"', confidence=0.5, share=0.12345, centre=(0.25, 0.75)),
        TextLine(text="b", confidence=1.0, share=0.0, centre=(0.0, 1.0)),
    )

    assert lines_in(written_lines(lines)) == lines
