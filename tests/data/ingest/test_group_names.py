import numpy as np
import pyarrow as pa
import pytest
from tests.data.ingest.assembling import assembled_parts, table_of

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError
from weakspot.data.examine import EXAMINED_SCHEMA
from weakspot.data.groups import GroupChoice


def _row(number, *, metadata=None, split=None, labels=("a",), location=None, content=None):
    return {
        "key": f"row {number}",
        "location": location,
        "content_hash": f"{number if content is None else content:032x}",
        "labels": list(labels),
        "split": split,
        "metadata": metadata,
        "notes": [],
    }


def _assembled(rows, **settings):
    parts = [
        pa.Table.from_pylist(rows[start : start + 7], schema=EXAMINED_SCHEMA)
        for start in range(0, len(rows), 7)
    ]

    return assembled_parts(parts, **settings)


def test_assemble__the_column_group_is_taken():
    rows = [_row(one, metadata=f'{{"group": "g{one // 2}", "x": 1}}') for one in range(12)]
    table = table_of(_assembled([*rows, _row(12)]))
    assert table.column("group").to_pylist() == [f"g{one // 2}" for one in range(12)] + [None]
    assert table.column("meta.group").to_pylist()[:2] == ["g0", "g0"]


def test_assemble__without_groups_there_is_no_column():
    assert "group" not in table_of(_assembled([_row(one) for one in range(3)])).column_names
    rows = [_row(one, metadata='{"group": "g"}') for one in range(3)]
    assert "group" not in table_of(_assembled(rows, group="none")).column_names


def test_assemble__another_column_only_when_told():
    rows = [_row(one, metadata=f'{{"patient": {one // 3}}}') for one in range(6)]
    assert "group" not in table_of(_assembled(rows)).column_names
    told = table_of(_assembled(rows, group="patient"))
    assert told.column("group").to_pylist() == ["0", "0", "0", "1", "1", "1"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("folder:1", ["/d/cat/x", "/d/cat/x", "/d/dog/x"]),
        ("folder:2", ["/d/cat", "/d/cat", "/d/dog"]),
        (r"/(o\d+)_", ["o1", "o2", "o1"]),
        (r"(?:cat|dog)/(x)/", ["x", "x", "x"]),
    ],
)
def test_assemble__folders_and_patterns(setting, expected):
    places = ["/d/cat/x/o1_1.jpg", "/d/cat/x/o2_1.jpg#bytes=0-9", "/d/dog/x/o1_1.jpg"]
    rows = [_row(one, location=place) for one, place in enumerate(places)]
    assert table_of(_assembled(rows, group=setting)).column("group").to_pylist() == expected


def test_assemble__groups_that_are_nowhere_are_an_error():
    for setting in ("patient", "folder:3", "(z+)"):
        with pytest.raises(DataError, match="No sample has a group"):
            _assembled([_row(1, location="a/b.jpg")], group=setting)


@pytest.mark.parametrize(("setting", "said"), [("(a", "no regular"), ("(a)(b)", "exactly one")])
def test_group_choice__refuses_patterns(setting, said):
    with pytest.raises(ConfigError, match=said):
        GroupChoice.of(setting)


def test_assemble__a_column_of_few_values_is_no_group_of_objects_unless_told():
    rows = [_row(one, metadata=f'{{"group": "g{one % 4}"}}') for one in range(120)]
    assembly = _assembled(rows)
    assert assembly.groups is None
    assert assembly.group_note.startswith("The column 'group' has 4 values for 120 images")
    assert _assembled(rows, group="group").groups is not None
    larger = [_row(one, metadata=f'{{"group": "g{max(one, 40)}"}}') for one in range(120)]
    assert "81 values" not in _assembled(larger, group="group").group_note
    assert "80 values" in _assembled(larger).group_note


def test_assemble__splits_keep_groups_whole_and_come_near_the_fractions():
    random = np.random.default_rng(1)
    names = random.integers(0, 60, 400)
    rows = [
        _row(one, metadata=f'{{"group": "g{name}"}}', labels=["ab"[name % 2]])
        for one, name in enumerate(names)
    ]
    assembly = _assembled(rows)
    per_group = [set(assembly.splits[names == name].tolist()) for name in np.unique(names)]
    assert {len(one) for one in per_group} == {1}
    shares = np.bincount(assembly.splits, minlength=5)[:3] / 400
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.05)
    assert list(assembly.groups.counts(assembly.splits)) == [60, 400, 0]


def test_assemble__a_group_follows_the_split_that_one_of_it_names():
    rows = [
        _row(0, metadata='{"group": "g"}'),
        _row(1, metadata='{"group": "g"}', split="test"),
        _row(2, metadata='{"group": "h"}', split="train"),
        _row(3, metadata='{"group": "h"}', split="test"),
    ]
    assembly = _assembled(rows)
    order = list(Split)
    assert [order[code].value for code in assembly.splits] == ["test", "test", "train", "test"]
    assert list(assembly.groups.counts(assembly.splits)) == [2, 4, 1]


def test_assemble__an_unlabelled_sample_does_not_take_its_group_into_the_pool():
    rows = [_row(0, metadata='{"group": "g"}', labels=())]
    rows += [_row(one, metadata='{"group": "g"}') for one in range(1, 4)]
    splits = _assembled(rows).splits
    assert splits[0] == list(Split).index(Split.POOL)
    assert len(set(splits[1:].tolist())) == 1
    assert splits[1] != splits[0]


def test_assemble__copies_join_groups():
    rows = [_row(one, metadata=f'{{"group": "g{one}"}}', content=one // 2) for one in range(8)]
    groups = _assembled(rows).groups
    assert groups.first_rows.tolist() == [0, 0, 2, 2, 4, 4, 6, 6]
