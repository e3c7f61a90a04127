import numpy as np
import pytest
from tests.build import evidence_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Explanation, Verdict
from weakspot.core.repairs import SliceStatus
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import adjusted_p_values
from weakspot.repair.reverification import aftermath

ALPHA = 0.1


@pytest.fixture
def confirmation():
    """Twelve apples: 0 to 5 are green, 0 to 3 are wet, 6 to 11 are big."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 12,
        metadata={
            "green": [True] * 6 + [False] * 6,
            "wet": [True] * 4 + [False] * 8,
            "big": [False] * 6 + [True] * 6,
            "ripe": [False] * 2 + [True] * 6 + [False] * 4,
        },
    )
    return SampleSet(dataset=dataset, rows=np.arange(12), name="confirmation")


def _evidence(found, failures, *, q_value=0.01, outside=1, verdict=None, **changes):
    told = verdict or (Verdict.CONFIRMED if q_value <= ALPHA else Verdict.NOT_CONFIRMED)
    counts = {"inside": (failures, 20), "outside": (outside, 20)}
    return evidence_of(found, told, q_value=q_value, **counts, **changes)


@pytest.fixture
def judge(confirmation):
    """Judge repaired slices by their evidence before and after; `found` is what was found afterwards."""

    def build(slices, before, after, found=(), alpha=ALPHA):
        known, now = ({one.slice_id: one for one in entries} for entries in (before, after))
        return aftermath(slices, known, now, list(found), confirmation, alpha=alpha)

    return build


@pytest.mark.parametrize(
    ("failures", "q_value", "outside", "status"),
    [
        (2, 0.6, 1, SliceStatus.GONE),  # no longer confirmed
        # Confirmed by another correction, but no worse than the rest.
        (4, 0.05, 5, SliceStatus.GONE),
        (8, 0.05, 1, SliceStatus.SMALLER),  # exactly a fifth less
        (9, 0.05, 1, SliceStatus.STAYS),
        (10, 0.05, 1, SliceStatus.STAYS),
        # As many failures as before: the test alone got less sure.
        (10, 0.11, 1, SliceStatus.STAYS),
        (12, 0.9, 19, SliceStatus.STAYS),  # the rest got worse; that is no repair
    ],
)
def test_aftermath__statuses(make_slice, judge, failures, q_value, outside, status):
    green = make_slice()
    after = _evidence(green, failures, q_value=q_value, p_value=q_value, outside=outside)
    told = judge([green], [_evidence(green, 10)], [after])
    (found,) = told.slices
    assert found.status is status
    assert (found.failures_before, found.failures_after) == (10, failures)
    assert (found.n_members, found.q_value) == (20, q_value)
    # What "gone" means is said where something is gone, and nowhere else.
    assert ("can no longer be shown" in told.note) == (status is SliceStatus.GONE)


def test_aftermath__what_was_not_tested_is_never_gone(make_slice, judge):
    green = make_slice()
    entry = _evidence(green, 0, q_value=1.0, verdict=Verdict.TOO_FEW)
    told = judge([green], [_evidence(green, 10)], [entry])
    assert (told.slices[0].status, told.slices[0].q_value) == (SliceStatus.SMALLER, None)
    assert "One repaired slice could not be tested again" in told.note


def test_aftermath__a_slice_with_the_same_members_speaks_for_another(make_slice, judge):
    green, wet = make_slice(), make_slice("wet")
    after = [
        _evidence(green, 6, q_value=0.02, p_value=0.02),
        _evidence(wet, 5, q_value=1.0, verdict=Verdict.SAME, same_as=green.slice_id),
    ]
    told = judge([green, wet], [_evidence(one, 10) for one in (green, wet)], after)
    assert [(one.status, one.q_value) for one in told.slices] == [(SliceStatus.SMALLER, 0.02)] * 2


def test_aftermath__gone_does_not_get_easier_with_more_tests(make_slice, judge):
    # Among 120 tests a p-value of 0.02 is nothing; among the two slices that were repaired it is 0.04.
    green, big = make_slice(), make_slice("big")
    after = [
        _evidence(green, 7, q_value=0.6, p_value=0.02, n_tested=120),
        _evidence(big, 4, q_value=1.0, p_value=0.3, n_tested=120),
    ]
    told = judge([green, big], [_evidence(one, 10) for one in (green, big)], after)
    assert [one.status for one in told.slices] == [SliceStatus.SMALLER, SliceStatus.GONE]
    assert [one.q_value for one in told.slices] == [pytest.approx(0.04), pytest.approx(0.3)]
    assert "not that it is proven" in told.note


def test_aftermath__new_slices_are_those_that_overlap_less_than_half(make_slice, judge):
    # Of green (0 to 5): wet (0 to 3) shares 4 of 6 and is old; ripe (2 to 7) shares 4 of 8, just one half, and is old; big is new.
    green, wet, ripe, big = make_slice(), make_slice("wet"), make_slice("ripe"), make_slice("big")
    pear = make_slice(class_name="pear")
    before = [_evidence(one, 4) for one in (green, wet, ripe, big, pear)]
    found = [(one, _evidence(one, 7)) for one in (wet, ripe, big, pear)]
    told = judge([green], before, [_evidence(green, 4)], found)
    new = [one for one in told.slices if one.status is SliceStatus.NEW]
    # A slice of another class is never the same, whatever its members.
    assert [one.slice_id for one in new] == [big.slice_id, pear.slice_id]
    assert (new[0].failures_before, new[0].failures_after, new[0].n_members) == (4, 7, 20)
    assert told.measured_on.n_samples == 12


def test_aftermath__new_slices_pay_for_all_tests_that_were_made(make_slice, judge):
    # Ten tests; nine old slices were confirmed again and made the last place cheap: q = 0.09 by rank ten, but 0.9 on its own.
    green, big = make_slice(), make_slice("big")

    def judged(entry):
        before = [_evidence(one, 4) for one in (green, big)]
        after = [_evidence(green, 4, n_tested=10)]
        return judge([green], before, after, [(big, entry)]).slices

    borrowed = _evidence(big, 7, q_value=0.09, p_value=0.09, n_tested=10)
    assert [one.status for one in judged(borrowed)] == [SliceStatus.STAYS]
    earned = _evidence(big, 7, q_value=0.005, p_value=0.004, n_tested=10)
    assert judged(earned)[1].q_value == pytest.approx(0.04)
    heavier = earned.model_copy(update={"weight": 4.0})
    assert judged(heavier)[1].q_value == pytest.approx(0.01)
    held = borrowed.model_copy(update={"correction": "fwer"})
    assert judged(held)[1].q_value == pytest.approx(0.09)


def test_aftermath__false_news_stay_rare(make_slice, judge):
    # 40 repaired slices still fail for certain, 60 candidates are chance. Taken as they are, the q-values of all 100 tests let
    # some chance finding through in nearly every world; what is called new must not appear in more than a tenth of them.
    rule = make_slice().rule
    chance = [
        make_slice(class_name="pear", rule=rule.model_copy(update={"values": (number,)}))
        for number in range(60)
    ]
    before = [_evidence(one, 1) for one in chance]
    random = np.random.default_rng(0)
    n_fooled, n_let_through = 0, 0
    for _ in range(200):
        p_values = np.concatenate([np.zeros(40), random.random(60)])
        q_values = adjusted_p_values(p_values, correction="fdr")
        found = [
            (one, _evidence(one, 9, q_value=q_value, p_value=p_value, n_tested=100))
            for one, p_value, q_value in zip(
                chance, p_values[40:].tolist(), q_values[40:].tolist(), strict=True
            )
            if q_value <= ALPHA
        ]
        n_let_through += bool(found)
        n_fooled += bool(judge([], before, [], found).slices)
    assert n_let_through > 150
    # A tenth of 200 is 20; more than 33 has a chance of less than one in a thousand.
    assert n_fooled <= 33


def test_aftermath__unconfirmed_and_explained_slices_are_no_news(make_slice, judge):
    green, big = make_slice(), make_slice("big")
    same = [_evidence(green, 4)]
    explained = Explanation(
        slice_id="x",
        shared_failures=0.9,
        n_inside=1,
        failures_inside=0,
        n_outside=1,
        failures_outside=0,
    )
    for entry in (_evidence(big, 3, q_value=0.4), _evidence(big, 7, explained=explained)):
        told = judge([green], same, same, [(big, entry)])
        assert [one.slice_id for one in told.slices] == [green.slice_id]


def test_aftermath__slices_without_evidence_are_counted_in_the_note(make_slice, judge):
    green = make_slice()
    told = judge([green], [], [_evidence(green, 1)])
    assert told.slices == ()
    assert "One repaired slice had not been measured here before" in told.note
    assert "trained on none of these samples" in told.note
    assert judge([], [], []).n_tested == 0


def test_aftermath__refuses_what_it_cannot_tell(make_slice, judge):
    big = make_slice("big")
    with pytest.raises(DataError, match="failed before the repair is not known"):
        judge([], [], [], [(big, _evidence(big, 7))])
    with pytest.raises(ConfigError, match="alpha"):
        judge([], [], [], alpha=0.0)
