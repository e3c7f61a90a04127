import pytest
from names.judging import Answer, is_right
from names.parts import PARTS
from names.slices import REPORTING, TUNING
from names.table import summary_of, table_of


@pytest.mark.parametrize(
    ("contrast", "right", "expected"),
    [
        ("green", ("green",), True),
        ("on a green background", ("green",), False),
        ("on a grassy background", ("grass", "grassy"), True),
        ("with letters", ("letter",), True),
        ("green, blurry", ("green",), False),
        ("black and white", ("black and white",), True),
        ("evergreen", ("green",), False),
    ],
)
def test_is_right__every_part_must_hold_a_right_word(contrast, right, expected):
    assert is_right(contrast, right) == expected


def test_slices__tuning_and_reporting_share_no_class_of_photographs():
    kinds = [
        {(one.source, kind) for one in part for kind in one.kinds if one.source != "cifar"}
        for part in (TUNING, REPORTING)
    ]
    assert not kinds[0] & kinds[1]
    assert {one.class_name for one in TUNING} & {one.class_name for one in REPORTING} <= {
        "animal",
        "vehicle",
        "bird",
    }


def test_slices__at_least_twelve_of_every_sort_are_reported_on():
    assert len(REPORTING) >= 12
    sorts = {"colour", "kind", "place", "writing", "size", "light", "style"}
    for name, part in PARTS.items():
        found = {one.kind_of_word for one in part.slices}
        assert found == sorts if name.endswith("reporting") else found <= sorts
        assert len({one.key for one in part.slices}) == len(part.slices)


def test_parts__no_part_that_reports_shares_small_photographs_with_another():
    sheets = [PARTS[name].sheet for name in PARTS if name.endswith("reporting")]
    tuning = {PARTS[name].sheet for name in PARTS if name.endswith("tuning")}
    assert len(set(sheets)) == len(sheets)
    assert not tuning & set(sheets)


def test_table_of__a_row_a_slice():
    answers = [
        Answer(
            key="apple green",
            kind_of_word="colour",
            verdict="right",
            title="green apples",
            words=("green",),
        ),
        Answer(
            key="pet dog", kind_of_word="kind", verdict="unsure (wrong)", title="animal, group 1"
        ),
        Answer(key="cat", kind_of_word="light", verdict="wrong"),
    ]
    assert (
        table_of(answers).splitlines()[2]
        == "| apple green | colour | right | green apples | green |"
    )
    assert summary_of(answers).startswith("3 slices: 1 right (33 %), 1 wrong (33 %), 1 unsure")
