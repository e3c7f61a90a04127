import pickle
import threading

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.engine.travel import packed, packed_outcome, shown, unpacked, unpacked_outcome


class StubbornError(Exception):
    """Cannot be pickled, whatever is tried."""

    def __init__(self):
        super().__init__("no way")
        self.lock = threading.Lock()


def outcome_of(error):
    def work(results):
        results.append(1)
        raise error

    return unpacked_outcome(packed_outcome(work, pickle))


def test_packed__there_and_back():
    assert unpacked(packed({"a": (1, 2)}, pickle, what="An item")) == {"a": (1, 2)}


def test_packed__what_cannot_be_sent():
    with pytest.raises(ConfigError, match="An item cannot be sent to another process.*engine local"):
        packed(threading.Lock(), pickle, what="An item")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("seven"),
        FileNotFoundError(2, "No such file", "a.jpg"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        ConfigError("Wrong.", where="here", given=3, fix="Right it."),
        MissingExtraError("torch", extra="torch", purpose="Checks"),
        KeyboardInterrupt(),
    ],
)
def test_packed_outcome__errors_keep_type_words_and_fields(error):
    found = outcome_of(error)
    assert found.results == [1]
    assert type(found.error) is type(error)
    assert str(found.error) == str(error)
    assert {name: value for name, value in vars(found.error).items() if name != "__notes__"} == {
        name: value for name, value in vars(error).items() if name != "__notes__"
    }
    assert "in work" in found.error.__notes__[0]


def test_packed_outcome__error_that_cannot_travel_is_told():
    found = outcome_of(StubbornError())
    assert type(found.error) is WeakspotError
    assert "StubbornError: no way" in str(found.error)


def test_packed_outcome__result_that_cannot_travel():
    found = unpacked_outcome(packed_outcome(lambda results: results.append(threading.Lock()), pickle))
    assert found.results == []
    assert "cannot be sent back" in str(found.error)


def test_shown__short():
    assert shown("a" * 1000).endswith("...")
    assert shown(3) == "3"
