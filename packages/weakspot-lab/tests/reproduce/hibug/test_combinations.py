import numpy as np
import pyarrow as pa

from weakspot.testing.planted import nothing, plant
from weakspot_lab.reproduce.hibug.combinations import Combinations, worst_combinations


def test_of__one_slice_a_combination_of_values():
    dataset = plant(nothing(), 4, classes=("disc", "star"), seed=1).dataset
    kept = [name for name in dataset.table.column_names if not name.startswith("meta.")]
    bare = type(dataset)(
        class_names=dataset.class_names, task=dataset.task, table=dataset.table.select(kept)
    )
    told = bare.with_metadata(
        {"hue": pa.array(["a", "a", "b", None]), "size": pa.array(["s", "s", "s", "s"])}
    )
    found = Combinations.of(told)
    assert found.columns == ("hue", "size")
    assert found.values == (("a", "s"), ("b", "s"), ("None", "s"))
    assert found.numbers.tolist() == [0, 0, 1, 2]


def test_accuracy__by_combination_and_those_never_seen_are_no_error_slices():
    found = Combinations(
        columns=("hue",), values=(("a",), ("b",), ("c",)), numbers=np.array([0, 0, 1, 1])
    )
    is_right = np.array([True, False, True, True])
    rows = np.arange(4)
    accuracy = found.accuracy(rows, is_right)
    assert accuracy.tolist()[:2] == [0.5, 1.0]
    assert np.isnan(accuracy[2])
    assert found.failures(rows, is_right).tolist() == [1, 0, 0]
    assert found.at_most(accuracy, 0.5).tolist() == [True, False, False]
    assert found.at_most(accuracy, 1.0).tolist() == [True, True, False]


def test_worst_combinations__worst_first_until_they_hold_enough_failures():
    accuracy = np.array([0.5, 0.1, 0.9, np.nan])
    failures = np.array([5, 3, 2, 0])
    assert worst_combinations(accuracy, failures, beta=0.3) == (1,)
    assert worst_combinations(accuracy, failures, beta=0.8) == (1, 0)
    assert worst_combinations(accuracy, failures, beta=0.9) == (1, 0, 2)
    assert worst_combinations(accuracy, np.zeros(4, dtype=int), beta=0.9) == ()
