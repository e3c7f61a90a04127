"""The first look at data."""

import pytest

from weakspot.core.errors import ConfigError
from weakspot.web.services.setup import look_at_data


def test_look_at_data__folder__classes_and_images_of_each(places):
    found, shown = look_at_data(places, "photos", {})
    assert (found.kind, found.n_samples, found.problem) == ("image-folder", 12, "")
    assert {one.name: one.n_samples for one in found.classes} == {"cat": 6, "dog": 6}
    assert len(found.images) == len(shown) == 12
    assert {one.label for one in found.images} == {"cat", "dog"}
    assert not found.has_predictions


def test_look_at_data__table_with_other_names__columns_are_offered(places):
    found, shown = look_at_data(places, "answers.csv", {})
    assert "No sample has a label" in found.problem
    assert found.columns == ("file", "truth", "said", "where")
    assert found.roles == {"path": "file"}
    assert shown == []


def test_look_at_data__columns_chosen__read_by_them(places):
    found, _ = look_at_data(places, "answers.csv", {"label": "truth", "prediction": "said"})
    assert (found.kind, found.n_samples, found.problem) == ("manifest", 12, "")
    assert found.has_predictions
    assert found.has_images


def test_look_at_data__nothing_that_can_be_read__said_not_raised(places):
    found, _ = look_at_data(places, "notes.txt", {})
    assert ".txt" in found.problem
    unknown, _ = look_at_data(places, "answers.csv", {"label": "nothing"})
    assert "nothing" in unknown.problem


def test_look_at_data__elsewhere__refused(places):
    with pytest.raises(ConfigError):
        look_at_data(places, "/etc", {})
