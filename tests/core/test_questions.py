"""Names of questions to held-out samples."""

import numpy as np

from weakspot.core.questions import QuestionKeys
from weakspot.testing.examples import confirmation_samples


def test_key__same_members_and_failures_of_the_same_samples__same_question():
    samples = confirmation_samples()
    rows, inside = samples.rows[:9], np.arange(9) < 4
    failed = np.arange(9) % 2 == 0
    key = QuestionKeys(samples.dataset).key("disc", rows, inside, failed)
    assert QuestionKeys(samples.dataset).key("disc", rows.copy(), inside, failed) == key
    back = slice(None, None, -1)
    other = QuestionKeys(samples.dataset).key("disc", rows[back], inside[back], failed[back])
    assert other == key
    groups = np.arange(9) // 2
    keys = QuestionKeys(samples.dataset)
    assert keys.key("disc", rows, inside, failed, groups=groups) == keys.key(
        "disc", rows, inside, failed, groups=9 - groups
    )


def test_key__anything_that_the_answer_follows_from__makes_another_question():
    samples = confirmation_samples()
    keys = QuestionKeys(samples.dataset)
    rows, inside = samples.rows[:9], np.arange(9) < 4
    failed = np.arange(9) % 2 == 0
    asked = [
        keys.key("disc", rows, inside, failed),
        keys.key("star", rows, inside, failed),
        keys.key("disc", samples.rows[1:10], inside, failed),
        keys.key("disc", rows, ~inside, failed),
        keys.key("disc", rows, inside, ~failed),
        keys.key("disc", rows, inside, failed, groups=np.arange(9) // 2),
    ]
    assert len(set(asked)) == 6
