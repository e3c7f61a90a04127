import dataclasses

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot_lab.align.pairs import Concepts, PairGroup, group_from_texts, split_group

EMBEDDINGS = {
    "red": np.array([1.0, 0.0]),
    "a car": np.array([0.0, 1.0]),
    "a bus": np.array([0.5, 0.5]),
}


def three_images() -> PairGroup:
    return group_from_texts(
        "vehicles",
        np.eye(3),
        [["red", "a car"], ["red", "a bus"], ["a car"]],
        EMBEDDINGS,
        concepts=Concepts(
            text_embeddings=np.zeros((1, 1, 2), dtype=np.float32),
            presence=np.array([[1], [1], [0]], dtype=np.int8),
        ),
    )


def test_group_from_texts__a_text_is_stored_once() -> None:
    group = three_images()

    assert group.text_embeddings.tolist() == [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]
    assert group.pair_images.tolist() == [0, 0, 1, 1, 2]
    assert group.pair_texts.tolist() == [2, 1, 2, 0, 1]


def test_group_from_texts__an_image_without_its_list() -> None:
    with pytest.raises(DataError, match="Every image needs its list of texts"):
        group_from_texts("vehicles", np.eye(3), [["red"]], EMBEDDINGS)


def test_belong__knows_every_image_of_a_text() -> None:
    table = three_images().belong(np.array([2, 0]), np.array([0, 1, 2]))

    assert table.tolist() == [[True, True, False], [False, True, False]]


def test_keep_images__rows_pairs_and_presence_follow() -> None:
    kept = three_images().keep_images(np.array([0, 2]))

    assert kept.image_embeddings.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert kept.pair_images.tolist() == [0, 0, 1]
    assert kept.pair_texts.tolist() == [2, 1, 1]
    assert kept.concepts is not None
    assert kept.concepts.presence.tolist() == [[1], [0]]


def test_split_group__same_seed_same_split_and_nothing_lost() -> None:
    learn, held = split_group(three_images(), 0.3, seed=5)
    again, _ = split_group(three_images(), 0.3, seed=5)

    assert (len(learn.image_embeddings), len(held.image_embeddings)) == (2, 1)
    np.testing.assert_array_equal(learn.image_embeddings, again.image_embeddings)
    np.testing.assert_array_equal(
        learn.image_embeddings.sum(axis=0) + held.image_embeddings.sum(axis=0), np.ones(3)
    )


def test_pair_group__pair_points_nowhere() -> None:
    with pytest.raises(DataError, match="not there"):
        PairGroup(
            name="broken",
            image_embeddings=np.eye(2, dtype=np.float32),
            text_embeddings=np.eye(2, dtype=np.float32),
            pair_images=np.array([2]),
            pair_texts=np.array([0]),
        )


def test_keep_images__remembers_that_nuisance_is_unwanted() -> None:
    group = dataclasses.replace(three_images(), takes_nuisance=False)

    assert group.keep_images(np.array([0])).takes_nuisance is False
