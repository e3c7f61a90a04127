import numpy as np
import pytest

from weakspot.core.samples import Attribute, AttributeValue
from weakspot.testing.planted import phrase_embeddings, plant, rare
from weakspot.testing.scenes import FACTORS
from weakspot.words import zero_shot
from weakspot.words.attribute_columns import LeftOut
from weakspot.words.planning import free_phrases, no_phrases, yes_phrases
from weakspot.words.zero_shot import (
    MISSING,
    UNSURE,
    Caution,
    assigned,
    calibrated,
    half_prototypes,
    known_units,
    word_columns,
)

DIMENSION = 32


def _axes(n_values):
    return np.eye(n_values, DIMENSION, dtype=np.float32)


def _prototypes(n_values, *, second=None):
    """Phrase embeddings that share a large common part, as those of real encoders do."""
    common = np.zeros(DIMENSION, dtype=np.float32)
    common[-1] = 3.0
    first = _axes(n_values) + common
    return np.stack([first, first if second is None else second + common])


def _samples(truth, *, scatter, seed=0, bias=None):
    random = np.random.default_rng(seed)
    found = scatter * random.standard_normal((len(truth), DIMENSION)).astype(np.float32)
    known = truth >= 0
    found[known, truth[known]] += 1.0
    found[:, -1] += 2.0
    return found if bias is None else found + bias


def _calibrated(prototypes, embeddings, caution):
    return calibrated(prototypes, known_units(embeddings), caution)


def _truth(shares, n_samples=4000, seed=1):
    return np.random.default_rng(seed).choice(len(shares), n_samples, p=shares)


def test_half_prototypes__means_of_phrases_at_even_and_at_odd_places():
    numbers = {"a": 1.0, "b": 2.0, "c": 5.0, "d": 4.0}
    found = half_prototypes(
        [("a", "b", "c", "d"), ("a", "d")],
        lambda phrases: np.array([[numbers[one]] for one in phrases]),
    )
    assert found[:, :, 0].tolist() == [[3.0, 1.0], [3.0, 4.0]]


@pytest.mark.parametrize("shares", [[0.9, 0.04, 0.03, 0.03], [0.97, 0.01, 0.01, 0.01]])
def test_assigned__a_common_value_is_not_split_up(shares):
    truth = _truth(shares)
    embeddings = _samples(truth, scatter=0.12)
    codes = assigned([_calibrated(_prototypes(4), embeddings, Caution())], embeddings)[0]
    sure = codes >= 0
    assert sure.mean() > 0.9
    assert (codes[sure] == truth[sure]).mean() > 0.97


def test_assigned__a_phrase_that_is_similar_to_everything_attracts_nothing():
    truth = _truth([0.4, 0.3, 0.3])
    embeddings = _samples(truth, scatter=0.1)
    prototypes = _prototypes(3)
    prototypes[:, 2, -1] += 2.0
    codes = assigned([_calibrated(prototypes, embeddings, Caution())], embeddings)[0]
    assert (codes[codes >= 0] == truth[codes >= 0]).mean() > 0.97
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    raw = (units @ prototypes[0].T).argmax(axis=1)
    assert (raw == 2).mean() > 0.95


def test_assigned__samples_with_none_of_the_values_are_unsure():
    truth = np.concatenate([_truth([0.5, 0.5, 0.0, 0.0], 1500), np.full(1500, -1)])
    embeddings = _samples(truth, scatter=0.1)
    usual, careful = (
        assigned(
            [_calibrated(_prototypes(4), embeddings, Caution(most_chance=chance))], embeddings
        )[0]
        for chance in (0.5, 0.05)
    )
    assert 0.4 < (usual[truth < 0] == UNSURE).mean() < 0.8
    assert (careful[truth < 0] == UNSURE).mean() > 0.85
    assert (careful[truth >= 0] == truth[truth >= 0]).mean() > 0.95


def test_assigned__where_the_halves_disagree_it_is_unsure():
    truth = _truth([0.5, 0.5], 2000)
    embeddings = _samples(truth, scatter=0.4)
    second = _axes(2)
    second[0, 5] = second[1, 6] = 1.5
    contrast = _calibrated(
        _prototypes(2, second=second), embeddings, Caution(most_disagreement=0.05)
    )
    codes = assigned([contrast], embeddings)[0]
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    first, other = (
        (units @ contrast.prototypes[half].T - contrast.offsets[half]).argmax(axis=1)
        for half in (0, 1)
    )
    assert contrast.agreement == pytest.approx((first == other).mean())
    assert 0.6 < contrast.agreement < 0.9
    assert contrast.least_margin > 0
    sure = codes >= 0
    assert 0.05 < sure.mean() < contrast.agreement
    assert (codes[first != other] == UNSURE).all()
    assert (codes[sure] == truth[sure]).mean() > (first == truth).mean() + 0.01


def test_least_margin__largest_set_with_few_disagreements():
    margins = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    agree = np.array([True, True, True, True, False, False])
    assert zero_shot._least_margin(margins, agree, 0.0) == 0.6
    assert zero_shot._least_margin(margins, agree, 0.2) == 0.5
    assert zero_shot._least_margin(margins, agree, 0.4) == 0.0
    assert zero_shot._least_margin(margins, ~np.ones(6, dtype=bool), 0.4) == float("inf")


def test_kappa__agreement_beyond_chance():
    assert zero_shot._kappa(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), 2) == 1.0
    assert zero_shot._kappa(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2) == 0.0
    assert zero_shot._kappa(np.array([0, 0]), np.array([0, 0]), 2) == 0.0


def test_calibrated__phrases_without_meaning_are_an_obstacle():
    embeddings = _samples(_truth([0.5, 0.5], 800), scatter=0.1)
    random = np.random.default_rng(5)
    contrast = _calibrated(
        random.standard_normal((2, 6, DIMENSION)).astype(np.float32), embeddings, Caution()
    )
    assert "other wordings of the same values give other answers" in contrast.obstacle(Caution())


@pytest.mark.parametrize(
    "reference",
    [np.ones((50, DIMENSION)), np.full((50, DIMENSION), np.nan), np.zeros((50, DIMENSION))],
)
def test_calibrated__constant_or_missing_embeddings_are_an_obstacle(reference):
    assert _calibrated(_prototypes(3), reference.astype(np.float32), Caution()).obstacle(Caution())


def test_assigned__no_embedding_no_value_and_chunks_make_no_difference(monkeypatch):
    truth = _truth([0.5, 0.5], 300)
    embeddings = _samples(truth, scatter=0.1)
    embeddings[[3, 77]] = np.nan
    embeddings.flags.writeable = False
    contrast = _calibrated(_prototypes(2), embeddings, Caution())
    whole = assigned([contrast, contrast], embeddings)
    told = []
    monkeypatch.setattr(zero_shot, "CHUNK_ROWS", 128)
    pieces = assigned(
        [contrast, contrast], embeddings, progress=lambda done, total: told.append((done, total))
    )
    assert [codes.tolist() for codes in pieces] == [codes.tolist() for codes in whole]
    assert np.flatnonzero(whole[0] == MISSING).tolist() == [3, 77]
    assert told == [(128, 300), (256, 300), (300, 300)]
    assert assigned([], embeddings) == []


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
