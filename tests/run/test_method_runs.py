import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.discover.attributes import AttributesDiscoverer
from weakspot.discover.keywords import KeywordsDiscoverer
from weakspot.run.methods import run_method, with_tested, word_methods
from weakspot.run.settings import Settings
from weakspot.testing.examples import ASSISTANTS, discovery_samples

CRITERION = FailureCriterion()


def test_word_methods__words_explain_what_others_find():
    attributes, keywords = (
        ("attributes", AttributesDiscoverer()),
        ("keywords", KeywordsDiscoverer()),
    )
    assert word_methods([attributes, keywords]) == {"keywords"}
    assert word_methods([keywords]) == frozenset()


def test_run_method__one_that_cannot_work__is_a_note_beside_others():
    class Failing(AttributesDiscoverer):
        def discover(self, *args, **given):
            raise NotEnoughDataError("Too few samples.")

    given = discovery_samples(), CRITERION, Settings(), ASSISTANTS
    record, found = run_method("failing", Failing(), *given, alone=False)
    assert ("Too few" in record.note, found.slices) == (True, ())
    with pytest.raises(NotEnoughDataError):
        run_method("failing", Failing(), *given, alone=True)


def test_run_method__a_baseline__is_counted_and_never_put_forward():
    class Baseline(AttributesDiscoverer):
        @property
        def is_baseline(self):
            return True

    given = discovery_samples(), CRITERION, Settings(), ASSISTANTS
    run = run_method("attributes", AttributesDiscoverer(), *given, alone=True)
    assert with_tested(run, run[1].slices).n_tested == run[0].n_found == len(run[1].slices) > 0
    assert run_method("baseline", Baseline(), *given, alone=True)[0].n_found == 0
