import numpy as np
import pytest

from weakspot.core.evidence import Interval
from weakspot.repair.advice.files import CollectionNeed, PoolChoice
from weakspot.repair.advice.learning_curve import Forecast

NOTHING = PoolChoice(
    rows=np.zeros(0, np.int64), is_labelled=np.zeros(0, np.bool_), n_candidates=0, n_pool=0
)


def _wish(world, *, gain, low, elsewhere=0.0):
    forecast = Forecast(
        n_wanted=10,
        gain=gain,
        interval=Interval(low=low, high=gain + 0.2),
        reachable=gain,
        n_most=14,
        elsewhere=elsewhere,
        is_rising=False,
    )
    return CollectionNeed(kind=world.kind(), choice=NOTHING, n_wanted=10, forecast=forecast)


@pytest.mark.parametrize(
    ("gain", "low", "elsewhere", "may_help"),
    [
        (0.5, 0.3, 0.0, True),
        (0.1, -0.1, 0.0, True),
        (0.02, 0.01, 0.0, True),
        (0.02, -0.1, 0.0, False),
        (-0.1, -0.2, 0.0, False),
        (0.5, 0.3, -0.10, True),
        (0.5, 0.3, -0.14, False),
    ],
)
def test_may_help__a_gain_that_others_do_not_pay_for(world, gain, low, elsewhere, may_help):
    """Twenty images of the kind and forty others: half of ten gained are five lost, 12.5 points of forty."""
    kind = world.kind()
    assert (len(kind.rows), len(kind.discovery)) == (20, 60)
    assert _wish(world, gain=gain, low=low, elsewhere=elsewhere).may_help is may_help


def test_may_help__nothing_known_of_the_gain_is_no_reason_against_it(world):
    unknown = CollectionNeed(kind=world.kind(), choice=NOTHING)
    assert unknown.may_help
    assert not unknown.moves_errors
