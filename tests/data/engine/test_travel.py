import pickle
import threading

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.data.engine.worker import pack, pack_result, shorten, unpack, unpack_result


class StubbornError(Exception):
    """Cannot be pickled, whatever is tried."""

    def __init__(self):
        super().__init__("no way")
        self.lock = threading.Lock()


def prediction_of(error):
    def work(results):
        results.append(1)
        raise error

    return unpack_result(pack_result(work, pickle))


def test_packed__there_and_back():
    assert unpack(pack({"a": (1, 2)}, pickle, what="An item")) == {"a": (1, 2)}


def test_packed__what_cannot_be_sent():
    with pytest.raises(
        ConfigError, match="An item cannot be sent to another process.*engine local"
    ):
        pack(threading.Lock(), pickle, what="An item")


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
def test_packed_prediction__errors_keep_type_words_and_fields(error):
    found = prediction_of(error)
    assert found.results == [1]
    assert type(found.error) is type(error)
    assert str(found.error) == str(error)
    assert {name: value for name, value in vars(found.error).items() if name != "__notes__"} == {
        name: value for name, value in vars(error).items() if name != "__notes__"
    }
    assert "in work" in found.error.__notes__[0]


def test_packed_prediction__error_that_cannot_travel_is_told():
    found = prediction_of(StubbornError())
    assert type(found.error) is WeakspotError
    assert "StubbornError: no way" in str(found.error)


def test_packed_prediction__result_that_cannot_travel():
    found = unpack_result(pack_result(lambda results: results.append(threading.Lock()), pickle))
    assert found.results == []
    assert "cannot be sent back" in str(found.error)


def test_shown__short():
    assert shorten("a" * 1000).endswith("...")
    assert shorten(3) == "3"
