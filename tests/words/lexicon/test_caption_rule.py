import numpy as np
import pytest
from pydantic import TypeAdapter

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.rules import BUILT_IN_RULES, MembershipRule, rule_class
from weakspot.core.samples import SampleSet
from weakspot.words.caption_rule import CaptionRule


def _samples(captions, column="caption"):
    dataset = dataset_from_columns(
        class_names=["dog"], labels=[0] * len(captions), metadata={column: captions}
    )
    return SampleSet(dataset=dataset, rows=np.arange(len(captions)))


def test_caption_rule__members_are_those_who_say_it__unknown_without_caption():
    samples = _samples(["dogs in the rain", "", "a dog", "heavy rains"])
    rule = CaptionRule(words="rain")
    assert rule.members(samples, samples.rows).tolist() == [True, False, False, True]
    assert rule.is_known(samples, samples.rows).tolist() == [True, False, True, True]
    assert np.array_equal(rule.scores(samples, samples.rows), [1, np.nan, 0, 1], equal_nan=True)
    assert rule.columns == {"caption"}


def test_caption_rule__stored_and_read_by_a_process_that_does_not_know_it_yet(monkeypatch):
    rule = CaptionRule(column="text", words="wet road")
    stored = TypeAdapter(MembershipRule).dump_json(rule)
    monkeypatch.delitem(BUILT_IN_RULES, "caption")
    assert rule_class("caption") is CaptionRule
    assert TypeAdapter(MembershipRule).validate_json(stored) == rule


@pytest.mark.parametrize(
    ("captions", "column", "said"),
    [([1, 2], "caption", "holds no captions"), (["a"], "text", "no metadata column 'caption'")],
)
def test_caption_rule__no_captions__says_so(captions, column, said):
    samples = _samples(captions, column)
    with pytest.raises(DataError, match=said):
        CaptionRule(words="rain").members(samples, samples.rows)
