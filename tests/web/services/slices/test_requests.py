import itertools

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.rules import AllOfRule, AnyOfRule, ColumnRule, IdRule
from weakspot.core.samples import SampleSet
from weakspot.web.services.slice_editing import all_of, any_of

COLUMNS = list(itertools.product([False, True], repeat=4))
SAMPLES = SampleSet(
    dataset=dataset_from_columns(
        class_names=["a"],
        labels=[0] * 16,
        metadata={name: [row[place] for row in COLUMNS] for place, name in enumerate("abcd")},
    ),
    rows=np.arange(16),
)
A, B, C, D = (ColumnRule(column=name, values=(True,)) for name in "abcd")


def _members(rule):
    return rule.members(SAMPLES, SAMPLES.rows)


@pytest.mark.parametrize(
    "first", [A, AllOfRule(rules=(A, B)), AnyOfRule(rules=(A, AllOfRule(rules=(B, C))))]
)
@pytest.mark.parametrize("second", [D, AllOfRule(rules=(B, D)), AnyOfRule(rules=(C, D))])
def test_combining__any_two_rules__has_the_members_of_either_or_both(first, second):
    assert _members(any_of(first, second)).tolist() == (_members(first) | _members(second)).tolist()
    assert _members(all_of(first, second)).tolist() == (_members(first) & _members(second)).tolist()


def test_combining__a_rule_with_itself__changes_nothing():
    assert any_of(A, A) == A
    assert all_of(A, A) == A
    assert all_of(AllOfRule(rules=(A, B)), B) == AllOfRule(rules=(A, B))


def test_combining__without_end__is_refused():
    many = AnyOfRule(rules=tuple(IdRule(sample_ids=(str(number),)) for number in range(40)))
    with pytest.raises(DataError, match="too many"):
        all_of(many, AnyOfRule(rules=(A, B)))
