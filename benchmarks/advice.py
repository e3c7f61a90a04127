"""How many to label: is the gain that was forecast within its interval when labels are then really added and the layer retrained?

Every world has a finding. The advisor looks at it as in a run, says how many images to label and lists which. Then people label down the
list until they have that many of the kind, everything that they labelled is added, the last layer is retrained, and the gain is measured
on test images of the kind. Seeds below 1000 chose the settings; those from 1000 on are reported.

    python benchmarks/advice.py --seeds 1000 1050 --photographs 2
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from advice_worlds import AdviceWorld, photograph_worlds, planted_world

from weakspot.core.dataset import Split, Task
from weakspot.repair.advice.stage import Advisor
from weakspot.repair.bench import RepairBench
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.settings import Settings


@dataclass(frozen=True, kw_only=True)
class WorldResult:
    """What was forecast of one world, and what came of it."""

    name: str
    can_help: bool
    n_known: int
    n_discovery: int
    n_wanted: int
    n_labelled: int
    n_got: int
    forecast: float
    low: float
    high: float
    measured: float
    elsewhere: float
    measured_elsewhere: float
    is_advised: bool
    seconds: float

    @property
    def is_within(self) -> bool:
        slack = 1e-9
        return self.low - slack <= self.measured <= self.high + slack


def try_world(world: AdviceWorld) -> WorldResult | None:
    """Return forecast and outcome; None if nothing was forecast."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        bench = RepairBench(world.prepared, Settings())
        advisor = Advisor(world.record, bench, Path(folder))
        advisor.run()
        seconds = time.perf_counter() - begun
        (wish,) = advisor.wishes
    forecast = wish.forecast
    if forecast is None:
        return None
    listed = wish.choice.rows
    n_labelled = int(np.searchsorted(np.cumsum(world.is_kind[listed]), forecast.n_wanted)) + 1
    labelled = listed[:n_labelled]
    training = np.concatenate([world.rows(Split.TRAIN), labelled])
    head = HeadTrainer(penalty=world.penalty).train(
        world.features[training],
        world.truth[training],
        np.ones(len(training)),
        task=Task.SINGLE_LABEL,
        n_classes=world.samples.dataset.n_classes,
    )
    test = world.rows(Split.TEST)
    after = head.head.probabilities(world.features[test]).argmax(axis=1) == world.truth[test]
    change = after.astype(float) - (world.samples.dataset.predictions[test] == world.truth[test])
    is_kind = world.is_kind[test]
    return WorldResult(
        name=world.name,
        can_help=world.can_help,
        n_known=wish.kind.n_known or 0,
        n_discovery=len(wish.kind.rows),
        n_wanted=forecast.n_wanted,
        n_labelled=len(labelled),
        n_got=int(world.is_kind[labelled].sum()),
        forecast=forecast.gain,
        low=forecast.interval.low,
        high=forecast.interval.high,
        measured=float(change[is_kind].mean()),
        elsewhere=forecast.elsewhere,
        measured_elsewhere=float(change[~is_kind].mean()),
        is_advised=wish.may_help,
        seconds=seconds,
    )


def summary(title: str, results: list[WorldResult]) -> str:
    """Return one line of the table."""
    errors = np.array([one.measured - one.forecast for one in results])
    cells = (
        title,
        len(results),
        f"{sum(one.is_within for one in results)} ({np.mean([one.is_within for one in results]):.0%})",
        f"{100 * np.mean([one.forecast for one in results]):+.0f}",
        f"{100 * np.mean([one.measured for one in results]):+.0f}",
        f"{100 * np.abs(errors).mean():.0f}",
        f"{100 * np.mean([one.high - one.low for one in results]):.0f}",
        f"{100 * np.mean([one.elsewhere for one in results]):+.1f}",
        f"{100 * np.mean([one.measured_elsewhere for one in results]):+.1f}",
        f"{np.mean([one.n_wanted for one in results]):.0f}",
        f"{np.mean([one.n_labelled for one in results]):.0f}",
        f"{np.mean([one.is_advised for one in results]):.0%}",
    )
    return "| " + " | ".join(str(cell).replace("%", " %") for cell in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1000, 1050))
    parser.add_argument("--photographs", type=int, default=0, help="deals of the photographs")
    parser.add_argument("--first-deal", type=int, default=1000)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "advice")
    options = parser.parse_args()
    groups: dict[str, list[WorldResult]] = {}
    worlds = [planted_world(seed) for seed in range(*options.seeds)]
    for deal in range(options.photographs):
        worlds += photograph_worlds(options.work, seed=options.first_deal + deal)
    for world in worlds:
        result = try_world(world)
        if result is None:
            print(f"{world.name}: nothing forecast")
            continue
        print(result, "" if result.is_within else "OUTSIDE", flush=True)
        place = "photographs" if world.name.startswith("photographs") else "planted"
        help_words = "labels can help" if result.can_help else "labels cannot help"
        groups.setdefault(place, []).append(result)
        groups.setdefault(f"{place}, {help_words}", []).append(result)
        groups.setdefault(f"{place}, {world.name.rsplit(', ', 1)[1]}", []).append(result)
    print(
        "| worlds | n | within | forecast | measured | mean error | width | elsewhere, forecast | elsewhere, measured "
        "| wanted | labelled | advised |"
    )
    print("|---" * 12 + "|")
    for title, results in groups.items():
        print(summary(title, results))


if __name__ == "__main__":
    main()
