import numpy as np
import pytest

from weakspot.core.assistants import MIN_TRUST
from weakspot.core.evidence import Share
from weakspot.core.statistics import fisher_p
from weakspot.discover.error_score import error_scores
from weakspot.run.phrase_questions import RULE, Fit, judge, largest_difference, matches

MANY = Share.of(60, 400)
INSIDE, OUTSIDE = Share.of(40, 200), Share.of(40, 200)


def _judge(**changes):
    given = {"separates": False, "matching": MANY, "inside": INSIDE, "outside": OUTSIDE}
    return judge(**given | changes)


def test_judge__fits_and_separates():
    assert _judge(separates=True).fit is Fit.GOOD


def test_judge__fits_and_does_not__says_how_large_a_difference_may_be():
    judged = _judge()
    assert judged.fit is Fit.MATCHES_ONLY
    assert "8 points at most" in judged.advice
    assert largest_difference(INSIDE, OUTSIDE) == pytest.approx(0.0785, abs=1e-3)


def test_judge__too_few_fit__says_how_many():
    for count in (0, 1, 4):
        judged = _judge(matching=Share.of(count, 100))
        assert judged.fit is Fit.CANNOT_TELL
        assert f" {count} of 100 " in judged.advice
    assert not matches(Share.of(5, 300))
    assert matches(Share.of(5, 100))


def test_judge__too_few_held_out__says_how_many():
    judged = _judge(inside=Share.of(0, 2), outside=Share.of(10, 40))
    assert judged.fit is Fit.CANNOT_TELL
    assert "There are 2 held-out samples" in judged.advice


def test_judge__a_large_difference_is_not_ruled_out__is_not_denied():
    judged = _judge(inside=Share.of(6, 15), outside=Share.of(10, 40))
    assert judged.fit is Fit.CANNOT_TELL
    assert "cannot be ruled out" in judged.advice


def test_judge__unknown_words():
    assert _judge(trust=MIN_TRUST).fit is Fit.MATCHES_ONLY
    assert _judge(trust=MIN_TRUST - 0.01).fit is Fit.CANNOT_TELL
    assert _judge(separates=True, trust=MIN_TRUST - 0.01).fit is Fit.SEPARATES_ONLY


def test_judge__no_threshold_is_better_than_guessing__does_not_separate():
    assert _judge(inside=None, outside=None).fit is Fit.MATCHES_ONLY


def test_judge__never_says_that_other_words_will_not_help():
    for wording in ({}, {"wording": RULE}):
        for matching in (MANY, Share.of(1, 100)):
            for separates in (True, False):
                said = _judge(separates=separates, matching=matching, **wording).advice
                assert "will not help" not in said


def test_null__phrases_that_have_nothing_to_do_with_failures_seldom_fit():
    draws = np.random.default_rng(5)
    n_good = 0
    for _ in range(400):
        failed = draws.random(240) < 0.25
        similarity = draws.normal(size=240).astype(np.float32)
        cut = float(error_scores(similarity[None, :120], failed[:120]).threshold[0])
        inside, wrong = similarity[120:] >= cut, failed[120:]
        counts = int(wrong[inside].sum()), int(inside.sum())
        others = int(wrong[~inside].sum()), int((~inside).sum())
        separates = fisher_p(*counts, *others) <= 0.05
        said = judge(
            separates=separates,
            matching=Share.of(counts[1], 120),
            inside=Share.of(*counts),
            outside=Share.of(*others),
        )
        n_good += said.fit is Fit.GOOD
    assert n_good <= 0.05 * 400
