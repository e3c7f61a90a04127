import base64

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.core.slices import DataUse
from weakspot.web.services.slices import (
    Shown,
    half_of,
    look_at,
    run_of,
    sample_page,
    slice_scores,
    slice_table,
)


def _rows(page):
    return [one.row for one in page.samples]


def _page(workspace, words, kind=Shown.MEMBERS, *, offset=0, limit=500):
    return sample_page(workspace, *_found(workspace, words), kind, offset=offset, limit=limit)


def _found(workspace, words):
    record = run_of(workspace)
    line = next(line for line in slice_table(workspace).slices if line.words == words)
    return record, record.slice_by_id(line.slice_id)


@pytest.mark.parametrize("kind", list(Shown))
def test_sample_page__of_any_kind__shows_only_the_discovery_half_of_the_class(sliced, kind):
    page = _page(sliced, "green", kind)
    rows, dataset = _rows(page), sliced.samples.dataset
    assert set(rows) <= set(sliced.discovery.rows.tolist())
    assert not set(rows) & set(sliced.confirmation.rows.tolist())
    assert {dataset.class_names[code] for code in dataset.labels[rows]} <= {"apple"}
    assert len(rows) == page.total == len(set(rows))


def test_sample_page__members_and_outside__are_the_whole_class_deepest_first(sliced):
    record, found = _found(sliced, "far along")
    members, outside = (_page(sliced, "far along", kind) for kind in (Shown.MEMBERS, Shown.OUTSIDE))
    depths = [one.score for page in (members, outside) for one in page.samples]
    assert depths == sorted(depths, reverse=True)
    assert members.total == look_at(sliced, record, found).counts[1]
    assert members.total + outside.total == len(sliced.problem("apple").rows)


def test_sample_page__counter_examples__are_right_members_then_failures_outside(sliced):
    page, members = (_page(sliced, "green", kind) for kind in (Shown.COUNTER, Shown.MEMBERS))
    first, second = page.samples[: page.n_first], page.samples[page.n_first :]
    assert first == [one for one in members.samples if not one.is_failure]
    assert {one.answer for one in first} == {"apple"}
    assert second
    assert all(one.is_failure for one in second)
    assert not {one.row for one in second} & set(_rows(members))


def test_sample_page__slice_made_without_predictions__shows_the_discovery_half(sliced):
    record, found = _found(sliced, "green")
    blind = found.model_copy(update={"found_on": DataUse.nothing()})
    whole, own = (
        _rows(sample_page(sliced, record, one, Shown.MEMBERS, offset=0, limit=500))
        for one in (found, blind)
    )
    assert own == whole != []


def test_sample_page__by_parts__is_the_same_as_at_once(sliced):
    whole = _rows(_page(sliced, "green"))
    parts = [
        _rows(_page(sliced, "green", offset=offset, limit=7)) for offset in range(0, len(whole), 7)
    ]
    assert [row for part in parts for row in part] == whole
    assert not _page(sliced, "green", offset=10**9, limit=7).samples


def test_slice_scores__unpacked__give_the_counts_of_the_slice(sliced):
    record, found = _found(sliced, "far along")
    packed = slice_scores(sliced, record, found)
    scores = np.frombuffer(base64.b64decode(packed.scores), dtype="<f4")
    failed = np.frombuffer(base64.b64decode(packed.failed), dtype=np.uint8)
    assert len(scores) == len(failed) == packed.n_samples
    is_member = scores >= packed.threshold
    counts = int(failed[is_member].sum()), int(is_member.sum())
    assert counts == look_at(sliced, record, found).counts[:2]


def test_slice_scores__of_a_rule_without_threshold__are_refused(sliced):
    record, found = _found(sliced, "green")
    with pytest.raises(DataError, match="threshold"):
        slice_scores(sliced, record, found)


def test_half_of__a_slice_that_was_found_on_other_samples__is_refused(sliced):
    _, found = _found(sliced, "green")
    other = found.model_copy(update={"found_on": DataUse(name="other", n_samples=1, digest="x")})
    with pytest.raises(DataError, match="other samples"):
        half_of(sliced, other)
    swapped = found.model_copy(update={"found_on": DataUse.of(sliced.confirmation)})
    with pytest.raises(DataError, match="other samples"):
        half_of(sliced, swapped)
