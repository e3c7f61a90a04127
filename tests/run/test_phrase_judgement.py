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


@pytest.mark.parametrize(
    ("changes", "fit", "words"),
    [
        ({"separates": True}, Fit.GOOD, "fail more often"),
        ({}, Fit.MATCHES_ONLY, "8 points at most"),
        ({"matching": Share.of(0, 100)}, Fit.CANNOT_TELL, " 0 of 100 "),
        ({"matching": Share.of(4, 100)}, Fit.CANNOT_TELL, " 4 of 100 "),
        (
            {"inside": Share.of(0, 2), "outside": Share.of(10, 40)},
            Fit.CANNOT_TELL,
            "There are 2 held-out samples",
        ),
        (
            {"inside": Share.of(6, 15), "outside": Share.of(10, 40)},
            Fit.CANNOT_TELL,
            "cannot be ruled out",
        ),
        ({"trust": MIN_TRUST}, Fit.MATCHES_ONLY, ""),
        ({"trust": MIN_TRUST - 0.01}, Fit.CANNOT_TELL, "trust 0.44"),
        ({"separates": True, "trust": MIN_TRUST - 0.01}, Fit.SEPARATES_ONLY, ""),
        ({"inside": None, "outside": None}, Fit.MATCHES_ONLY, ""),
        ({"separates": True, "matching": Share.of(1, 100)}, Fit.SEPARATES_ONLY, "1 of 100"),
    ],
)
@pytest.mark.parametrize("wording", [{}, {"wording": RULE}])
def test_judge__says_what_is_known_and_no_more(changes, fit, words, wording):
    found, advice = _judge(**changes, **wording)
    assert found is fit
    assert wording or words in advice
    assert "will not help" not in advice


def test_largest_difference__and_how_many_must_match():
    assert largest_difference(INSIDE, OUTSIDE) == pytest.approx(0.0785, abs=1e-3)
    assert not matches(Share.of(5, 300))
    assert matches(Share.of(5, 100))


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
        fit, _ = judge(
            separates=fisher_p(*counts, *others) <= 0.05,
            matching=Share.of(counts[1], 120),
            inside=Share.of(*counts),
            outside=Share.of(*others),
        )
        n_good += fit is Fit.GOOD
    assert n_good <= 0.05 * 400
