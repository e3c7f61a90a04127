import numpy as np

from weakspot.run.embedding import MAX_REMEMBERED, RememberingEmbedder
from weakspot.testing.checks import check_embedder
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.scenes import Scene, render


class Counting(PlantedEmbedder):
    n_asked = 0

    def embed_prepared(self, prepared):
        type(self).n_asked += len(prepared)
        return super().embed_prepared(prepared)


def test_remembering_embedder__is_an_embedder_like_the_one_inside():
    check_embedder(lambda: RememberingEmbedder(embedder=PlantedEmbedder()))


def test_remembering_embedder__asks_once_for_what_looks_the_same():
    embedder = RememberingEmbedder(embedder=Counting())
    first, second = (embedder.prepare(render(Scene(instance=number))) for number in (1, 2))
    before = embedder.embed_prepared([first, second, first])
    again = embedder.embed_prepared([second, first])
    assert Counting.n_asked == 2
    assert np.array_equal(before[[1, 0]], again)
    assert np.array_equal(before[0], before[2])


def test_remembering_embedder__forgets_the_oldest():
    embedder = RememberingEmbedder(embedder=PlantedEmbedder())
    rows = np.zeros((MAX_REMEMBERED + 10, 8), dtype=np.int64)
    rows[:, 0], rows[:, -1] = 1, np.arange(len(rows))
    found = embedder.embed_prepared(list(rows))
    assert found.shape == (len(rows), embedder.dimension)
    assert len(embedder._known) == MAX_REMEMBERED
