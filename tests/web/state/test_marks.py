"""Marks in the shared state: said once, taken back, undone, and refused where somebody was faster."""

import pytest

from weakspot.web.problems import RefusedError
from weakspot.web.services.workspace import MarkKind, NewMark
from weakspot.web.state.changes import (
    MARKS,
    Change,
    SharedState,
    changes_of,
    keep_selection,
    mark_samples,
    refuse_stale,
    take_back,
    undo_marks,
    version_of,
)


def _change(by="Ada", sentence="Marked."):
    return Change(kind=MARKS, subject=MARKS, sentence=sentence, by=by)


def _label(*names):
    return NewMark(kind=MarkKind.LABEL, labels=list(names))


def _said(state, sample_id):
    return [one.words for one in SharedState(state).marks().of(sample_id)]


def test_mark_samples__label_twice__the_second_takes_the_place(state):
    mark_samples(state, ["a", "b"], _label("pear"), change=_change(), seen=None)
    mark_samples(state, ["a"], _label("plum"), change=_change(), seen=None)
    mark_samples(state, ["a"], NewMark(kind=MarkKind.TAG, text="blurred"), change=_change(), seen=0)
    assert _said(state, "a") == ["label is wrong, it is plum", "tag: blurred"]
    assert _said(state, "b") == ["label is wrong, it is pear"]
    assert SharedState(state).marks().counts() == {"label": 2, "unusable": 0, "note": 0, "tag": 1}


def test_mark_samples__somebody_was_faster__refused_and_nothing_is_lost(state):
    seen = version_of(state)
    mark_samples(state, ["a"], _label("pear"), change=_change("Ada", "It is pear."), seen=seen)
    with pytest.raises(RefusedError, match="Ada was faster: It is pear") as refused:
        mark_samples(state, ["b", "a"], _label("plum"), change=_change("Bob"), seen=seen)
    assert refused.value.status == 409
    assert _said(state, "a") == ["label is wrong, it is pear"]
    assert _said(state, "b") == []
    mark_samples(state, ["a"], _label("pear"), change=_change("Bob"), seen=seen)
    mark_samples(state, ["a"], _label("plum"), change=_change("Bob"), seen=version_of(state))
    assert _said(state, "a") == ["label is wrong, it is plum"]


def test_undo_marks__replaced_mark__is_said_again(state):
    mark_samples(state, ["a"], _label("pear"), change=_change(), seen=None)
    second = mark_samples(state, ["a"], _label(), change=_change(), seen=None)
    undo_marks(state, second, change=_change("Bob"))
    assert _said(state, "a") == ["label is wrong, it is pear"]
    assert changes_of(state, before=None, limit=9)[1].undone_by == 3


def test_undo_marks__changed_since__refused(state):
    first = mark_samples(state, ["a"], _label("pear"), change=_change(), seen=None)
    gone = mark_samples(state, ["b"], _label("pear"), change=_change(), seen=None)
    mark_samples(state, ["a"], _label("plum"), change=_change("Bob", "Plum."), seen=None)
    with pytest.raises(RefusedError, match="Bob changed the same marks since: Plum"):
        undo_marks(state, first, change=_change())
    back, n_taken = take_back(state, ["b"], kind=None, text=None, change=_change())
    assert n_taken == 1
    mark_samples(state, ["b"], _label("fig"), change=_change("Bob", "Fig."), seen=None)
    for number in (gone, back):
        with pytest.raises(RefusedError, match="changed the same marks since"):
            undo_marks(state, number, change=_change())
    assert _said(state, "b") == ["label is wrong, it is fig"]


def test_undo_marks__undone_already__refused(state):
    mark_samples(state, ["a"], _label("pear"), change=_change(), seen=None)
    back, _ = take_back(state, ["a"], kind=None, text=None, change=_change())
    undo_marks(state, back, change=_change("Bob"))
    with pytest.raises(RefusedError, match="Bob has undone this already"):
        undo_marks(state, back, change=_change())
    assert _said(state, "a") == ["label is wrong, it is pear"]


def test_take_back__one_tag__others_stay(state):
    for tag in ("dark", "blurred"):
        mark_samples(
            state, ["a"], NewMark(kind=MarkKind.TAG, text=tag), change=_change(), seen=None
        )
    take_back(state, ["a"], kind=MarkKind.TAG, text="dark", change=_change())
    assert _said(state, "a") == ["tag: blurred"]
    assert list(SharedState(state).marks().samples("tag:blurred")) == ["a"]
    assert list(SharedState(state).marks().samples("tag:dark")) == []


def test_keep_selection__same_samples__same_name(state):
    name = keep_selection(state, ["b", "a"])
    assert keep_selection(state, ["a", "b", "b"]) == name
    assert SharedState(state).selection(name) == ["a", "b"]
    assert SharedState(state).selection("none") is None


def test_refuse_stale__other_subject_or_known_change__nothing(state):
    mark_samples(state, ["a"], _label("pear"), change=_change(), seen=None)
    refuse_stale(state, "slice 1", 0)
    refuse_stale(state, MARKS, 1)
    refuse_stale(state, MARKS, None)
    with pytest.raises(RefusedError, match="Ada was faster"):
        refuse_stale(state, MARKS, 0)
