import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.run import loop
from weakspot.run.halves import split_in_halves, withhold, withhold_from_halves
from weakspot.run.settings import DiscoverSettings, RepairSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.planted import plant, rare

CRITERION = FailureCriterion()


@pytest.fixture(scope="module")
def samples():
    world = plant(rare(0.02), 1600, seed=5)
    return world.samples().only(np.arange(len(world)))


def _settings(groups):
    return Settings(
        discover=DiscoverSettings(methods=("attributes",)),
        verify=VerifySettings(splits=("validation", "test")),
        repair=RepairSettings(groups=groups),
    )


def _slice(column):
    return FailureSlice(
        class_name="disc",
        rule=ColumnRule(column=column, values=("green",)),
        method="hand",
        found_on=DataUse(name="given", n_samples=0, digest="given"),
    )


def test_withhold__the_column_is_gone_and_the_samples_are_the_same(samples):
    seen = withhold(samples, "colour")
    assert "colour" in samples.dataset.metadata_names
    assert set(samples.dataset.metadata_names) - set(seen.dataset.metadata_names) == {"colour"}
    assert seen.digest() == samples.digest()


@pytest.mark.parametrize("column", ["", "no such column"])
def test_withhold__nothing_to_withhold(samples, column):
    assert withhold(samples, column) is samples


def test_withhold__a_slice_of_an_earlier_run_is_defined_by_it(samples):
    assert withhold(samples, "colour", slices=[_slice("colour")]) is samples
    assert withhold(samples, "colour", slices=[_slice("background")]) is not samples


def test_withhold_from_halves__both_halves(samples):
    pairs = split_in_halves(samples, _settings(""), CRITERION)
    for pair in withhold_from_halves(pairs, "colour"):
        assert all("colour" not in half.dataset.metadata_names for half in pair)


def test_discover_slices__group_labels_are_not_read(samples):
    # Green discs fail, and the column of colours says so: named as given groups, it must not be found.
    found = {
        groups: loop.discover_slices(
            new_record(_settings(groups), inputs={}, criterion="wrong"),
            samples,
            _settings(groups),
            CRITERION,
            NO_ASSISTANTS,
        ).slices
        for groups in ("", "colour")
    }
    assert any("colour" in one.rule.columns for one in found[""])
    assert not any("colour" in one.rule.columns for one in found["colour"])
