import json
from io import BytesIO

import pytest

from weakspot.core.errors import DataError
from weakspot.data import json_stream
from weakspot.data.json_stream import read_members


def _read(text, **more):
    data = text if isinstance(text, bytes) else text.encode()
    return list(read_members(BytesIO(data), where="file", **more))


CONTENT = {
    "info": {"a": [1, {"b": "]}, \\" + '"'}]},
    "empty": [],
    "numbers": [1, -2.5, 123456789, 1e3],
    "words": ["å", "\\", "", None, True],
    "deep": [[1, [2]], {"x": {"y": []}}],
    "last": 12345,
}
EXPECTED = [
    (name, one)
    for name, value in CONTENT.items()
    for one in (value if isinstance(value, list) else [value])
]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_read_members__whatever_the_size_of_blocks(monkeypatch, block, indent):
    monkeypatch.setattr(json_stream, "_BLOCK_BYTES", block)
    assert _read(json.dumps(CONTENT, indent=indent, ensure_ascii=False)) == EXPECTED


def test_read_members__empty_object_and_mark():
    assert _read("{}") == []
    assert _read(b"\xef\xbb\xbf" + b'{"a": 1}') == [("a", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a"',
        '{"a": [1, 2',
        '{"a": [1 2]}',
        '{"a": 1,}',
        "{1: 2}",
        '{"a": }',
        '{"a": [1,]}',
        b'{"a": "\xff"}',
    ],
)
def test_read_members__what_is_no_object(text):
    with pytest.raises(DataError):
        _read(text)


def test_read_members__an_element_without_end_is_not_read_for_ever(monkeypatch):
    monkeypatch.setattr(json_stream, "_MAX_PIECE", 1000)
    monkeypatch.setattr(json_stream, "_BLOCK_BYTES", 100)
    with pytest.raises(DataError, match="no JSON object"):
        _read('{"a": ["' + "x" * 5000 + '"]}')


def test_read_members__nested_too_deeply():
    with pytest.raises(DataError):
        _read('{"a": ' + "[" * 200_000)
