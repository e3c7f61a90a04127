from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.slices import DataUse
from weakspot.run import loop, methods
from weakspot.run.halves import split_in_halves
from weakspot.run.naming import describe_slices
from weakspot.run.settings import DiscoverSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.planted import phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
ASKING = Assistants(embed_texts=phrase_embeddings)


@pytest.fixture(scope="module")
def samples():
    world = plant(rare(0.02), 1200, seed=5)
    return world.samples().only(np.arange(len(world)))


def _settings(*methods, scheme="cross-fit"):
    return Settings(
        discover=DiscoverSettings(methods=methods),
        verify=VerifySettings(splits=("validation", "test"), scheme=scheme),
    )


def _everything(samples, settings):
    return split_in_halves(samples, settings, CRITERION)[-1][1]


def test_parts_of_error_rate__together_one():
    assert methods.parts_of_error_rate(_settings("clusters", scheme="halves"), 1) == (1.0,)
    assert methods.parts_of_error_rate(_settings("directions"), 3)[:2] == (0.5, 0.5)
    assert sum(methods.parts_of_error_rate(_settings("clusters"), 3)) == pytest.approx(1.0)


def test_blind_search__methods_see_no_prediction(samples, monkeypatch):
    seen = []

    def look(self, given, problem, *, seed):
        seen.append(
            (given.dataset.has_predictions, problem.failed.any(), "features" in given.spaces)
        )
        raise DataError("Nothing to see.")

    from weakspot.discover.clusters import ClustersDiscoverer

    monkeypatch.setattr(ClustersDiscoverer, "blind_candidates", look)
    settings = _settings("clusters")
    search = methods.BlindSearch(_everything(samples, settings), settings, CRITERION)
    assert search.run() == ()
    assert seen == [(False, False, False)]
    assert "Nothing to see" in search.recorded(())[0].note


def test_verify_slices__a_value_is_confirmed_on_all_samples(samples):
    settings = _settings("attributes", "clusters")
    record = new_record(settings, inputs={}, criterion="wrong")
    record = loop.discover_slices(record, samples, settings, CRITERION, ASKING)
    assert len(record.slices_by_id()) == len(record.slices)
    made_blind = [one for one in record.slices if one.found_on == DataUse.nothing()]
    assert {"attributes", "clusters"} >= {one.method for one in made_blind}
    assert made_blind
    assert [one.method for one in record.methods].count("clusters") == 1
    named = describe_slices(record, samples, settings, CRITERION, ASKING)
    verified = loop.verify_slices(named, samples, settings, CRITERION)
    everything = _everything(samples, settings)
    entries = {entry.slice_id: entry for entry in verified.evidence}
    best = min((entries[one.slice_id] for one in made_blind), key=lambda entry: entry.q_value)
    assert best.verdict == "confirmed"
    assert best.measured_on.digest == everything.digest()
    assert best.n_compared > 1
    assert best.p_value / best.n_compared < best.p_value <= best.q_value
    confirmed = [found for found, _ in verified.published() if found.slice_id == best.slice_id]
    assert confirmed[0].class_name == "disc"


def test_judge_blind_slices__a_rule_that_no_longer_stands_out__not_confirmed(samples):
    settings = _settings("attributes")
    record = new_record(settings, inputs={}, criterion="wrong")
    record = loop.discover_slices(record, samples, settings, CRITERION, ASKING)
    made_blind = [one for one in record.slices if one.found_on == DataUse.nothing()]
    verifier = loop.build_verifier(settings)
    nothing, everything = split_in_halves(samples, settings, CRITERION)[-1]
    measured = verifier.verify(
        made_blind, discovery=nothing, confirmation=everything, criterion=CRITERION
    )
    judged = methods.judge_blind_slices(made_blind, measured, (), verifier)
    assert {entry.p_value for entry in judged} == {1.0}
    assert "confirmed" not in {entry.verdict.value for entry in judged}


def test_blind_search__asked_again_for_the_same_samples__listed_once(samples, monkeypatch):
    from weakspot.discover.clusters import ClustersDiscoverer

    listed = []
    original = ClustersDiscoverer.blind_candidates

    def counted(self, given, problem, *, seed):
        listed.append(problem.class_name)
        return original(self, given, problem, seed=seed)

    monkeypatch.setattr(ClustersDiscoverer, "blind_candidates", counted)
    settings = _settings("clusters")
    everything = _everything(samples, settings)
    first, second = (methods.BlindSearch(everything, settings, CRITERION) for _ in range(2))
    told = first.run()
    n_listed = len(listed)
    assert second.run() == told
    assert len(listed) == n_listed > 0
    assert second.recorded(()) == first.recorded(())
    stricter = settings.model_copy(
        update={"discover": settings.discover.model_copy(update={"max_tested": 1})}
    )
    assert len(methods.BlindSearch(everything, stricter, CRITERION).run()) <= 1
    assert len(listed) == 2 * n_listed


def test_blind_search__training_samples_weigh_rules__those_of_tested_groups_do_not(samples):
    settings = _settings("clusters")
    everything = _everything(samples, settings)
    dataset = everything.dataset
    training = dataset.rows_of(Split.TRAIN)
    groups = [None] * len(dataset)
    groups[training[0]] = groups[everything.rows[0]] = "the same object"
    joined = replace(everything, dataset=dataset.with_groups(groups))

    def weighed(given):
        found = methods.BlindSearch(given, settings, CRITERION)._training()
        return sorted(np.concatenate([problem.rows for problem in found]).tolist())

    assert weighed(everything) == training.tolist()
    assert weighed(joined) == training[1:].tolist()
