import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.failures import FailureCriterion
from weakspot.run import loop, naming
from weakspot.run.naming import describe_slices
from weakspot.run.settings import DiscoverSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.planted import phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
ASKING = Assistants(embed_texts=phrase_embeddings)


@pytest.fixture(scope="module")
def samples():
    world = plant(rare(0.02), 2400, seed=5)
    return world.samples().only(np.arange(len(world)))


def _settings(*methods):
    return Settings(
        discover=DiscoverSettings(methods=methods),
        verify=VerifySettings(splits=("validation", "test"), scheme="halves"),
    )


def _record(settings):
    return new_record(settings, inputs={}, criterion="wrong")


def test_describe_slices__of_many_the_ones_that_stand_out__and_only_those_asked_for(
    samples, monkeypatch
):
    settings = _settings("mixture", "spotlight")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    everything = describe_slices(record, samples, settings, CRITERION, ASKING)
    assert all(found.names for found in everything.slices)
    monkeypatch.setattr(naming, "MAX_NAMED", 2)
    some = describe_slices(record, samples, settings, CRITERION, ASKING)
    chosen = [place for place, found in enumerate(some.slices) if found.names]
    assert len(chosen) == 2 < len(some.slices)
    # The planted problem is in discs; words are the same as among all.
    assert {some.slices[place].class_name for place in chosen} == {"disc"}
    assert [{name.phrase for name in some.slices[place].names} for place in chosen] == [
        {name.phrase for name in everything.slices[place].names} for place in chosen
    ]
    last = record.slices[-1].slice_id
    named = describe_slices(some, samples, settings, CRITERION, ASKING, only={last})
    assert [bool(found.names) for found in named.slices].count(True) == 3
    assert named.slices[-1].names
