import numpy as np
import pytest
from planted_refine.planted_worlds import PlantedImages

from weakspot.core.errors import ConfigError
from weakspot.project.collective import Family
from weakspot.project.refine.projects import family_lines
from weakspot.project.refine.refinement import HELD_OUT, SEED, refine_family
from weakspot.project.refine.training import RefineRequest, subjects_of

REQUEST = RefineRequest(kinds=("background",), debug_weight=0.2)


@pytest.fixture(scope="module")
def generated(family_world, features):
    return PlantedImages(world=family_world, models=features, habits="usual")


@pytest.fixture(scope="module")
def pooled(models, generated):
    return refine_family(models, generated, REQUEST)[0]


@pytest.fixture(scope="module")
def from_one(models, generated):
    return refine_family(models, generated, REQUEST, source="model 2")[0]


def test_refine_family__one_set_keeps_most_of_what_own_sets_resolve(pooled):
    assert (pooled.kind, pooled.source) == (1, None)
    assert pooled.shared.total >= 10
    assert pooled.shared.value >= 0.75
    assert pooled.relative >= 0.75
    assert pooled.shared_random.value < pooled.shared.value / 2


def test_refine_family__names_of_all_models_are_added_up(pooled, models):
    n_failures = sum(
        int((member.dataset.predictions[half.rows] != member.dataset.labels[half.rows]).sum())
        for member, half in zip(
            models.members, [one.seed for one in subjects_of(models)], strict=True
        )
    )
    by_class = {one.class_name: one.n_seed for one in pooled.names}
    assert 0.8 * n_failures < sum(by_class.values()) <= n_failures


def test_refine_family__set_of_one_model(pooled, from_one):
    assert (from_one.kind, from_one.source) == (2, "model 2")
    own = from_one.models[1]
    assert own.figures[HELD_OUT].individual == own.figures[HELD_OUT].collective
    assert own.notes == ("The set is this model's own, so that its two refinements are the same.",)
    others = [
        model.figures[HELD_OUT].shared.total for model in from_one.models if model.name != "model 2"
    ]
    assert from_one.shared.total == sum(others)
    assert sum(one.n_failures for one in from_one.names) < sum(
        one.n_failures for one in pooled.names
    )


def test_refine_family__models_are_measured_on_test_seed_and_held_out(pooled):
    names = [figures.measured_on.name for figures in pooled.models[0].figures]
    assert names == ["test samples", "validation, discovery half", "validation, confirmation half"]
    assert len({model.figures[0].before.total for model in pooled.models}) == 1


def test_family_lines__say_what_all_models_share_and_what_seed_failures_became(pooled):
    lines = list(family_lines(pooled))
    common = pooled.common
    assert f"All 3 models fail on {common.test.count} of the {common.test.total}" in lines[1]
    assert f"Of the {common.n_seed} failures" in lines[2]
    assert common.values[0].value in lines[2]
    resolved = pooled.models[0].figures[SEED].resolved_collective
    titles, row = lines[3], next(line for line in lines if line.startswith("model 1"))
    assert "seed: own" in titles
    assert f"{resolved.count}/{resolved.total}" in row


def test_subjects_of__what_chose_for_one_model_is_held_out_for_none(models):
    subjects = subjects_of(models)
    seeds = set().union(
        *[subject.dataset.content_hashes(subject.seed.rows) for subject in subjects]
    )
    for member, subject in zip(models.members, subjects, strict=True):
        assert not seeds & set(subject.dataset.content_hashes(subject.held_out.rows))
        assert len(subject.seed) + len(subject.held_out) == len(member.half(0)) + len(
            member.half(1)
        )
    own = {tuple(member.half(0).rows.tolist()) for member in models.members}
    assert len(own) > 1, "the models divide their samples differently, or this test says nothing"


def test_refine_family__the_same_answer_again(models, generated, from_one):
    assert refine_family(models, generated, REQUEST, source="model 2")[0] == from_one


def test_refine_family__bad_requests(models, generated):
    with pytest.raises(ConfigError, match="two or more"):
        refine_family(Family.of(models.members[:1]), generated, REQUEST)
    with pytest.raises(ConfigError, match="names none of the projects"):
        refine_family(models, generated, REQUEST, source="elsewhere")


def test_family_features__models_are_different_and_fail_alike_in_part(models):
    overlaps = np.array(models.overlaps())
    assert overlaps[np.triu_indices(3, k=1)].min() > 0.1
    assert overlaps[np.triu_indices(3, k=1)].max() < 0.9
