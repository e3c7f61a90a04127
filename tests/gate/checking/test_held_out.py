import pytest

from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.gate.baseline import Baseline
from weakspot.gate.runs import ensure_run, find_sightings, held_out


@pytest.fixture
def run(table_project):
    project = table_project()
    record = ensure_run(project).record
    samples = project.samples(record)
    return (
        record,
        held_out(record, samples, project.settings, project.settings.failure.criterion()),
        samples,
    )


def _with_rule(record, rule):
    """Return a record whose only finding has another rule and therefore another id."""
    found, entry = record.published()[0]
    other = found.model_copy(update={"rule": rule})
    return record.model_copy(
        update={
            "slices": (other,),
            "evidence": (entry.model_copy(update={"slice_id": other.slice_id}),),
            "decisions": (),
        }
    )


def test_sighted__the_same_slice_is_known_by_its_id(run):
    record, now, samples = run
    (one,) = find_sightings(record, Baseline(run=record), now, samples, same_at=1.0)
    assert (one.known_id, one.overlap, one.is_new) == (one.slice_id, 1.0, False)


def test_sighted__another_rule_with_the_same_members_is_known(run):
    record, now, samples = run
    before = _with_rule(record, ColumnRule(column="kind", values=("green", "blue")))
    (one,) = find_sightings(record, Baseline(run=before), now, samples, same_at=0.5)
    assert one.known_id != one.slice_id
    assert one.overlap == 1.0


def test_sighted__a_rule_with_other_members_is_new(run):
    record, now, samples = run
    before = _with_rule(record, ColumnRule(column="kind", values=("red",)))
    (one,) = find_sightings(record, Baseline(run=before), now, samples, same_at=0.5)
    assert one.is_new
    assert one.overlap == 0.0


def test_sighted__where_the_rule_cannot_be_read_the_written_members_are_compared(run):
    record, now, samples = run
    unreadable = LinearRule(encoder_id="another", direction=(1.0,))
    before = _with_rule(record, unreadable)
    members = now[1].slice_members[record.published()[0][0].slice_id]
    predictions = now[1].model_copy(update={"slice_members": {before.slices[0].slice_id: members}})
    (one,) = find_sightings(
        record, Baseline(run=before, predictions=predictions), now, samples, same_at=0.5
    )
    assert one.known_id == before.slices[0].slice_id
