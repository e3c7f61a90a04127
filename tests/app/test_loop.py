from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.app import loop
from weakspot.app.config import DataSettings, DiscoverSettings, Settings, VerifySettings
from weakspot.app.records import new_record
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.failures import FailureCriterion
from weakspot.testing.planted import plant
from weakspot.testing.planted_features import phrase_vectors
from weakspot.testing.planted_problems import rare

CRITERION = FailureCriterion()
ASKING = Assistants(embed_texts=phrase_vectors)


@pytest.fixture(scope="module")
def samples():
    world = plant(rare(0.02), 2400, seed=5)
    return world.samples().only(np.arange(len(world)))


def _settings(*methods, scheme="halves", **discover):
    return Settings(
        discover=DiscoverSettings(methods=methods or ("directions",), **discover),
        verify=VerifySettings(splits=("validation", "test"), scheme=scheme),
    )


def _record(settings):
    return new_record(settings, inputs={}, criterion="wrong")


def test_discover_slices__every_method_is_recorded(samples):
    settings = _settings("directions", "mixture", "spotlight")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    assert [one.method for one in record.methods] == ["directions", "mixture", "spotlight"]
    for one in record.methods:
        assert one.n_considered >= one.n_found >= one.n_tested
        assert one.n_tested == sum(found.method == one.method for found in record.slices)
    assert record.classifier.n_samples == len(samples.dataset.rows_of(Split.VALIDATION, Split.TEST))


def test_discover_slices__what_several_methods_say_alike_is_said_once(samples):
    settings = _settings(
        "mixture", "spotlight", "loss", parameters={"mixture": {"min_failures": 10_000}, "spotlight": {"min_failures": 10_000}}
    )
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    assert len(record.notes) == len(set(record.notes)) >= 4


def test_discover_slices__a_baseline_is_never_put_forward(samples):
    settings = _settings("directions", "loss")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    assert {found.method for found in record.slices} == {"directions"}


def test_discover_slices__one_method_that_cannot_work_becomes_a_note(samples):
    settings = _settings("directions", "mixture", parameters={"mixture": {"space": "elsewhere"}})
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    notes = {one.method: one.note for one in record.methods}
    assert notes["directions"] == ""
    assert "elsewhere" in notes["mixture"]
    alone = _settings("mixture", parameters={"mixture": {"space": "elsewhere"}})
    with pytest.raises(DataError, match="elsewhere"):
        loop.discover_slices(_record(alone), samples, alone, CRITERION, ASKING)


def test_discover_slices__parameters_of_unused_methods_are_refused(samples):
    settings = _settings("directions", parameters={"mixture": {"n_slices": 3}})
    with pytest.raises(ConfigError, match="not used"):
        loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)


def test_halves__cross_fitting_swaps_them(samples):
    (first, second), (third, fourth) = loop.halves(samples, _settings(scheme="cross-fit"), CRITERION)
    assert np.array_equal(first.rows, fourth.rows)
    assert np.array_equal(second.rows, third.rows)
    assert "swapped" in third.name


def test_verify_slices__cross_fitting_uses_all_data_at_half_the_error_rate(samples):
    settings = _settings(scheme="cross-fit")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    turns = {found.found_on.digest for found in record.slices}
    assert len(turns) == 2
    verified = loop.verify_slices(record, samples, settings, CRITERION)
    assert len(verified.evidence) == len(record.slices)
    confirmed = [entry for entry in verified.evidence if entry.verdict == "confirmed"]
    assert confirmed
    assert all(entry.q_value <= 0.05 for entry in confirmed)
    measured = {found.slice_id: found.found_on.digest for found in record.slices}
    assert all(entry.measured_on.digest != measured[entry.slice_id] for entry in verified.evidence)
    assert any(found.class_name == "disc" for found, _ in verified.published())


def test_open_data__a_relative_project_folder_gives_whole_paths(tmp_path, monkeypatch):
    (tmp_path / "data" / "cat").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "data" / "cat" / "a.png")
    monkeypatch.chdir(tmp_path)
    source = loop.open_data(DataSettings(source="data"), Path())
    assert source.location == str(tmp_path / "data")
    assert [raw.location for raw in source.read()] == [str(tmp_path / "data" / "cat" / "a.png")]
