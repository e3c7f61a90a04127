import pytest
from tests.build import evidence_of, record_of, slice_of

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Verdict
from weakspot.repair.stage import are_exploratory, chosen_slices

CAT, DOG = (slice_of([name], class_name=name) for name in ("cat", "dog"))


@pytest.fixture
def record():
    """A run in which only the cats were confirmed."""
    verdicts = ((CAT, Verdict.CONFIRMED), (DOG, Verdict.NOT_CONFIRMED))
    return record_of(CAT, DOG, evidence=tuple(evidence_of(*one) for one in verdicts))


def test_chosen_slices__confirmed_ones_only(record):
    assert chosen_slices(record, ()) == (CAT,)
    with pytest.raises(ConfigError, match="no confirmed slice"):
        chosen_slices(record, (DOG.slice_id,))


def test_chosen_slices__exploratory__unconfirmed_ones_by_name(record):
    assert chosen_slices(record, (DOG.slice_id[:10],), is_exploratory=True) == (DOG,)
    with pytest.raises(ConfigError, match="slices that are named"):
        chosen_slices(record, (), is_exploratory=True)
    with pytest.raises(ConfigError, match="no slice, or several"):
        chosen_slices(record, ("ffffffffffff0",), is_exploratory=True)


def test_are_exploratory__one_unconfirmed_slice_is_enough(record):
    assert not are_exploratory(record, (CAT,), None)
    assert are_exploratory(record, (CAT, DOG), None)
