import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.registry import ROLES
from weakspot.testing import checks
from weakspot.testing.checks import checks_for


def test_checks_for__unknown_role():
    with pytest.raises(ConfigError, match=r"no role 'painters'.*'discoverers'"):
        checks_for("painters")


def test_checks__one_function_a_role():
    for role in ROLES:
        assert callable(getattr(checks, f"check_{role.removesuffix('s')}"))
        assert len(checks_for(role)) >= (4 if role == "rules" else 7)
