"""The cells of the audit: a kind of world, a question, and what is promised of the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from audit.gate import GatePlan, judge_release, judge_same, make_models
from audit.growing import GrowingPlan, ask_for_more, make_generator
from audit.questions import (
    Answer,
    ask_one_by_one,
    find,
    find_with_seeds,
    look_then_prove,
)
from audit.worlds import WorldPlan, make_world


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table.

    Args:
        plan: the worlds.
        ask: the question.
        make: makes the world of a seed.
        most_false: share of sets with any false finding that is allowed.
        least_found: share of sets in which the planted slice must be confirmed; None where nothing is promised.
    """

    plan: WorldPlan | GrowingPlan | GatePlan
    ask: Callable[[Any], Answer] = find
    make: Callable[[Any, int], object] = make_world
    most_false: float = 0.05
    least_found: float | None = None


NULL = WorldPlan()
SMALL = WorldPlan(n_classes=2, n_evaluation=200, n_training=40)


def _planted(size: int, gap: float, *, column: bool) -> WorldPlan:
    return WorldPlan(slice_size=size, gap=gap, is_column=column)


GOALS = {(50, 0.2): 0.6, (50, 0.3): 0.85, (100, 0.2): 0.8, (20, 0.3): 0.4}

CHURN = (0.025, 0.05)

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
    "null: more and more images of a caption": Cell(
        plan=GrowingPlan(), ask=ask_for_more, make=make_generator
    ),
    "null: more and more images of 40 objects": Cell(
        plan=GrowingPlan(n_objects=40), ask=ask_for_more, make=make_generator
    ),
    **{
        f"gate, nothing fell: {100 * churn:g} % change either way": Cell(
            plan=GatePlan(fall=0.0, churn=churn), ask=judge_same, make=make_models
        )
        for churn in CHURN
    },
    **{
        f"gate, 10 points on 100: {100 * churn:g} % change either way": Cell(
            plan=GatePlan(churn=churn), ask=judge_release, make=make_models, least_found=0.6
        )
        for churn in CHURN
    },
    **{
        f"{'a column' if column else 'a kind'}: {size} of 300, gap {round(100 * gap)}": Cell(
            plan=_planted(size, gap, column=column), least_found=goal
        )
        for (size, gap), goal in GOALS.items()
        for column in (False, True)
    },
    "a kind: 50 of 300, gap 20, right on all of training": Cell(
        plan=WorldPlan(slice_size=50, gap=0.2, is_learnt=True)
    ),
    **{
        f"halves, {'a column' if column else 'a kind'}: {size} of 300, gap {round(100 * gap)}": Cell(
            plan=_planted(size, gap, column=column), ask=partial(find, verify={"scheme": "halves"})
        )
        for size, gap in GOALS
        for column in (False, True)
    },
}
