from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError
from weakspot.core.failures import FailureCriterion
from weakspot.data.settings import DataSettings
from weakspot.run import halves, loop
from weakspot.run.halves import split_in_halves
from weakspot.run.settings import (
    DiscoverSettings,
    Settings,
    VerifySettings,
)
from weakspot.run.stage_clock import new_record
from weakspot.run.wiring import build_verifier
from weakspot.testing.planted import phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
ASKING = Assistants(embed_texts=phrase_embeddings)


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
        "mixture",
        "spotlight",
        "loss",
        parameters={"mixture": {"min_failures": 10_000}, "spotlight": {"min_failures": 10_000}},
    )
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    assert len(record.notes) == len(set(record.notes)) >= 4


def test_discover_slices__words_beside_other_methods__explain_instead_of_being_tests(samples):
    tested = {}
    for methods in (("keywords",), ("directions", "keywords")):
        settings = _settings(*methods)
        record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
        keywords = next(one for one in record.methods if one.method == "keywords")
        tested[methods] = keywords.n_tested, keywords.n_found
    assert tested["keywords",] == (25, 25)
    assert tested["directions", "keywords"] == (3, 25)


def test_discover_slices__parameters_of_unused_methods_are_refused(samples):
    settings = _settings("directions", parameters={"mixture": {"n_slices": 3}})
    with pytest.raises(ConfigError, match="not used"):
        loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)


def test_halves__cross_fitting_swaps_them(samples):
    (first, second), (third, fourth), (nothing, everything) = split_in_halves(
        samples, _settings(scheme="cross-fit"), CRITERION
    )
    assert np.array_equal(first.rows, fourth.rows)
    assert np.array_equal(second.rows, third.rows)
    assert "swapped" in third.name
    assert len(nothing) == 0
    assert np.array_equal(everything.rows, np.union1d(first.rows, second.rows))


def test_halves__another_seed__buys_no_new_chance(samples):
    settings = _settings()
    (mine,), (other,) = (
        split_in_halves(samples, settings.model_copy(update={"seed": seed}), CRITERION)
        for seed in (0, 11)
    )
    assert np.array_equal(mine[1].rows, other[1].rows)


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
    (discovery, confirmation), *_ = split_in_halves(samples, settings, CRITERION)
    first = [one for one in record.slices if one.found_on.digest == discovery.digest()]
    alone = build_verifier(settings, part=0.5).verify(
        first, discovery=discovery, confirmation=confirmation, criterion=CRITERION
    )
    both = {entry.slice_id: entry.q_value for entry in verified.evidence}
    assert [both[one.slice_id] for one in alone] == [min(1.0, 2 * one.q_value) for one in alone]


def test_discover_slices__cross_fitting_large_classes__failures_are_fitted_on_the_first_half_only(
    samples, monkeypatch
):
    monkeypatch.setattr(halves, "LARGE_CLASS", 20)
    settings = _settings("clusters", "spotlight", scheme="cross-fit")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    assert [one.method for one in record.methods] == ["clusters", "spotlight"]
    found_on = {found.found_on.digest for found in record.slices if found.method == "spotlight"}
    assert found_on == {split_in_halves(samples, settings, CRITERION)[0][0].digest()}
    verified = loop.verify_slices(record, samples, settings, CRITERION)
    assert len(verified.evidence) == len(record.slices)
    alone = _settings("spotlight", scheme="cross-fit")
    both = loop.discover_slices(_record(alone), samples, alone, CRITERION, ASKING)
    assert [one.method for one in both.methods] == ["spotlight", "spotlight"]


def test_verify_slices__cross_fitting__a_rule_found_in_both_halves_is_published_once(samples):
    settings = _settings("attributes", scheme="cross-fit")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    rules = [(found.class_name, found.rule) for found in record.slices]
    twice = [pair for pair in set(rules) if rules.count(pair) >= 2]
    assert twice
    assert len(record.slices_by_id()) == len(record.slices)
    verified = loop.verify_slices(record, samples, settings, CRITERION)
    assert all(entry.same_as != entry.slice_id for entry in verified.evidence)
    measured = {found.slice_id: found.found_on.digest for found in record.slices}
    assert all(entry.measured_on.digest != measured[entry.slice_id] for entry in verified.evidence)
    published = [(found.class_name, found.rule) for found, _ in verified.published()]
    halves = loop.verify_slices(
        loop.discover_slices(
            _record(settings), samples, _settings("attributes"), CRITERION, ASKING
        ),
        samples,
        _settings("attributes"),
        CRITERION,
    )
    once = [(found.class_name, found.rule) for found, _ in halves.published()]
    assert once
    assert all(published.count(pair) == 1 for pair in once)


def test_verify_slices__cross_fitting__between_one_and_two_error_rates__not_confirmed(samples):
    settings = _settings(scheme="cross-fit")
    record = loop.discover_slices(_record(settings), samples, settings, CRITERION, ASKING)
    wide = loop.verify_slices(record, samples, settings, CRITERION)
    best = min(wide.evidence, key=lambda entry: entry.q_value)
    chosen = settings.verify.model_copy(update={"parameters": {"alpha": 0.75 * best.q_value}})
    narrow = settings.model_copy(update={"verify": chosen})
    evidence = loop.verify_slices(record, samples, narrow, CRITERION).evidence
    same = next(entry for entry in evidence if entry.slice_id == best.slice_id)
    assert (same.q_value, same.verdict) == (best.q_value, "not confirmed")


def test_open_data__a_relative_project_folder_gives_whole_paths(tmp_path, monkeypatch):
    (tmp_path / "data" / "cat").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "data" / "cat" / "a.png")
    monkeypatch.chdir(tmp_path)
    source = loop.open_data(DataSettings(source="data"), Path())
    assert source.location == str(tmp_path / "data")
    assert [raw.location for raw in source.read()] == [str(tmp_path / "data" / "cat" / "a.png")]
