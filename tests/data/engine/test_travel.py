import pickle
import threading

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.data.engine.worker import pack_result, unpack_result


class StubbornError(Exception):
    """Cannot be pickled, whatever is tried."""

    def __init__(self):
        super().__init__("no way")
        self.lock = threading.Lock()


def prediction_of(error):
    def work(results):
        results.append(1)
        raise error

    return unpack_result(pack_result(work, pickle.dumps))


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
    results, back, _ = prediction_of(error)
    assert results == [1]
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert {name: value for name, value in vars(back).items() if name != "__notes__"} == {
        name: value for name, value in vars(error).items() if name != "__notes__"
    }
    assert "in work" in back.__notes__[0]


def test_packed_prediction__error_that_cannot_travel_is_told():
    _, error, _ = prediction_of(StubbornError())
    assert type(error) is WeakspotError
    assert "StubbornError: no way" in str(error)


def test_packed_prediction__result_that_cannot_travel():
    work = lambda results: results.append(threading.Lock())  # noqa: E731
    results, error, _ = unpack_result(pack_result(work, pickle.dumps))
    assert results == []
    assert "cannot be sent back" in str(error)
