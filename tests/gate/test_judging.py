from datetime import date

import pytest

from weakspot.gate.check import Acceptances
from weakspot.gate.figures import Figures, Sighting, SubjectKind, Tally
from weakspot.gate.policy import AcceptedSlice
from weakspot.gate.result import PolicyEntry, Ruling

DAY = date(2026, 3, 1)
TALLY = Tally(
    subject="green apples",
    kind=SubjectKind.SLICE,
    n_samples=50,
    n_failed=30,
    slice_id="abc",
)
SIGHTING = Sighting(
    subject="green apples",
    slice_id="abc",
    p_value=0.0,
    q_value=0.0,
    known_id="old",
    known_as="apple: pale",
)
ENTRY = PolicyEntry(
    rule="slice_gap",
    subject="green apples",
    slice_id="abc",
    verdict=Ruling.VIOLATED,
    sentence="It fails.",
)


def _acceptances(name, today, sightings=(SIGHTING,)):
    listed = [AcceptedSlice(slice=name, reason="because", until=DAY)]
    return Acceptances(listed, Figures(tallies=(TALLY,), sightings=sightings), today)


@pytest.mark.parametrize("name", ["abc", "green apples", "old", "apple: pale"])
def test_acceptances__a_slice_goes_by_its_names_of_now_and_before_and_that_in_the_baseline(name):
    accepted = _acceptances(name, DAY)
    assert accepted.ids == ("abc",)
    assert accepted.applied(ENTRY).verdict is Ruling.ACCEPTED
    assert accepted.applied(ENTRY).sentence == "It fails. Accepted until 2026-03-01: because."


def test_acceptances__after_its_day_the_violation_stands_and_so_does_one_of_the_entry():
    over = _acceptances("abc", date(2026, 3, 2))
    assert over.ids == ()
    assert over.applied(ENTRY).verdict is Ruling.VIOLATED
    assert "accepted until 2026-03-01, which is over" in over.applied(ENTRY).sentence
    assert [entry.verdict for entry in over.entries()] == [Ruling.VIOLATED]


def test_acceptances__an_entry_without_its_slice_can_be_removed():
    gone = _acceptances("never seen", date(2027, 1, 1))
    (entry,) = gone.entries()
    assert (entry.verdict, entry.subject) == (Ruling.KEPT, "never seen")
    assert "can be removed" in entry.sentence
    assert gone.applied(ENTRY) == ENTRY
