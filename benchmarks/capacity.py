"""How long very many images take on so many machines, what it costs and what it waits for: arithmetic, no measurement.

Stages overlap, so the slowest one sets the pace. `benchmarks/billion.py` holds this against the real engine.
"""

import math
from dataclasses import dataclass

from weakspot.core.errors import ConfigError

SECONDS_AN_HOUR = 3600.0
MAX_MEMBERS = 100_000


@dataclass(frozen=True, kw_only=True)
class ImageCost:
    """What one image takes at every stage; measure it on one machine first.

    Args:
        n_bytes: of the encoded image.
        read_seconds: from asking for it to having it, when the network is not full.
        decode_seconds: of one core.
        model_seconds: of one accelerator, or of one core where there is none.
        table_seconds: of the process that writes embeddings and tables.
    """

    n_bytes: float
    read_seconds: float
    decode_seconds: float
    model_seconds: float
    table_seconds: float

    def __post_init__(self) -> None:
        """Refuse times that cannot be."""
        _refuse_negative(self)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The machines.

    Args:
        n_machines: all alike.
        n_cores: of one machine.
        n_accelerators: of one machine; 0 if models run on its cores.
        n_streams: images that one machine reads and decodes at once.
        network: bytes a second into one machine.
        store: bytes a second that the place of the images gives to all machines together.
        price: of one machine, an hour.
        shares_tables: whether one process writes for all machines; otherwise every machine has a project of its own.
    """

    n_machines: int
    n_cores: int
    n_accelerators: int
    n_streams: int
    network: float
    store: float = math.inf
    price: float = 0.0
    shares_tables: bool = False

    def __post_init__(self) -> None:
        """Refuse a fleet that cannot do anything."""
        _refuse_negative(self)
        if not (
            self.n_machines and self.n_cores and self.n_streams and self.network and self.store
        ):
            raise ConfigError(
                "A fleet needs at least one machine with a core, a stream and a network.",
                given=self,
            )


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is to be expected.

    Args:
        rates: images a second that every stage could do if it were the only one.
        bottleneck: the slowest of them.
        hours: for all images.
        machine_hours: the same, times the machines.
        money: for them.
    """

    rates: dict[str, float]
    bottleneck: str
    hours: float
    machine_hours: float
    money: float


def forecast(n_images: float, cost: ImageCost, fleet: Fleet) -> Forecast:
    """Return how long so many images take.

    >>> cost = ImageCost(n_bytes=1e5, read_seconds=0.05, decode_seconds=0.004, model_seconds=0.0005, table_seconds=1e-5)
    >>> fleet = Fleet(n_machines=10, n_cores=16, n_accelerators=1, n_streams=64, network=1.25e9, price=1.2)
    >>> expected = forecast(1e9, cost, fleet)
    >>> expected.bottleneck, round(expected.hours, 1), round(expected.money)
    ('waiting for reads', 23.4, 281)
    """
    machines = fleet.n_machines
    on_cores = cost.decode_seconds + (0.0 if fleet.n_accelerators else cost.model_seconds)
    rates = {
        "network": _rate(min(machines * fleet.network, fleet.store), cost.n_bytes),
        "waiting for reads": _rate(
            machines * fleet.n_streams, cost.read_seconds + cost.decode_seconds
        ),
        "cores": _rate(machines * fleet.n_cores, on_cores),
        "tables": _rate(1 if fleet.shares_tables else machines, cost.table_seconds),
    }
    if fleet.n_accelerators:
        rates["accelerators"] = _rate(machines * fleet.n_accelerators, cost.model_seconds)
    bottleneck = min(rates, key=lambda name: rates[name])
    hours = n_images / rates[bottleneck] / SECONDS_AN_HOUR
    return Forecast(
        rates=rates,
        bottleneck=bottleneck,
        hours=hours,
        machine_hours=hours * machines,
        money=hours * machines * fleet.price,
    )


def scan_seconds(
    n_rows: float, *, bytes_a_row: float, n_machines: int, bytes_a_second: float
) -> float:
    """Return how long one reading of all embeddings takes, each machine reading its own part.

    >>> scan_seconds(1e9, bytes_a_row=2048, n_machines=20, bytes_a_second=10e9)
    10.24
    """
    return n_rows * bytes_a_row / (n_machines * bytes_a_second)


def members_needed(
    *,
    rate_inside: float,
    rate_outside: float,
    n_tests: int,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """Return how many members of a slice the confirmation half needs so that its gap is mostly confirmed.

    By the exact binomial test, with the level divided among all tests; the rest of the class is taken as many.

    >>> members_needed(rate_inside=0.25, rate_outside=0.05, n_tests=30)
    35
    """
    from scipy.special import bdtrc

    if not 0.0 <= rate_outside < rate_inside <= 1.0:
        raise ConfigError(
            "The failure rate inside must be larger than outside.",
            given=(rate_inside, rate_outside),
        )
    n_failures = 1
    for n_members in range(1, MAX_MEMBERS):
        while (
            n_failures <= n_members
            and bdtrc(n_failures - 1, n_members, rate_outside) > alpha / n_tests
        ):
            n_failures += 1
        if n_failures <= n_members and bdtrc(n_failures - 1, n_members, rate_inside) >= power:
            return n_members
    raise ConfigError(
        "The gap is too small to be confirmed by any number of samples.",
        given=(rate_inside, rate_outside),
    )


def _rate(supply: float, demand: float) -> float:
    return supply / demand if demand else math.inf


def _refuse_negative(given: ImageCost | Fleet) -> None:
    wrong = {name: value for name, value in vars(given).items() if not value >= 0}
    if wrong:
        raise ConfigError("Sizes and times must not be negative.", given=wrong)
