import threading

import pytest

from weakspot.web.server_parts import Readiness


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_readiness__unexpected_error__failed_without_details():
    readiness = Readiness()
    readiness.prepare(lambda: 1 / 0).join()
    assert readiness.health.state == "failed"
    assert "ZeroDivision" not in readiness.health.message


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_readiness__server_ends_meanwhile__no_traceback(capfd):
    readiness, go_on = Readiness(), threading.Event()

    def lose_ground():
        go_on.wait()
        raise RuntimeError("cannot schedule new futures after shutdown")

    thread = readiness.prepare(lose_ground)
    readiness.close()
    go_on.set()
    thread.join()
    assert readiness.health.state == "failed"
    assert capfd.readouterr().err == ""
