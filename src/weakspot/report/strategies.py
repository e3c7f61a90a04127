"""Several strategies of repair in one table: what each did to slices, to the rest of their classes and overall."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weakspot.core.evidence import GivenGroups, Interval, Spread
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairResult
from weakspot.core.statistics import adjusted_p_values
from weakspot.report.repairs import fallen_groups, labelling_sentence, main_arm
from weakspot.report.wording import CERTAIN, arm_name

FEWEST = 2


@dataclass(frozen=True, kw_only=True)
class Move:
    """The change of accuracy over one or several groups.

    Groups may overlap, and by how much is not known here. So the interval is the mean of the groups' own intervals, which no
    overlap can make too narrow, and the p-value is the smallest of theirs times their number.

    Args:
        change: accuracy after minus accuracy before; larger is better.
        interval: of the change; paired.
        gained: wrong before, right after.
        lost: right before, wrong after.
        n_samples: samples of all groups; one in two groups counts twice.
        p_value: the exact test, of the groups that moved the same way as all together; over all that these samples measured.
    """

    change: float
    interval: Interval
    gained: int
    lost: int
    n_samples: int
    p_value: float

    @classmethod
    def over(cls, changes: Sequence[GroupChange]) -> "Move | None":
        """Return the change over all samples of the groups, None if there are none."""
        groups = [one for one in changes if one.n_samples]
        n_samples = sum(one.n_samples for one in groups)
        if not n_samples:
            return None
        gained, lost = sum(one.gained for one in groups), sum(one.lost for one in groups)
        bounds = [one.interval_of_change for one in groups]
        low, high = (
            sum(
                one.n_samples * getattr(bound, end)
                for one, bound in zip(groups, bounds, strict=True)
            )
            for end in ("low", "high")
        )
        alike = [one.chance for one in groups if (one.gained - one.lost) * (gained - lost) > 0]
        return cls(
            change=(gained - lost) / n_samples,
            interval=Interval(low=low / n_samples, high=high / n_samples),
            gained=gained,
            lost=lost,
            n_samples=n_samples,
            p_value=min([1.0, *(len(groups) * p_value for p_value in alike)]),
        )

    @property
    def is_certain(self) -> bool:
        return self.p_value <= CERTAIN and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True, kw_only=True)
class StrategyRow:
    """One strategy or baseline of a comparison.

    Args:
        strategy: registered name.
        is_baseline: whether it only stands there for comparison.
        is_chosen: whether it is the strategy that the run repairs with.
        arm: its figures, None while labels are awaited.
        on_slices: change over all slices.
        on_rest: change over the rest of their classes.
        overall: change over all samples.
        rival: the best of its own baselines on the slices, and the change there.
        got_worse: groups that fell by more than chance.
        n_lower: groups that fell at all.
        note: why there are no figures.
    """

    strategy: str
    is_baseline: bool
    is_chosen: bool = False
    arm: RepairArm | None = None
    on_slices: Move | None = None
    on_rest: Move | None = None
    overall: Move | None = None
    rival: tuple[str, Move] | None = None
    got_worse: tuple[str, ...] = ()
    n_lower: int = 0
    note: str = ""

    @property
    def title(self) -> str:
        return arm_name(self.strategy)


@dataclass(frozen=True, kw_only=True)
class StrategyComparison:
    """Strategies side by side, all measured on the same samples.

    Args:
        rows: the chosen strategy, the others by what they did to slices, then baselines.
        measured_on: the data.
        n_samples: how many.
        n_slices: how many slices were repaired.
    """

    rows: tuple[StrategyRow, ...]
    measured_on: str
    n_samples: int
    n_slices: int

    @property
    def given(self) -> tuple[tuple[str, GivenGroups, Spread], ...]:
        """Return title and figures of the rows that were measured over groups that somebody named in a column."""
        return tuple(
            (row.title, row.arm.given, row.arm.given.spread)
            for row in self.rows
            if row.arm is not None
            and row.arm.given is not None
            and row.arm.given.spread is not None
        )

    @property
    def points(self) -> tuple[StrategyRow, ...]:
        return tuple(
            row for row in self.rows if row.on_slices is not None and row.overall is not None
        )


def compare_strategies(predictions: Sequence[RepairResult]) -> StrategyComparison | None:
    """Return strategies side by side, None if there are not several; the first result is the chosen one."""
    if len(predictions) < FEWEST:
        return None
    strategies = [
        _strategy(result, is_chosen=number == 0) for number, result in enumerate(predictions)
    ]
    ordered = strategies[:1] + sorted(strategies[1:], key=_by_gain)
    baselines = sorted(_baselines(predictions, {row.strategy for row in strategies}), key=_by_gain)
    rows = (
        [row for row in ordered if not row.is_baseline]
        + [row for row in ordered if row.is_baseline]
        + baselines
    )
    return StrategyComparison(
        rows=_over_arms(rows),
        measured_on=predictions[0].measured_on.name,
        n_samples=predictions[0].measured_on.n_samples,
        n_slices=len(predictions[0].plan.slice_ids),
    )


def _over_arms(rows: Sequence[StrategyRow]) -> tuple[StrategyRow, ...]:
    """Return rows whose p-values allow for all arms of the table (Holm), one column at a time: whoever compares looks for the best.

    Where the ledger gave them, they allow for that already.
    """
    counted = [change for row in rows if row.arm is not None for change in row.arm.changes]
    if any(change.q_value is not None for change in counted):
        return tuple(rows)
    adjusted = list(rows)
    for column in ("on_slices", "on_rest", "overall"):
        places = [place for place, row in enumerate(rows) if getattr(row, column) is not None]
        moves: list[Move] = [getattr(rows[place], column) for place in places]
        p_values = adjusted_p_values([move.p_value for move in moves], correction="fwer").tolist()
        for place, move, p_value in zip(places, moves, p_values, strict=True):
            changed: dict[str, Any] = {column: replace(move, p_value=p_value)}
            adjusted[place] = replace(adjusted[place], **changed)
    return tuple(adjusted)


def _by_gain(row: StrategyRow) -> tuple[float, str]:
    return (float("inf") if row.on_slices is None else -row.on_slices.change, row.strategy)


def _strategy(result: RepairResult, *, is_chosen: bool) -> StrategyRow:
    arm = main_arm(result)
    if arm is None:
        waits = "" if result.labelling is None else labelling_sentence(result.labelling)
        note = " ".join([*filter(None, [waits]), *result.notes]) or "Nothing was measured."
        return StrategyRow(
            strategy=result.plan.repairer, is_baseline=False, is_chosen=is_chosen, note=note
        )
    others = [other for other in result.arms if other is not arm and not other.is_reference]
    rivals = [(other.arm, move) for other in others if (move := _on(other, GroupKind.SLICE))]
    rival = max(rivals, key=lambda pair: pair[1].change, default=None)
    return _row(arm, is_chosen=is_chosen, rival=rival)


def _baselines(predictions: Sequence[RepairResult], listed: set[str]) -> Iterator[StrategyRow]:
    """Yield the baselines of the chosen strategy, and those that only others have; matched controls of others are their rivals."""
    for result in predictions:
        for arm in result.arms:
            if arm.is_baseline and arm.arm not in listed:
                listed = listed | {arm.arm}
                yield _row(arm)


def _row(
    arm: RepairArm, *, is_chosen: bool = False, rival: tuple[str, Move] | None = None
) -> StrategyRow:
    fallen = fallen_groups(arm)
    return StrategyRow(
        strategy=arm.arm,
        is_baseline=arm.is_baseline,
        is_chosen=is_chosen,
        arm=arm,
        on_slices=_on(arm, GroupKind.SLICE),
        on_rest=_on(arm, GroupKind.COMPLEMENT),
        overall=_on(arm, GroupKind.OVERALL),
        rival=rival,
        got_worse=tuple(one.group for one in fallen if one.chance <= CERTAIN),
        n_lower=len(fallen),
    )


def _on(arm: RepairArm, kind: GroupKind) -> Move | None:
    return Move.over([change for change in arm.changes if change.kind is kind])
