import numpy as np
import pytest

from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.run import DecisionKind
from weakspot.web.services.slice_editing import PickedRows, part_numbers, slice_from_rows
from weakspot.web.services.slices import run_of


def _green(samples):
    """Return the rows of a set that hold green apples."""
    dataset = samples.dataset
    is_green = np.array(dataset.metadata("colour").to_pylist()) == "green"
    return samples.rows[
        is_green[samples.rows] & (dataset.labels[samples.rows] == dataset.class_code("apple"))
    ]


def _made(workspace, rows, *, title="apple", words="green ones", tables=""):
    asked = PickedRows(title=title, rows=list(map(int, rows)), words=words, tables=tables)
    return slice_from_rows(workspace, asked, by="Ada")


def test_slice_from_rows__of_samples_that_look_alike__holds_for_unseen_ones_and_is_proven(sliced):
    green = _green(sliced.discovery)
    made = _made(sliced, green, tables=sliced.tables_key)
    assert (made.n_picked, made.n_left_out) == (len(green), 0)
    assert made.agreement.precision >= 0.9
    assert made.agreement.recall >= 0.9
    record = run_of(sliced)
    found = record.slice_by_id(made.line.slice_id)
    hidden = sliced.confirmation
    members = set(found.members(hidden, found.class_rows(hidden)).tolist())
    unseen = set(_green(sliced.confirmation).tolist())
    assert len(members & unseen) / len(members | unseen) > 0.85
    # It has the members of a slice that is there already; tested or not, it is measured with all others.
    assert made.line.verdict in ("confirmed", "same as another slice")
    assert len(record.evidence) == len(record.slices) == 4
    (decided,) = record.decisions
    told = decided.kind, decided.by, decided.slice_id
    assert told == (DecisionKind.ACCEPTED, "Ada", made.line.slice_id)


def test_slice_from_rows__of_samples_picked_at_random__agrees_little_with_the_pick(sliced):
    rows = np.random.default_rng(1).choice(sliced.problem("apple").rows, 30, replace=False)
    made = _made(sliced, rows, words="anything")
    assert made.agreement.precision < 0.7
    assert made.line.verdict != "confirmed"


def test_slice_from_rows__rows_of_other_classes_and_of_the_other_half__are_left_out(sliced):
    green, hidden = _green(sliced.discovery), _green(sliced.confirmation)
    pears = sliced.problem("pear").rows[:9]
    made = _made(sliced, [*green, *hidden, *pears, 10**9])
    assert (made.n_picked, made.n_left_out) == (len(green), len(hidden) + len(pears) + 1)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"rows": [1, 3, 5]}, NotEnoughDataError),
        ({"title": "plum"}, DataError),
        ({"tables": "of yesterday"}, DataError),
    ],
)
def test_slice_from_rows__of_what_cannot_be_a_slice__is_refused(sliced, change, kind):
    with pytest.raises(kind):
        _made(sliced, **{"rows": _green(sliced.discovery), **change})
    assert run_of(sliced).decisions == ()


def test_slice_from_rows__everybody_picked__is_refused(sliced):
    with pytest.raises(NotEnoughDataError, match="picked"):
        _made(sliced, sliced.problem("apple").rows)


def test_part_numbers__groups_stay_whole():
    objects = np.repeat(np.arange(20), 4)
    parts = part_numbers(objects < 6, objects, np.random.default_rng(0)).reshape(20, 4)
    assert (parts == parts[:, :1]).all()
    assert len(set(parts[:6, 0].tolist())) == 5
    one = part_numbers(objects < 1, objects, np.random.default_rng(0))
    assert len(set(one[:4].tolist())) == 4
