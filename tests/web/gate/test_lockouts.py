from weakspot.web.gate.lockouts import FORGOTTEN_AFTER_SECONDS, FREE_FAILURES, LONGEST_SECONDS, Lockouts


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def _failed(n_times: int) -> tuple[Lockouts, Clock]:
    clock = Clock()
    lockouts = Lockouts(clock=clock)
    for _ in range(n_times):
        lockouts.failed("ada", "1.2.3.4")
    return lockouts, clock


def test_seconds_left__few_failures__open():
    assert _failed(FREE_FAILURES - 1)[0].seconds_left("ada", "1.2.3.4") == 0


def test_seconds_left__more_failures__grows_up_to_a_limit():
    waits = [_failed(FREE_FAILURES + more)[0].seconds_left("ada", "1.2.3.4") for more in range(12)]
    assert waits[:3] == [10, 20, 40]
    assert waits[-1] == LONGEST_SECONDS


def test_seconds_left__after_the_while__open_again():
    lockouts, clock = _failed(FREE_FAILURES)
    clock.seconds = 10.0
    assert lockouts.seconds_left("ada", "1.2.3.4") == 0


def test_seconds_left__other_login_or_address__open():
    lockouts, _ = _failed(FREE_FAILURES)
    assert lockouts.seconds_left("bob", "1.2.3.4") == 0
    assert lockouts.seconds_left("ada", "5.6.7.8") == 0


def test_succeeded__failures_are_forgotten():
    lockouts, _ = _failed(FREE_FAILURES)
    lockouts.succeeded("ada", "1.2.3.4")
    assert lockouts.seconds_left("ada", "1.2.3.4") == 0


def test_failed__long_ago__counts_no_more():
    lockouts, clock = _failed(FREE_FAILURES)
    clock.seconds = FORGOTTEN_AFTER_SECONDS + 1
    lockouts.failed("ada", "1.2.3.4")
    assert lockouts.seconds_left("ada", "1.2.3.4") == 0
