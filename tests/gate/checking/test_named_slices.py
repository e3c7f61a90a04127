import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet
from weakspot.gate.check import column_slices, members_of, phrase_slices
from weakspot.gate.policy import NamedSlice
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare


def _samples():
    metadata = {"kind": ["red", "green", "green"], "grams": [10.0, 20.0, 30.0]}
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], labels=[0, 0, 1], metadata=metadata
    )
    return SampleSet(dataset=dataset, rows=np.arange(3))


def _named(**given):
    return NamedSlice.model_validate({"name": "mine", "class": "apple", **given})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"column": "kind", "value": "green"}, [False, True, True]),
        ({"column": "kind", "values": ["green", "red"]}, [True, True, True]),
        ({"column": "grams", "low": 15.0, "high": 30.0}, [False, True, False]),
    ],
)
def test_column_slices__tell_members_by_the_column(given, expected):
    samples = _samples()
    (found,) = column_slices([_named(**given)], samples.dataset)
    assert members_of(found, samples, samples.rows).tolist() == expected
    assert found.names[0].contrast == "mine"


def test_column_slices__an_unknown_class_is_refused_with_the_nearest_one():
    with pytest.raises(DataError, match="Did you mean 'apple'"):
        column_slices(
            [_named(**{"class": "aple", "column": "kind", "value": "red"})], _samples().dataset
        )


def test_column_slices__a_multi_label_class_can_be_lacking():
    dataset = dataset_from_columns(
        class_names=["wet", "cold"], label_lists=[[0], [1]], metadata={"kind": ["a", "b"]}
    )
    named = [
        _named(**{"class": name, "column": "kind", "value": "a"}) for name in ("wet", "no cold")
    ]
    assert [(found.class_name, found.side) for found in column_slices(named, dataset)] == [
        ("wet", Side.PRESENT),
        ("cold", Side.ABSENT),
    ]


def test_members_of__words_are_no_numbers():
    samples = _samples()
    (found,) = column_slices([_named(column="kind", low=1.0)], samples.dataset)
    with pytest.raises(ConfigError, match="no numbers"):
        members_of(found, samples, samples.rows)


def test_phrase_slices__tell_members_by_words_alone():
    world = plant(rare(0.2), 600, seed=1)
    samples = world.samples(Split.TRAIN, Split.VALIDATION, Split.TEST)
    embedder = PlantedEmbedder()
    named = NamedSlice.model_validate({"name": "green discs", "class": "disc", "phrase": "green"})
    (found,) = phrase_slices([named], samples, embedder.embed_texts)
    discs = found.class_rows(samples)
    is_green = np.array(samples.dataset.metadata("colour").take(discs).to_pylist()) == "green"
    said = members_of(found, samples, discs)
    assert np.mean(said == is_green) > 0.8


def test_phrase_slices__need_an_embedder_that_knows_words():
    with pytest.raises(ModelError, match="no text side"):
        phrase_slices([_named(phrase="green")], _samples(), None)
