import numpy as np
import pytest

from weakspot.core.samples import Attribute, AttributeValue
from weakspot.testing.planted import phrase_embeddings, plant
from weakspot.testing.planted_problems import rare
from weakspot.testing.scenes import FACTORS
from weakspot.words.attribute_columns import LeftOut
from weakspot.words.planning import free_phrases, no_phrases, yes_phrases
from weakspot.words.zero_shot import word_columns


@pytest.fixture(scope="module")
def world():
    return plant(rare(0.02), 900, seed=2, embedding_noise=0.1)


def _attribute(name, values):
    worded = tuple(
        AttributeValue(value=value, phrases=free_phrases(name, value)) for value in values
    )
    return Attribute(name=name, column=name, source="proposed", values=worded)


def _columns(world, *attributes, embeddings=None):
    shown = world.embeddings() if embeddings is None else embeddings
    return list(
        word_columns(
            attributes, embed_texts=phrase_embeddings, embeddings=shown, reference=shown[:400]
        )
    )


@pytest.mark.parametrize("factor", ["colour", "background", "lighting", "size"])
def test_word_columns__tell_the_truth_of_planted_worlds(world, factor):
    (found,) = _columns(world, _attribute(factor, FACTORS[factor]))
    told = np.array(found.column.to_pylist(), dtype=object)
    truth = np.array(world.dataset.metadata(factor).to_pylist(), dtype=object)
    is_sure = told != None  # noqa: E711 - element by element
    assert (told[is_sure] == truth[is_sure]).mean() >= 0.95
    assert is_sure.mean() >= 0.9
    attribute = found.attribute
    assert attribute.unsure_share == pytest.approx(1 - is_sure.mean(), abs=1e-6)
    assert sum(value.share for value in attribute.values) == pytest.approx(is_sure.mean(), abs=1e-4)
    assert attribute.missing_share == 0.0
    assert attribute.agreement > 0.9


def test_word_columns__words_without_meaning_are_left_out_and_the_others_stay(world):
    nonsense = Attribute(
        name="taste",
        column="taste",
        source="proposed",
        values=tuple(
            AttributeValue(value=value, phrases=(f"a photo of {value}", f"something {other}"))
            for value, other in (
                ("sweet", "sugary"),
                ("sour", "acid"),
                ("bitter", "harsh"),
                ("salty", "briny"),
            )
        ),
    )
    left_out, colour = _columns(world, nonsense, _attribute("colour", FACTORS["colour"]))
    assert isinstance(left_out, LeftOut)
    assert left_out.name == "taste"
    assert colour.attribute.name == "colour"


def test_word_columns__yes_and_no(world):
    values = (
        AttributeValue(value="yes", phrases=yes_phrases("red")),
        AttributeValue(value="no", phrases=no_phrases()),
    )
    (found,) = _columns(
        world, Attribute(name="red", column="red", source="proposed", values=values)
    )
    told = np.array(found.column.to_pylist(), dtype=object)
    truth = np.where(np.array(world.dataset.metadata("colour").to_pylist()) == "red", "yes", "no")
    is_sure = told != None  # noqa: E711 - element by element
    assert is_sure.mean() > 0.9
    assert (told[is_sure] == truth[is_sure]).mean() >= 0.95


def test_word_columns__samples_without_a_embedding_have_no_value(world):
    embeddings = world.embeddings().copy()
    embeddings[[5, 700]] = np.nan
    (found,) = _columns(world, _attribute("colour", FACTORS["colour"]), embeddings=embeddings)
    assert [found.column[row].as_py() for row in (5, 700)] == [None, None]
    assert found.attribute.missing_share == pytest.approx(2 / 900, abs=1e-6)


def test_word_columns__one_value_for_all_is_left_out(world):
    embeddings = world.embeddings(
        np.flatnonzero(np.array(world.dataset.metadata("lighting").to_pylist()) == "dark")
    )
    found = _columns(world, _attribute("lighting", ("dark", "unlit")), embeddings=embeddings)
    assert isinstance(found[0], LeftOut)
