import numpy as np

from weakspot.project.comparison import (
    SlicePredictions,
    compare_failures,
    comparison_page,
    failure_iou,
    families,
)


def _comparison():
    inside = (True,) * 20 + (False,) * 20
    weak = (True,) * 15 + (False,) * 5 + (True,) * 2 + (False,) * 18
    also = (True,) * 14 + (False,) * 24 + (True,) * 2
    failed = {"weak <model>": np.array(weak), "other": np.array(also)}
    predictions = SlicePredictions(
        slice_id="s",
        title="disc: green",
        found_on="weak <model>",
        inside=inside,
        failed={"weak <model>": weak, "other": also},
    )
    return compare_failures(failed, [predictions], notes=["A note."])


def test_compared__a_slice_that_holds_everywhere_is_shared():
    found = _comparison()
    assert found.shared == ("s",)
    assert found.failure_rates == {"weak <model>": 17 / 40, "other": 16 / 40}
    assert found.overlaps[0][1] == 14 / 19
    assert found.families == (("weak <model>", "other"),)


def test_comparison_page__escapes_names_and_needs_no_network():
    page = comparison_page(_comparison())
    assert "weak &lt;model&gt;" in page
    assert "weak <model>" not in page
    assert "disc: green" in page
    assert "A note." in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_comparison_page__says_when_there_is_no_slice():
    page = comparison_page(
        compare_failures({"one": np.array([True, False]), "two": np.array([False, False])}, [])
    )
    assert "None of the classifiers has a confirmed slice" in page
    assert "no slice on which two classifiers could be compared" in page


def test_failure_iou__counts_by_hand():
    first = np.array([True, True, True, False, False])
    second = np.array([False, True, True, True, False])
    third = np.zeros(5, dtype=bool)
    found = failure_iou([first, second, third])
    assert found.tolist() == [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_families__groups_by_mean_overlap():
    overlaps = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]])
    assert families(("a", "b", "c"), overlaps) == (("a", "b"), ("c",))
    assert families(("a", "b", "c"), overlaps, least=0.1) == (("a", "b", "c"),)
    assert families(("a",), np.ones((1, 1))) == (("a",),)
