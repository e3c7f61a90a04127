import numpy as np
import pytest
from tests import build

from weakspot.core.rules import LinearRule
from weakspot.core.slices import DataUse, FailureSlice


@pytest.fixture
def make_samples():
    """Build apples and pears; `marks` says which apples carry the mark, `wrong` which are taken for pears."""

    def make(marks, wrong, *, n_pears=0, hashes=None, splits=None):
        n_apples = len(marks)
        labels = [0] * n_apples + [1] * n_pears
        predictions = np.array([int(one) for one in wrong] + [1] * n_pears, dtype=np.int64)
        embeddings = np.zeros((len(labels), 2), dtype=np.float32)
        embeddings[:n_apples, 0] = np.where(marks, 1.0, -1.0)
        embeddings[n_apples:, 0] = -1.0
        embeddings[:, 1] = 0.1
        return build.samples(
            labels,
            predictions=predictions,
            content_hashes=hashes,
            splits=splits,
            embeddings=embeddings,
            name="all",
        )

    return make


@pytest.fixture
def marked():
    """Build the slice of marked samples."""

    def make(samples, class_name="apple", *, threshold=0.0):
        rule = LinearRule(encoder_id="toy", direction=(1.0, 0.0), threshold=threshold)
        use = DataUse(name="discovery", n_samples=len(samples), digest=samples.digest())
        return FailureSlice(class_name=class_name, rule=rule, method="directions", found_on=use)

    return make
