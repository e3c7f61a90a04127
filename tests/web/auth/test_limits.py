from weakspot.web.auth.login import (
    FORGOTTEN_AFTER_SECONDS,
    FREE_FAILURES,
    MAX_BUCKETS,
    MAX_SECONDS,
    Buckets,
    Lockouts,
)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_take__burst_used_up__wait_then_again():
    clock = Clock()
    buckets = Buckets((3, 0.5), clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 2]
    clock.seconds = 2.0
    assert buckets.take("a") == 0


def test_take__others__have_their_own():
    buckets = Buckets((1, 1), clock=Clock())
    assert (buckets.take("a"), buckets.take("b"), buckets.take("a")) == (0, 0, 1)


def test_give_back__never_more_than_the_burst():
    buckets = Buckets((1, 1), clock=Clock())
    buckets.give_back("a")
    assert (buckets.take("a"), buckets.take("a")) == (0, 1)


def test_take__very_many_keys__oldest_are_forgotten():
    buckets = Buckets((1, 1e-9), clock=Clock())
    for number in range(MAX_BUCKETS + 10):
        buckets.take(str(number))
    assert buckets.take(str(MAX_BUCKETS + 9)) > 0
    assert buckets.take("0") == 0


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
    assert waits[-1] == MAX_SECONDS


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
