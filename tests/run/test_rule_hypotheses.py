"""A value of a column, put to held-out samples."""

import pytest

from weakspot.core.errors import DataError
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.run.ledger import AskedData, Ledger
from weakspot.run.phrase_questions import ClassHalves, Fit, ask_rules
from weakspot.store.project import ProjectStore
from weakspot.testing.examples import CRITERION, confirmation_samples, discovery_samples

METHOD = HypothesisDiscoverer(phrases={})
GREEN = ColumnRule(column="colour", values=("green",))
NOWHERE = AllOfRule(rules=(GREEN, ColumnRule(column="colour", values=("red",))))


@pytest.fixture
def ledger(tmp_path):
    samples = confirmation_samples()
    data = AskedData.of(samples.dataset, samples.rows)
    return Ledger(store=ProjectStore.create(tmp_path), data=data, alpha=0.05, correction="fdr")


@pytest.fixture(scope="module")
def both():
    halves = discovery_samples(), confirmation_samples()
    return ClassHalves.of(halves, CRITERION, "disc", METHOD, is_compared=False)


def test_ask_rules__counts_both_halves_and_asks_the_ledger_once(both, ledger):
    report = ask_rules(both, {"colour = green": GREEN, "both": NOWHERE}, ledger, by="Ann")
    green, nowhere = report.answers
    for half, answer in (("discovery", green.discovery), ("confirmation", green.confirmation)):
        problem, inside = getattr(both, half).meant(GREEN)
        assert answer.inside.total == inside.sum() > 0
        assert answer.inside.count == problem.failed[inside].sum()
        assert answer.outside.total == (~inside).sum()
    assert green.fit is Fit.GOOD
    assert green.compared_with == "columns"
    assert green.rule == "Samples whose “colour” is green."
    assert green.threshold is None
    assert nowhere.fit is Fit.CANNOT_TELL
    assert nowhere.confirmation.inside.total == 0
    assert report.n_looks == 2
    assert ask_rules(both, {"again": GREEN}, ledger).n_looks == 2


def test_rule_halves__unknown_class():
    halves = discovery_samples(), confirmation_samples()
    with pytest.raises(DataError, match="no class 'zebra'"):
        ClassHalves.of(halves, CRITERION, "zebra", METHOD, is_compared=False)
