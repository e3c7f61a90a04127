import numpy as np
import pytest

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.project.collective import FamilyRequest, repair_family


@pytest.fixture(scope="module")
def pooled(family):
    return repair_family(family)


@pytest.fixture(scope="module")
def from_one(family):
    return repair_family(family[:2], FamilyRequest(kind=2, source="small"))


def test_repair_family__one_set_from_all_models(pooled):
    repair = pooled.repair
    assert (repair.kind, repair.source, repair.method) == (1, None, "slice-balanced")
    assert [model.name for model in repair.models] == ["small", "large", "blunt"]
    assert len(pooled.repair_set.sample_ids) == repair.n_in_set
    assert pooled.repair_set.weights.mean() == pytest.approx(1.0)
    assert pooled.repair_set.weights.std() > 0.1
    assert set(pooled.heads) == set(pooled.class_names) == {"small", "large", "blunt"}


def test_repair_family__beats_its_random_twin_and_keeps_most_of_the_own_repairs(pooled):
    repair = pooled.repair
    assert repair.shared.total >= 15
    assert repair.shared.interval.low > repair.shared_random.value
    for model in repair.models[:2]:
        test = model.figures[0]
        assert test.collective.count > test.before.count
        assert test.resolved_collective.count > test.resolved_random.count
        assert test.clean_collective.value > 0.9
        assert test.relative_accuracy == pytest.approx(
            test.collective.count / test.individual.count
        )


def test_repair_family__measured_on_test_seed_and_held_out(pooled):
    names = [figures.measured_on.name for figures in pooled.repair.models[0].figures]
    assert names == ["test samples", "validation, discovery half", "validation, confirmation half"]
    totals = {model.figures[0].before.total for model in pooled.repair.models}
    assert totals == {pooled.repair.n_samples}
    assert [arm.arm for arm in pooled.repair.models[0].arms] == [
        "individual",
        "collective",
        "random",
    ]
    assert [arm.is_baseline for arm in pooled.repair.models[0].arms] == [False, False, True]


def test_repair_family__overlap_of_failures(pooled):
    overlaps = np.array(pooled.repair.overlaps)
    assert np.diag(overlaps).tolist() == [1.0, 1.0, 1.0]
    assert np.array_equal(overlaps, overlaps.T)
    assert 0.2 < overlaps[0, 1] < 1.0


def test_repair_family__a_model_without_slices_is_repaired_with_the_others_set(pooled):
    blunt = pooled.repair.models[2]
    assert blunt.n_slices == 0
    assert blunt.notes == (
        "No slice of this model was confirmed; the model's own repair is retraining alone.",
    )
    assert blunt.n_collective == pooled.repair.n_in_set


def test_repair_family__same_answer_again(family, from_one):
    again = repair_family(family[:2], FamilyRequest(kind=2, source="small"))
    assert again.repair == from_one.repair


def test_repair_family__set_of_one_model(from_one):
    small, large = from_one.repair.models
    assert from_one.repair.source == "small"
    assert small.figures[0].individual == small.figures[0].collective
    assert small.notes == ("The set is this model's own, so that its two repairs are the same.",)
    assert (small.figures[0].shared.value, from_one.repair.shared) == (1.0, large.figures[0].shared)
    assert large.figures[0].individual != large.figures[0].collective


def test_repair_family__nothing_is_trained_on_that_is_measured(family, from_one):
    dataset = family[0].samples().dataset
    measured = set(dataset.sample_ids(dataset.rows_of(Split.TEST, Split.VALIDATION)))
    assert not measured & set(from_one.repair_set.sample_ids)


def test_repair_family__one_project_or_the_same_twice(family):
    with pytest.raises(ConfigError, match="two or more"):
        repair_family(family[:1])
    with pytest.raises(ConfigError, match="different names"):
        repair_family([family[0], family[0]])


def test_repair_family__options_that_do_not_go_together(family):
    with pytest.raises(ConfigError, match="for --type 2"):
        repair_family(family, FamilyRequest(kind=1, source="small"))
    with pytest.raises(ConfigError, match="names none of the projects"):
        repair_family(family, FamilyRequest(kind=2, source="elsewhere"))
    with pytest.raises(ConfigError, match="no repairer called 'slice-ballanced'"):
        repair_family(family, FamilyRequest(method="slice-ballanced"))


def test_repair_family__no_failures_to_make_a_set_from(family):
    with pytest.raises(NotEnoughDataError, match="nothing to make a repair set from in blunt"):
        repair_family(family, FamilyRequest(kind=2, source="blunt"))
