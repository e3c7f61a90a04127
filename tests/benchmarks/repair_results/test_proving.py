from repair_results.proving import TRUE, given_slices

from weakspot.core.evidence import Verdict
from weakspot.run.settings import Settings


def test_given_slices__the_truth_comes_with_evidence(correlation, true_slices):
    assert true_slices.source == TRUE
    assert true_slices.slices == correlation.truths
    assert [entry.slice_id for entry in true_slices.evidence] == [
        found.slice_id for found in correlation.truths
    ]
    assert all(
        entry.measured_on.n_samples == len(correlation.confirmation)
        for entry in true_slices.evidence
    )


def test_given_slices__found_ones_are_confirmed_and_saw_the_discovery_half_only(correlation):
    given = given_slices(correlation, "attributes", Settings())
    assert given.slices
    assert all(entry.verdict is Verdict.CONFIRMED for entry in given.evidence)
    assert {found.found_on.digest for found in given.slices} == {correlation.discovery.digest()}
    assert {entry.measured_on.digest for entry in given.evidence} == {
        correlation.confirmation.digest()
    }
    assert all(
        found.method == "attributes" and "true kind" not in found.rule.columns
        for found in given.slices
    )
