from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.stage_clock import RUN_TIME, classifier_facts, new_record


def record(after=()):
    return new_record(Settings(), inputs={}, criterion="wrong", after=after)


def test_new_record__clock_set_back__still_sorts_behind_earlier_runs():
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    earlier = (f"{tomorrow - timedelta(days=9):{RUN_TIME}}-ffffff", f"{tomorrow:{RUN_TIME}}-ffffff")
    found = record(earlier)
    assert sorted([*earlier, found.run_id])[-1] == found.run_id
    assert record([*earlier, found.run_id]).run_id > found.run_id


@pytest.mark.parametrize("after", [(), ("by-hand",), ("20000101T000000.000000-abcdef",)])
def test_new_record__nothing_newer__takes_the_time_of_the_clock(after):
    before = datetime.now(UTC)
    found = datetime.strptime(record(after).run_id.rpartition("-")[0], RUN_TIME).replace(tzinfo=UTC)
    assert before <= found <= datetime.now(UTC)


def test_classifier_facts__what_a_class_is_mostly_taken_for():
    said = [0, 1, 1, 1, 2, 2, 3, 4, 1, 2]
    dataset = dataset_from_columns(
        class_names=list("abcde"), labels=[0] * 8 + [1, 2], predictions=np.array(said)
    )
    facts = classifier_facts(dataset, class_problems(dataset, np.arange(10), FailureCriterion()))
    assert facts.per_class == {"a": (8, 7), "b": (1, 0), "c": (1, 0)}
    assert facts.taken_for == {"a": (("b", 3), ("c", 2), ("d", 1))}


def test_classifier_facts__multi_label__nothing_is_taken_for_another():
    truth = np.array([[True, False], [True, True]])
    dataset = dataset_from_columns(
        class_names=["a", "b"], label_lists=[[0], [0, 1]], predicted_matrix=~truth
    )
    facts = classifier_facts(dataset, class_problems(dataset, np.arange(2), FailureCriterion()))
    assert facts.taken_for == {}
    assert facts.n_failed == 4
