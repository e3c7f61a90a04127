import pytest

from weakspot.core.evidence import Share
from weakspot.core.failures import class_problems
from weakspot.project.collective import Family
from weakspot.project.refine.prompts import shared_failures
from weakspot.project.refine.training import RefineRequest, subjects_of

REQUEST = RefineRequest(kinds=("background",))


@pytest.fixture(scope="module")
def found(models):
    return shared_failures(models, subjects_of(models), REQUEST)


def _failed(subject, samples):
    problems = class_problems(subject.dataset, samples.rows, subject.bench.criterion)
    return {
        name
        for problem in problems
        for name in subject.dataset.sample_ids(problem.rows[problem.failed])
    }


def test_shared_failures__are_those_of_every_model(models, found):
    subjects = subjects_of(models)
    tested = [_failed(subject, subject.test) for subject in subjects]
    expected = Share.of(len(set.intersection(*tested)), len(set.union(*tested)))
    assert found.test == expected
    assert 0 < found.test.count < min(len(one) for one in tested)
    seeds = [_failed(subject, subject.seed) for subject in subjects]
    assert found.n_seed == len(set.intersection(*seeds)) > 0


def test_shared_failures__show_the_planted_values_first(family_world, found):
    """One class fails where the value is that of its rival, and the rival where it is that of the class."""
    problem = family_world.problem
    first = " ".join(one.value for one in found.values[:2])
    assert problem.value in first
    assert problem.usual_value in first
    assert {one.kind for one in found.values} == {"background"}
    assert sum(one.share.count for one in found.values) <= found.n_seed
    assert {one.share.total for one in found.values} == {found.n_seed}
    counts = [one.share.count for one in found.values]
    assert counts == sorted(counts, reverse=True)


def test_shared_failures__of_one_model_are_all_of_its_own(models):
    alone = Family.of(models.members[:1])
    found = shared_failures(alone, subjects_of(alone), REQUEST)
    assert found.test.count == found.test.total > 0
