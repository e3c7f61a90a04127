import numpy as np

from weakspot.words.caption_judging import word_directions


def test_word_directions__phrase_and_word_count_alike_whatever_their_lengths():
    made = word_directions(
        phrases=np.array([[1.0, 0.1, 0.0]]),
        references=np.array([[1.0, 0.0, 0.0]]),
        words=np.array([[0.0, 0.0, 7.0]]),
        centre=np.array([3.0, 0.0, 0.0]),
    )
    np.testing.assert_allclose(made, [[0.0, 1.0, 1.0]], atol=1e-6)


def test_word_directions__what_a_word_shares_with_the_class_is_taken_away():
    made = word_directions(
        phrases=np.array([[0.0, 1.0]]),
        references=np.array([[0.0, 1.0]]),
        words=np.array([[5.0, 0.5]]),
        centre=np.array([0.1, 0.0]),
    )
    np.testing.assert_allclose(made, [[0.0, 1.0]], atol=1e-6)
