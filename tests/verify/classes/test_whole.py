"""Whether a class fails more often than the others."""

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.statistics import fisher_p
from weakspot.verify.classes import ClassMaterial, ask_whole


def test_ask_whole__the_class_that_fails_has_the_exact_p_value(make_material, birds):
    found = {one.class_name: one for one in ask_whole(make_material(birds), least=5)}
    assert set(found) == {"heron", "crane", "gull", "owl"}
    assert found["heron"].p_value == fisher_p(48, 52, 20, 156)
    assert found["owl"].p_value > 0.9
    assert (found["heron"].rate, found["heron"].reference) == (48 / 52, 20 / 156)
    assert found["heron"].sentence == (
        "heron fails as a whole: 48 of 52 (92 %), the other classes 20 of 156 (13 %); mostly taken for crane (44)"
    )
    assert found["heron"].other_class == "crane"
    assert found["gull"].other_class == ""


def test_ask_whole__a_class_that_fails_less_than_half_is_not_said_to_fail_as_a_whole(make_material):
    answers = {"a": {"a": 60, "b": 40}, "b": {"b": 95, "a": 5}}
    sentence = ask_whole(make_material(answers), least=5)[0].sentence
    assert sentence.startswith("a fails more often than the other classes: 40 of 100")


def test_ask_whole__small_classes_are_not_asked_about(make_material):
    answers = {"a": {"b": 4}, "b": {"b": 50}, "c": {"c": 50}}
    assert [one.class_name for one in ask_whole(make_material(answers), least=5)] == ["b", "c"]


def test_ask_whole__ten_images_of_one_object_count_once(make_material):
    answers = {"a": {"a": 10, "b": 10}, "b": {"b": 20}}
    alone = ask_whole(make_material(answers), least=5)[0]
    groups = [*["own"] * 0, *[f"a{n}" for n in range(10)], *["one"] * 10, *[None] * 20]
    grouped = ask_whole(make_material(answers, groups=groups), least=5)[0]
    assert alone.p_value < 0.001
    assert grouped.p_value > 0.1
    assert grouped.interval.high - grouped.interval.low > alone.interval.high - alone.interval.low


def test_ask_whole__many_groups_and_classes__one_of_each_group_answers(make_material, monkeypatch):
    monkeypatch.setattr("weakspot.verify.classes.MAX_GROUPS_DRAWN", 10)
    monkeypatch.setattr("weakspot.verify.classes.FEW_CLASSES", 1)
    answers = {"a": {"a": 10, "b": 10}, "b": {"b": 20}}
    groups = [f"g{place // 2}" for place in range(40)]
    grouped = ask_whole(make_material(answers, groups=groups), least=5)[0]
    assert grouped.p_value == pytest.approx(fisher_p(5, 10, 0, 10))


def test_ask_whole__multi_label__a_label_that_is_missed_more_often():
    rng = np.random.default_rng(1)
    truth = rng.random((400, 4)) < 0.4
    said = truth & (rng.random((400, 4)) < [0.5, 0.95, 0.95, 0.95])
    dataset = dataset_from_columns(
        class_names=list("abcd"),
        label_lists=[np.flatnonzero(row).tolist() for row in truth],
        predicted_matrix=said,
    )
    found = {
        one.class_name: one
        for one in ask_whole(ClassMaterial.of(dataset, np.arange(400), FailureCriterion()), least=5)
    }
    assert found["a"].p_value < 1e-6
    assert min(found[name].p_value for name in "bcd") > 0.05
    assert found["a"].n_samples == int(truth[:, 0].sum())
