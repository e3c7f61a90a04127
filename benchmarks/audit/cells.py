"""The cells of the audit: a kind of world, a question, and what is promised of the answer."""

from dataclasses import dataclass
from functools import partial

from audit.questions import (
    Question,
    ask_one_by_one,
    find,
    find_with_seeds,
    look_then_prove,
)
from audit.worlds import WorldPlan


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table.

    Args:
        plan: the worlds.
        ask: the question.
        most_false: share of sets with any false finding that is allowed.
        least_found: share of sets in which the planted slice must be confirmed; None where nothing is promised.
    """

    plan: WorldPlan
    ask: Question = find
    most_false: float = 0.05
    least_found: float | None = None


NULL = WorldPlan()
SMALL = WorldPlan(n_classes=2, n_evaluation=200, n_training=40)


def _planted(size: int, gap: float, *, column: bool) -> WorldPlan:
    return WorldPlan(slice_size=size, gap=gap, is_column=column)


GOALS = {(50, 0.2): 0.6, (50, 0.3): 0.85, (100, 0.2): 0.8, (20, 0.3): 0.4}

CELLS: dict[str, Cell] = {
    "null: independent": Cell(plan=NULL),
    "null: columns that tell the class": Cell(plan=WorldPlan(has_proxies=True)),
    "null: many rare values": Cell(plan=WorldPlan(is_tiny=True)),
    "null: unequal classes": Cell(plan=WorldPlan(is_imbalanced=True, n_evaluation=600)),
    "null: 2 images of an object, column": Cell(
        plan=WorldPlan(images_per_object=2, tells_objects=True)
    ),
    "null: 5 images of an object, column": Cell(
        plan=WorldPlan(images_per_object=5, tells_objects=True)
    ),
    "null: 2 nearly identical images": Cell(
        plan=WorldPlan(images_per_object=2, is_near_identical=True)
    ),
    "null: 5 nearly identical images": Cell(
        plan=WorldPlan(images_per_object=5, is_near_identical=True)
    ),
    "null: 30 phrases one by one": Cell(plan=SMALL, ask=partial(ask_one_by_one, n_phrases=30)),
    "null: best of 30 phrases proven": Cell(plan=SMALL, ask=partial(look_then_prove, n_phrases=30)),
    "null: 15 seeds": Cell(plan=SMALL, ask=partial(find_with_seeds, n_seeds=15)),
    **{
        f"{'a column' if column else 'a kind'}: {size} of 300, gap {round(100 * gap)}": Cell(
            plan=_planted(size, gap, column=column), least_found=goal
        )
        for (size, gap), goal in GOALS.items()
        for column in (False, True)
    },
    **{
        f"halves, {'a column' if column else 'a kind'}: {size} of 300, gap {round(100 * gap)}": Cell(
            plan=_planted(size, gap, column=column), ask=partial(find, verify={"scheme": "halves"})
        )
        for size, gap in GOALS
        for column in (False, True)
    },
}
