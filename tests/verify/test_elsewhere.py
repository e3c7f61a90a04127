import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.verify.holdout import HoldoutVerifier, measured_elsewhere, with_elsewhere

TOP_1 = FailureCriterion()


def _world(make_samples):
    """Twelve apples each for discovery, confirmation and test; six marked ones fail, in the test split four of them."""
    marks = ([True] * 6 + [False] * 6) * 3
    wrong = ([True] * 6 + [False] * 6) * 2 + [True] * 4 + [False] * 8
    samples = make_samples(marks, wrong, splits=["validation"] * 24 + ["test"] * 12)
    parts = [samples.only(np.arange(first, first + 12)) for first in (0, 12)]
    return parts[0], parts[1], samples.only(samples.dataset.rows_of(Split.TEST))


def test_measured_elsewhere__counts_rates_and_intervals(make_samples, marked):
    discovery, _, test = _world(make_samples)
    found = marked(discovery)
    (measured,) = measured_elsewhere([found], {"test split": test}, TOP_1)[found.slice_id]
    assert (measured.measured_on.name, measured.measured_on.n_samples) == ("test split", 12)
    assert (measured.inside.count, measured.inside.total) == (4, 6)
    assert (measured.outside.count, measured.outside.total) == (0, 6)
    assert measured.gap == measured.inside.value == 4 / 6
    assert measured.inside.interval.low < 4 / 6 < measured.inside.interval.high


def test_measured_elsewhere__sets_without_samples_are_passed_over(make_samples, marked):
    discovery, _, test = _world(make_samples)
    found = marked(discovery)
    assert measured_elsewhere([found], {"pool": test.only(test.rows[:0])}, TOP_1) == {
        found.slice_id: ()
    }
    assert measured_elsewhere([], {"test": test}, TOP_1) == {}
    (measured,) = measured_elsewhere([marked(discovery, "pear")], {"test": test}, TOP_1).values()
    assert measured[0].inside.total == 0


def test_measured_elsewhere__images_that_were_seen_are_left_out(make_samples, marked):
    hashes = [f"{place:02d}" for place in range(24)]
    hashes[12:14] = hashes[0:2]
    samples = make_samples([True] * 24, [True] * 24, hashes=hashes)
    seen, other = samples.only(samples.rows[:12]), samples.only(samples.rows[12:])
    found = marked(seen)
    (measured,) = measured_elsewhere([found], {"pool": other}, TOP_1, seen=seen)[found.slice_id]
    assert (measured.inside.total, measured.measured_on.n_samples) == (10, 10)


def test_with_elsewhere__only_confirmed_slices(make_samples, marked):
    discovery, confirmation, test = _world(make_samples)
    slices = [marked(discovery), marked(discovery, threshold=0.9999)]
    evidence = HoldoutVerifier().verify(
        slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    assert [entry.verdict for entry in evidence] == [Verdict.CONFIRMED, Verdict.TOO_FEW]
    full = with_elsewhere(slices, evidence, {"test": test}, TOP_1)
    assert [len(entry.elsewhere) for entry in full] == [1, 0]
    assert full[0].verdict is Verdict.CONFIRMED
