import pytest

from weakspot.core.errors import DataError
from weakspot.testing.part_checks import ConformanceError, expect_refusal


def test_expect_refusal__another_error_is_named():
    with (
        pytest.raises(ConformanceError, match="raised KeyError where"),
        expect_refusal("Nonsense was given"),
    ):
        raise KeyError("x")
    with expect_refusal("Nonsense was given"):
        raise DataError("no")
