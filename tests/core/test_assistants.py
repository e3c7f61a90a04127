import numpy as np

from weakspot.core.assistants import NO_ASSISTANTS, Assistants


def test_says__measured_words_by_their_area_and_others_not():
    areas = {"green": 0.8, "striped": 0.79}
    helped = Assistants(
        trust=lambda words: np.ones(len(words)),
        measured=lambda words: np.array([areas.get(word, np.nan) for word in words]),
    )
    assert helped.says(["green", "striped", "ripe"]).tolist() == [1.0, 0.0, 0.0]


def test_says__nothing_measured__the_trust():
    trusting = Assistants(trust=lambda words: np.full(len(words), 0.4))
    assert trusting.says(["green"]).tolist() == [0.4]
    silent = Assistants(measured=lambda _: None)
    assert silent.says(["green"]) is None
    assert NO_ASSISTANTS.says is None
