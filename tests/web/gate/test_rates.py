from weakspot.web.gate.rates import MOST_BUCKETS, Buckets, Rate


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_take__burst_used_up__wait_then_again():
    clock = Clock()
    buckets = Buckets(Rate(burst=3, a_second=0.5), clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 2]
    clock.seconds = 2.0
    assert buckets.take("a") == 0


def test_take__others__have_their_own():
    buckets = Buckets(Rate(burst=1, a_second=1), clock=Clock())
    assert (buckets.take("a"), buckets.take("b"), buckets.take("a")) == (0, 0, 1)


def test_give_back__never_more_than_the_burst():
    buckets = Buckets(Rate(burst=1, a_second=1), clock=Clock())
    buckets.give_back("a")
    assert (buckets.take("a"), buckets.take("a")) == (0, 1)


def test_take__very_many_keys__oldest_are_forgotten():
    buckets = Buckets(Rate(burst=1, a_second=1e-9), clock=Clock())
    for number in range(MOST_BUCKETS + 10):
        buckets.take(str(number))
    assert buckets.take(str(MOST_BUCKETS + 9)) > 0
    assert buckets.take("0") == 0
