import pytest

from weakspot.core.errors import ConfigError
from weakspot.web.gate.passwords import hashed, is_right


def test_hashed__right_and_wrong__told_apart():
    kept = hashed("correct horse")
    assert kept.startswith("$argon2id$")
    assert is_right("correct horse", kept)
    assert not is_right("correct horsf", kept)


def test_is_right__nobody_of_that_name__no():
    assert not is_right("the password of nobody", None)


def test_is_right__damaged_hash__no():
    assert not is_right("x", "not a hash")


@pytest.mark.parametrize("password", ["short", "x" * 1001])
def test_hashed__unfit__said(password):
    with pytest.raises(ConfigError, match="8 to 1000"):
        hashed(password)
