import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.failures import class_problems
from weakspot_lab.bench.worlds import EXACT, KINDS, NOISY, planted_problem


def _rates(problem, truth):
    rows = np.concatenate([problem.discovery.rows, problem.confirmation.rows])
    dataset = problem.samples.dataset
    rows = rows[dataset.labels[rows] == dataset.class_code(truth.class_name)]
    failed = dataset.predictions[rows] != dataset.labels[rows]
    return failed[truth.inside[rows]].mean(), failed[~truth.inside[rows]].mean()


@pytest.mark.parametrize("number", [0, 3, 7])
@pytest.mark.parametrize("kind", ["rare", "correlation", "several"])
def test_planted_problem__the_classifier_fails_inside(kind, number):
    problem = planted_problem(kind, number, n_samples=2000)
    for truth in problem.truths:
        inside, outside = _rates(problem, truth)
        assert inside > outside + 0.1, (truth.class_name, truth.words)


def test_planted_problem__numbers_change_what_is_planted():
    found = {
        planted_problem("rare", number, n_samples=200).truths[0].words[0] for number in range(4)
    }
    assert len(found) == 4


def test_planted_problem__the_truth_is_hidden_from_methods():
    for kind in KINDS:
        assert planted_problem(kind, 0, n_samples=200).samples.dataset.metadata_names == ()


def test_planted_problem__halves_are_disjoint_and_labelled():
    problem = planted_problem("several", 1, n_samples=400)
    assert not set(problem.discovery.rows) & set(problem.confirmation.rows)
    assert (
        len(class_problems(problem.samples.dataset, problem.discovery.rows, problem.criterion)) == 4
    )
    assert len(problem.truths) == 3
    assert problem.truths[0].class_name == problem.truths[1].class_name


def test_planted_problem__the_null_has_no_truth_and_noise_blurs_embeddings():
    assert planted_problem("null", 0, n_samples=200).truths == ()
    exact, noisy = (
        planted_problem("rare", 0, n_samples=200, source=source) for source in (EXACT, NOISY)
    )
    assert not np.allclose(exact.samples.embeddings("clip"), noisy.samples.embeddings("clip"))


def test_planted_problem__unknown_names_are_refused():
    with pytest.raises(ConfigError, match="no such planted problem"):
        planted_problem("odd", 0)
