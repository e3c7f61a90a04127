import pytest

from weakspot.core.errors import DataError
from weakspot.data.yolo import parse_data_file

PUBLISHED = """\
# A comment
path: ../datasets/coco8  # root
train: images/train # 4 images
val: [images/val, "more images/val"]
test: # optional

# Classes
names:
  0: person
  1: "traffic: light"
  2: 'driver''s seat'
  3: no

download: |
  from pathlib import Path
  names: this is not a key
  urls = ["x"]
"""


def _names(text):
    return dict(parse_data_file(f"val: a\n{text}", where="data.yaml")[2])


def test_parse_data_file__as_published():
    found = parse_data_file(PUBLISHED, where="data.yaml")
    assert found[0] == "../datasets/coco8"
    assert found[1] == {"train": ("images/train",), "val": ("images/val", "more images/val")}
    assert found[2] == {0: "person", 1: "traffic: light", 2: "driver's seat", 3: "no"}


@pytest.mark.parametrize(
    "text",
    [
        "names: [a, 'b, c', d]",
        "names:\n- a\n- 'b, c'\n- d",
        "names:\n  - a\n  - 'b, c'  # comment\n  - d\n",
        "names: {0: a, 1: 'b, c', 2: d}",
        "names: [\n  a,\n  'b, c',\n  d,\n]",
        "names:\r\n  0: a\r\n  1: 'b, c'\r\n  2: d\r\n",
    ],
)
def test_parse_data_file__lists_and_mappings_in_both_notations(text):
    assert _names(text) == {0: "a", 1: "b, c", 2: "d"}


def test_parse_data_file__names_are_always_text():
    assert _names("names: [on, off, 1.0, 2024-01-01, null x, a:b, it#s]") == dict(
        enumerate(["on", "off", "1.0", "2024-01-01", "null x", "a:b", "it#s"])
    )


@pytest.mark.parametrize(
    "text",
    [
        "names: [[a], b]",
        "names: [a, b",
        "names:\n  0: a\n  - b",
        "names:\n  0: a\n    1: b",
        "names:\n  zero: a",
        'names: ["a]',
        "names: {a, b}",
    ],
)
def test_parse_data_file__what_it_does_not_read(text):
    with pytest.raises(DataError):
        _names(text)
