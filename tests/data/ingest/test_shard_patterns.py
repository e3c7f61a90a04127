import pytest

from weakspot.core.errors import DataError
from weakspot.data.locations import expand_braces


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.tar", ["a.tar"]),
        ("{a,b}.tar", ["a.tar", "b.tar"]),
        ("{a,b}-{1..2}.tar", ["a-1.tar", "a-2.tar", "b-1.tar", "b-2.tar"]),
        ("{098..101}", ["098", "099", "100", "101"]),
    ],
)
def test_expand_braces__cases(pattern, expected):
    assert expand_braces(pattern) == expected


@pytest.mark.parametrize("pattern", ["{3..1}.tar", "{0..99999999999}.tar"])
def test_expand_braces__absurd_ranges(pattern):
    with pytest.raises(DataError, match="empty or too long"):
        expand_braces(pattern)
