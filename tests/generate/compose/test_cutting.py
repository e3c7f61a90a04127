import numpy as np
import pytest

from weakspot.generate.compose.placing import (
    ALL_OBJECT,
    NO_OBJECT,
    Cut,
    cut_by_coverage,
    cut_by_mask,
)

PIXELS = np.zeros((60, 80, 3), dtype=np.uint8)


def test_cut_by_mask__takes_what_the_mask_says():
    mask = np.zeros((30, 40), dtype=np.uint8)
    mask[10:20, 15:25] = 255
    cut = cut_by_mask(PIXELS, mask)
    assert cut.box == (20, 30, 40, 50)
    assert cut.is_given
    assert cut_by_mask(PIXELS, np.zeros((30, 40), dtype=np.uint8)) == "the mask is empty"


def test_cut_by_coverage__fits_the_image_whatever_its_size():
    coverage = np.zeros((30, 40), dtype=np.float32)
    coverage[10:20, 15:25] = 1.0
    cut = cut_by_coverage(PIXELS, coverage)
    assert cut.alpha.shape == (60, 80)
    assert np.abs(np.array(cut.box) - (20, 30, 40, 50)).max() <= 1
    assert not cut.is_given


@pytest.mark.parametrize(("level", "why"), [(0.2, NO_OBJECT), (1.0, ALL_OBJECT)])
def test_cut_by_coverage__says_why_there_is_no_object(level, why):
    assert cut_by_coverage(PIXELS, np.full((30, 40), level, dtype=np.float32)) == why


@pytest.mark.parametrize(
    ("rows", "is_whole"), [((20, 50), True), ((30, 60), False), ((0, 20), False)]
)
def test_is_whole__what_the_edge_cuts_is_not(rows, is_whole):
    alpha = np.zeros((60, 80), dtype=np.float32)
    alpha[rows[0] : rows[1], 20:50] = 1.0
    assert Cut(pixels=PIXELS, alpha=alpha).is_whole is is_whole
