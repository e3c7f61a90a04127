import numpy as np

from weakspot.words.representatives import medoids, most_unlike


def _three_bunches():
    random = np.random.default_rng(0)
    centres = np.eye(3, 8, dtype=np.float32) * 5
    return np.concatenate(
        [centre + 0.1 * random.standard_normal((20, 8)).astype(np.float32) for centre in centres]
    )


def test_medoids__one_of_every_bunch():
    found = medoids(_three_bunches(), 3, seed=0)
    assert [int(place) // 20 for place in found] == [0, 1, 2]


def test_medoids__same_seed_same_answer_and_read_only_embeddings():
    embeddings = _three_bunches()
    embeddings.flags.writeable = False
    assert medoids(embeddings, 5, seed=4).tolist() == medoids(embeddings, 5, seed=4).tolist()


def test_medoids__rows_without_a_embedding_stand_for_nobody():
    embeddings = _three_bunches()
    embeddings[:20] = np.nan
    assert {int(place) // 20 for place in medoids(embeddings, 2, seed=0)} == {1, 2}


def test_medoids__few_or_equal_embeddings():
    assert medoids(np.ones((2, 4), dtype=np.float32), 5, seed=0).tolist() == [0, 1]
    assert len(medoids(np.ones((9, 4), dtype=np.float32), 5, seed=0)) == 1
    assert len(medoids(np.full((3, 4), np.nan, dtype=np.float32), 2, seed=0)) == 0


def test_most_unlike__what_the_reference_lacks_each_once():
    bunches = _three_bunches()
    odd = np.full((1, 8), np.nan, dtype=np.float32)
    given = np.concatenate([bunches, bunches[:1], odd])
    found = most_unlike(given, bunches[:20], 2)
    assert [int(place) // 20 for place in found] == [1, 2]
    every = most_unlike(given, bunches[:20], 100)
    assert set(every.tolist()) == set(range(20, 60))
    assert most_unlike(given, given[:0], 100).tolist()[-1] < 61
    assert most_unlike(given[:0], bunches, 5).tolist() == []
