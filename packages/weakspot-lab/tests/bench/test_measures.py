from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot_lab.bench.problem import KnownSlice
from weakspot_lab.bench.scores import (
    agreement,
    best_precision,
    fails_elsewhere,
    judge_name,
    precision_at,
)


def _never(_first, _second):
    return False


@pytest.fixture
def samples():
    """Twelve samples: eight cats on a line from 0 to 7, and four dogs."""
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0] * 8 + [1] * 4,
        metadata={"is_dark": ["yes"] * 4 + ["no"] * 8},
    )
    embeddings = np.arange(12, dtype=np.float32)[:, None]
    return SampleSet(
        dataset=dataset,
        rows=np.arange(12),
        spaces={"clip": EmbeddingSpace(encoder_id="line", embeddings=embeddings)},
    )


def _slice(*, class_name="cat", rule=None, contrast=""):
    line = LinearRule(encoder_id="line", direction=(-1.0,), threshold=-3.5, normalise=False)
    names = (
        (SliceName(phrase=contrast, contrast=contrast, score=1.0, describer="x"),)
        if contrast
        else ()
    )
    use = DataUse(name="x", n_samples=0, digest="")
    return FailureSlice(
        class_name=class_name, rule=rule or line, method="x", found_on=use, names=names
    )


def _truth(members, **changes):
    inside = np.isin(np.arange(12), members)
    return KnownSlice(
        **{
            "class_name": "cat",
            "inside": inside,
            "words": ("dark",),
            "same_attribute": ("bright",),
            **changes,
        }
    )


def test_precision_at__unknown_scores_are_left_out():
    assert (
        precision_at(np.array([np.nan, 3.0, 2.0, 1.0]), np.array([True, True, False, True]), 2)
        == 0.5
    )
    assert precision_at(np.array([np.nan]), np.array([True]), 5) == 0.0


def test_best_precision__the_best_of_the_first_slices_of_the_class(samples):
    wrong_way = _slice(rule=LinearRule(encoder_id="line", direction=(1.0,), normalise=False))
    truth = _truth([0, 1])
    assert best_precision([wrong_way, _slice()], truth, samples, count=2) == 1.0
    assert best_precision([wrong_way, _slice()], truth, samples, count=4) == 0.5
    assert best_precision([wrong_way, _slice()], truth, samples, count=2, n_tried=1) == 0.0
    assert best_precision([_slice(class_name="dog")], truth, samples, count=2) == 0.0


def test_agreement__harmonic_mean_within_the_class(samples):
    assert agreement(_slice(), _truth([0, 1, 2, 3]), samples) == 1.0
    assert agreement(_slice(), _truth([0, 1]), samples) == pytest.approx(2 / 3)
    assert agreement(_slice(), _truth([4]), samples) == 0.0
    assert agreement(_slice(class_name="dog"), _truth([0]), samples) == 0.0


def test_fails_elsewhere__a_gap_on_fresh_samples(samples):
    predictions = {
        "clear": [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1],
        "none": [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1],
    }
    for name, given in predictions.items():
        known = replace(
            samples, dataset=samples.dataset.with_predictions(predictions=np.array(given))
        )
        assert fails_elsewhere(_slice(), known, FailureCriterion()) is (name == "clear")
        assert not fails_elsewhere(_slice(class_name="bird"), known, FailureCriterion())


@pytest.mark.parametrize(
    ("contrast", "expected"),
    [
        ("dark", (True, True, True)),
        ("gloomy", (False, True, True)),
        ("bright", (False, False, True)),
        ("red", (False,) * 3),
    ],
)
def test_judge_name__exact_synonym_same_attribute(contrast, expected):
    found = judge_name(
        _slice(contrast=contrast),
        _truth([0]),
        lambda first, second: {first, second} == {"gloomy", "dark"},
    )
    assert (found.is_exact, found.is_synonym, found.is_same_attribute) == expected


def test_judge_name__without_a_name():
    assert not judge_name(_slice(), _truth([0]), _never).is_same_attribute
