import numpy as np
from repair_results.case import HIDDEN, TRUTH, repair_case

from weakspot.core.dataset import Split
from weakspot_lab.bench.worlds import planted_problem


def test_repair_case__parts_are_disjoint_and_cover_everything(correlation):
    parts = [
        part.rows
        for part in (
            correlation.training,
            correlation.validation,
            correlation.pool,
            correlation.test,
        )
    ]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) == len(correlation.samples.dataset)
    halves = np.concatenate([correlation.discovery.rows, correlation.confirmation.rows])
    assert np.sort(halves).tolist() == correlation.validation.rows.tolist()


def test_repair_case__methods_do_not_see_the_truth(correlation):
    assert TRUTH not in correlation.discovery.dataset.metadata_names
    assert TRUTH not in correlation.confirmation.dataset.metadata_names
    assert TRUTH in correlation.samples.dataset.metadata_names


def test_repair_case__true_slices_are_the_planted_ones():
    problem = planted_problem("correlation", 2, n_samples=600)
    dataset = problem.samples.dataset
    halves = np.concatenate([problem.discovery.rows, problem.confirmation.rows])
    fresh = problem.fresh.rows
    parts = {Split.VALIDATION: np.sort(halves), Split.POOL: fresh[:100], Split.TEST: fresh[100:]}
    case = repair_case(problem, {Split.TRAIN: dataset.rows_of(Split.TRAIN), **parts})
    for found, truth in zip(case.truths, problem.truths, strict=True):
        own = np.flatnonzero(dataset.labels == dataset.class_code(truth.class_name))
        assert found.members(case.samples, own).tolist() == np.flatnonzero(truth.inside).tolist()
    assert case.pool.rows.tolist() == fresh[:100].tolist()
    assert case.samples.dataset.metadata(TRUTH).to_pylist().count(HIDDEN) == sum(
        truth.inside.sum() for truth in problem.truths
    )
