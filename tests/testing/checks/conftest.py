"""What the tests of all checks share."""

from collections.abc import Callable

import pytest

from weakspot.testing.checks import checks_for
from weakspot.testing.part_checks import ConformanceError


@pytest.fixture
def rejected() -> Callable[[str, str, Callable[[], object]], str]:
    """Runs one check on a broken part and gives what it says; the test fails if the check is content."""

    def reject(role: str, check: str, factory: Callable[[], object]) -> str:
        with pytest.raises(ConformanceError) as caught:
            checks_for(role)[check](factory)
        return str(caught.value)

    return reject
