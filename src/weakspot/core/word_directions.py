"""Which way images of a class move that show what words say."""

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows


def word_directions(
    phrases: AnyArray, references: AnyArray, words: AnyArray, centre: AnyArray
) -> FloatArray:
    """Return what words add to a class [m, d], told in two ways that err differently and are taken together.

    A whole phrase less the same phrase without the words ("a photo of a green apple" less "a photo of an apple"), and the words alone
    less what they share with all images of the class.

    Args:
        phrases: embeddings of whole phrases [m, d].
        references: embeddings of the same phrases without the words [m, d].
        words: embeddings of the words alone [m, d].
        centre: mean embedding of the class's images [d].

    >>> made = word_directions(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]]), np.array([2.0, 0.0]))
    >>> made.tolist()
    [[0.0, 2.0]]
    """
    middle = unit_rows(np.asarray(centre, dtype=np.float32)[None])[0]
    alone = np.asarray(words, dtype=np.float32)
    alone = alone - (alone @ middle)[:, None] * middle
    return unit_rows(np.asarray(phrases, dtype=np.float32) - references) + unit_rows(alone)
