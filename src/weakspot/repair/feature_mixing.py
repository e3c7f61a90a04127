"""Mixed training samples: CutMix where there are no pixels, only the features under a last layer."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedFeatures:
    """Mixed samples in the form that a last layer is trained on.

    A mixed sample has the labels of both its parents, each as much as that parent is in it. A cross-entropy is linear in its
    target, so such a sample is the same as two rows with the same features, each with the labels of one parent and its share as
    weight.

    Args:
        features: [2n, d], those of a mixed sample twice.
        targets: class codes [2n] or labels [2n, c] of the parents.
        weights: how much of each parent is in it [2n]; the two of a mixed sample sum to one.
    """

    features: FloatArray
    targets: AnyArray
    weights: DoubleArray


def mixed_features(
    features: FloatArray,
    targets: AnyArray,
    *,
    n_mixed: int,
    random: np.random.Generator,
    concentration: float = 1.0,
) -> MixedFeatures:
    """Return so many mixtures of two training samples each, drawn with replacement.

    Args:
        features: of the training samples [n, d].
        targets: their class codes [n] or labels [n, c].
        n_mixed: how many mixtures.
        random: draws parents and shares.
        concentration: both parameters of the beta distribution that shares are drawn from; 1: every share is as likely.

    Raises:
        DataError: if there is no training sample, or not one target a sample.
        ConfigError: if a number is not positive.
    """
    if not len(features) or len(features) != len(targets):
        raise DataError(
            "Samples to mix need features and one target each.", given=(len(features), len(targets))
        )
    if n_mixed < 1 or not concentration > 0:
        raise ConfigError(
            "The number of mixtures and their concentration must be positive.",
            given=(n_mixed, concentration),
        )
    first, second = random.integers(len(features), size=(2, n_mixed))
    shares = random.beta(concentration, concentration, size=n_mixed)
    part = shares[:, None].astype(np.float32)
    mixed = part * features[first] + (1.0 - part) * features[second]
    return MixedFeatures(
        features=np.asarray(np.concatenate([mixed, mixed]), dtype=np.float32),
        targets=np.concatenate([targets[first], targets[second]]),
        weights=np.concatenate([shares, 1.0 - shares]),
    )
