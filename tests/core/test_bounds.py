from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from weakspot.core.bounds import (
    Bounds,
    Count,
    Fraction,
    Level,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveFraction,
    broken_rule,
    check_bounds,
)
from weakspot.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Settings:
    n: Count = 2
    share: Fraction = 0.5
    parts: Annotated[int, Bounds(ge=2)] | Literal["auto"] = "auto"
    least: Positive | None = None
    costs: tuple[Positive, ...] = (1.0,)
    free: str = ""

    def __post_init__(self):
        problems = ["free must not be 'x'"] if self.free == "x" else []
        check_bounds(self, where="part", problems=problems)


@pytest.mark.parametrize(
    ("hint", "good", "bad", "rule"),
    [
        (Count, 1, 0, "be at least 1"),
        (Count, np.int64(3), -1, "be at least 1"),
        (Count, 1, 1.5, "be a whole number and be at least 1"),
        (Count, 1, True, "be a whole number and be at least 1"),
        (NonNegativeInt, 0, -1, "be at least 0"),
        (NonNegative, 0, -0.1, "be at least 0"),
        (Positive, 1e-9, 0, "be above 0"),
        (Positive, np.float32(2), float("inf"), "be above 0"),
        (Fraction, 0, 1.01, "lie in [0, 1]"),
        (Fraction, 1, float("nan"), "lie in [0, 1]"),
        (Fraction, 1, "half", "be a number and lie in [0, 1]"),
        (PositiveFraction, 1, 0, "lie in (0, 1]"),
        (Level, 0.5, 1, "lie in (0, 1)"),
        (Level, 0.5, 0, "lie in (0, 1)"),
        (Annotated[float, Bounds(ge=0, lt=1)], 0, 1, "lie in [0, 1)"),
        (Annotated[int, Bounds(le=3)], 3, 4, "be at most 3"),
        (Annotated[int, Bounds(lt=3)], 2, 3, "be below 3"),
        (Annotated[float, Bounds()], 2, float("inf"), "be a finite number"),
        (bool, False, 1, "be true or false"),
        (Literal["a", "b"], "a", "c", "be one of ['a', 'b']"),
        (Count | None, None, 0, "be at least 1 or be None"),
        (Count | str, "x", 0, "be at least 1 or be of type str"),
        (tuple[Count, ...], (1, 2), (1, 0), "each be at least 1"),
    ],
)
def test_broken_rule__fits_and_does_not(hint, good, bad, rule):
    assert broken_rule(good, hint) == ""
    assert broken_rule(bad, hint) == rule


def test_broken_rule__nothing_is_demanded_without_bounds():
    assert broken_rule("x", int) == ""
    assert broken_rule("x", Annotated[int, "a remark"]) == ""


def test_check_bounds__accepts():
    Settings(n=1, share=0, parts=2, least=3.0, costs=(0.1, 10))


def test_check_bounds__one_problem_says_what_was_given_and_the_default():
    with pytest.raises(
        ConfigError,
        match=r"^The setting part\.n must be at least 1\. Given: 0\. To do: Leave it out for 2\.$",
    ):
        Settings(n=0)


def test_check_bounds__all_problems_at_once():
    with pytest.raises(ConfigError) as raised:
        Settings(n=0, share=2, parts="many", free="x")
    said = str(raised.value)
    assert "1. The setting part.n must be at least 1. Given: 0." in said
    assert "2. The setting part.share must lie in [0, 1]. Given: 2." in said
    assert (
        "3. The setting part.parts must be a whole number and be at least 2 or be one of ['auto']"
        in said
    )
    assert "4. free must not be 'x'" in said
    assert "Where: part." in said


def test_check_bounds__another_problem_alone():
    with pytest.raises(ConfigError, match=r"A setting cannot be used:\n  1\. free must not be 'x'"):
        Settings(free="x")
