import math
from dataclasses import replace

import numpy as np
import pytest
from capacity import Fleet, ImageCost, forecast, members_needed, scan_seconds

from weakspot.core.errors import ConfigError

COST = ImageCost(
    n_bytes=1e5, read_seconds=0.05, decode_seconds=0.004, model_seconds=0.0005, table_seconds=1e-5
)
FLEET = Fleet(n_machines=10, n_cores=16, n_accelerators=1, n_streams=640, network=1e9, price=2.0)


@pytest.mark.parametrize(
    ("cost", "fleet", "bottleneck", "rate"),
    [
        ({}, {}, "accelerators", 20_000),
        ({"model_seconds": 0.0}, {}, "cores", 40_000),
        ({"decode_seconds": 0.0001, "model_seconds": 0.0}, {}, "network", 100_000),
        ({}, {"store": 1e8}, "network", 1000),
        ({}, {"n_streams": 1}, "waiting for reads", 10 / 0.054),
        ({"model_seconds": 0.012}, {"n_accelerators": 0}, "cores", 10_000),
        ({"table_seconds": 0.001}, {"shares_tables": True}, "tables", 1000),
        ({"table_seconds": 0.001}, {}, "tables", 10_000),
    ],
)
def test_forecast__slowest_stage_sets_the_pace(cost, fleet, bottleneck, rate):
    found = forecast(3.6e6, replace(COST, **cost), replace(FLEET, **fleet))
    assert found.bottleneck == bottleneck
    assert found.rates[bottleneck] == pytest.approx(rate)
    assert found.hours == pytest.approx(1000 / rate)
    assert (
        found.money == pytest.approx(2.0 * found.machine_hours) == pytest.approx(20.0 * found.hours)
    )


def test_forecast__more_machines_take_less_time_for_the_same_money():
    few, many = (forecast(1e9, COST, replace(FLEET, n_machines=number)) for number in (10, 100))
    assert many.hours == pytest.approx(few.hours / 10)
    assert many.money == pytest.approx(few.money)


def test_forecast__nothing_costs_nothing():
    free = ImageCost(n_bytes=0, read_seconds=0, decode_seconds=0, model_seconds=0, table_seconds=0)
    assert forecast(1e9, free, FLEET).hours == 0.0


def test_scan_seconds():
    assert scan_seconds(1e6, bytes_a_row=2048, n_machines=1, bytes_a_second=10e9) == pytest.approx(
        0.2048
    )


def test_members_needed__simulated_power():
    n_members = members_needed(rate_inside=0.3, rate_outside=0.1, n_tests=10)
    draws = np.random.default_rng(0).binomial(n_members, 0.3, 20_000)
    chances = np.cumsum(
        [
            math.comb(n_members, k) * 0.1**k * 0.9 ** (n_members - k)
            for k in range(n_members, -1, -1)
        ]
    )[::-1]
    assert 0.78 < float((chances[draws] <= 0.05 / 10).mean()) < 0.9
    assert members_needed(rate_inside=0.3, rate_outside=0.1, n_tests=100) > n_members


def test_bad_numbers():
    with pytest.raises(ConfigError, match="must not be negative"):
        replace(COST, model_seconds=-1)
    with pytest.raises(ConfigError, match="must not be negative"):
        replace(COST, model_seconds=math.nan)
    with pytest.raises(ConfigError, match="at least one machine"):
        replace(FLEET, n_machines=0)
    with pytest.raises(ConfigError, match="larger than outside"):
        members_needed(rate_inside=0.1, rate_outside=0.2, n_tests=3)
