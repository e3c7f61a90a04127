import numpy as np

from weakspot.core.arrays import generator
from weakspot.models.embedded.segmenter import candidate_regions

SIDE = 16


def _tokens(cells, *, noise=0.15):
    """Return tokens of two kinds of cells [SIDE * SIDE, 32]."""
    random = generator(1, "tokens")
    kinds = random.standard_normal((2, 32))
    kinds /= np.linalg.norm(kinds, axis=1, keepdims=True)
    return kinds[cells.ravel().astype(int)] + noise * random.standard_normal((SIDE * SIDE, 32)) / 6


def _overlap(first, second):
    return (first & second).sum() / (first | second).sum()


def test_candidate_regions__hold_what_differs_from_its_surroundings():
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[4:10, 6:13] = True
    _, regions = candidate_regions(_tokens(cells))
    assert max(_overlap(one.cells, cells) for one in regions) == 1.0


def test_candidate_regions__pieces_are_told_apart():
    first, second = np.zeros((2, SIDE, SIDE), dtype=bool)
    first[2:7, 2:7] = True
    second[10:14, 9:15] = True
    _, regions = candidate_regions(_tokens(first | second))
    for piece in (first, second):
        assert max(_overlap(one.cells, piece) for one in regions) == 1.0


def test_candidate_regions__strength_agrees_with_cells():
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[4:10, 6:13] = True
    for region in candidate_regions(_tokens(cells))[1]:
        assert (region.strength[region.cells] > 0).all()
        assert (region.strength[~region.cells] <= 0).all()


def test_candidate_regions__no_region_twice():
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[4:10, 6:13] = True
    _, regions = candidate_regions(_tokens(cells))
    pairs = [
        _overlap(one.cells, other.cells)
        for number, one in enumerate(regions)
        for other in regions[:number]
    ]
    assert max(pairs, default=0) < 0.92
