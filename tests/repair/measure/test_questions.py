from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.failures import ClassProblem
from weakspot.repair.measure import question_of
from weakspot.repair.spread import Result


@pytest.fixture
def result():
    flags = np.array([True, False, True, False])
    problem = ClassProblem(
        class_name="a",
        side=None,
        rows=np.arange(4),
        failed=~flags,
        confidence=np.ones(4, dtype=np.float32),
    )
    return Result(problem=problem, positions=np.arange(4), right_before=flags, right_after=~flags)


def test_question_of__same_members_before_and_after__same_question(result):
    first = question_of("d", [(result, np.array([True, True, False, False]))])
    assert first == question_of("d", [(replace(result), np.array([True, True, False, False]))])
    others = [
        question_of("other", [(result, np.array([True, True, False, False]))]),
        question_of("d", [(result, np.array([True, False, True, False]))]),
        question_of("d", [(result, None)]),
        question_of("d", [(replace(result, right_after=result.right_before), None)]),
    ]
    assert len({first, *others}) == 5
