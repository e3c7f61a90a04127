import numpy as np
import pytest
from tests import build

from weakspot.core.errors import DataError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import AllOfRule, ColumnRule, IdRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.organised import organise_slices

TOP_1 = FailureCriterion()


@pytest.fixture
def samples():
    """A hundred cats: the first twenty fail on eighteen, the last twenty on fifteen, the others on every tenth."""
    failed = np.arange(100) % 10 == 0
    failed[:18], failed[18:20] = True, False
    failed[80:95], failed[95:] = True, False
    predictions = failed.astype(np.int64)
    return build.samples(
        [0] * 100,
        class_names=["cat", "dog"],
        predictions=predictions,
        sample_ids=[f"s{row:03d}" for row in range(100)],
        name="confirmation",
    )


def _slice(method, *rows):
    use = DataUse(name="elsewhere", n_samples=0, digest="other")
    rule = IdRule(sample_ids=tuple(f"s{row:03d}" for row in rows))
    return FailureSlice(class_name="cat", rule=rule, method=method, found_on=use)


def _organised(samples, slices):
    nobody = samples.only(samples.rows[:0], name="discovery")
    evidence = HoldoutVerifier(same_at=1.0).verify(
        slices, discovery=nobody, confirmation=samples, criterion=TOP_1
    )
    return organise_slices(slices, evidence, {"other": samples}, TOP_1)


def _verified(samples, slices):
    evidence, _ = _organised(samples, slices)
    assert {entry.verdict for entry in evidence} == {Verdict.CONFIRMED}
    return evidence


def test_organise_slices__a_wider_slice_around_a_stronger_one(samples):
    core, wider, other = (
        _slice("core", *range(20)),
        _slice("wider", *range(35)),
        _slice("other", *range(80, 100)),
    )
    first, second, third = _verified(samples, [wider, core, other])
    assert first.explained is not None
    assert first.explained.slice_id == core.slice_id
    assert first.explained.shared_failures == pytest.approx(18 / 20)
    assert (first.explained.failures_inside, first.explained.n_inside) == (2, 15)
    assert (first.explained.failures_outside, first.explained.n_outside) == (4, 45)
    assert first.verdict is Verdict.CONFIRMED
    assert second.explained is None
    assert third.explained is None


def test_organise_slices__a_second_failure_beside_the_first_stays(samples):
    core, both = _slice("core", *range(20)), _slice("both", *range(5, 20), *range(80, 95))
    first, second = _verified(samples, [core, both])
    assert {first.explained is None, second.explained is None} == {True}


def test_organise_slices__one_entry_a_slice(samples):
    with pytest.raises(DataError, match="one entry"):
        organise_slices([_slice("core", 1, 2)], [], {"other": samples}, TOP_1)


def _nested(seed=0, n_samples=6_000):
    """Return apples: red ones fail often, red ones at night more often, wet ones go with red, and cut ones fail by themselves."""
    draws = np.random.default_rng(seed)
    red = draws.random(n_samples) < 0.15
    night = draws.random(n_samples) < 0.08
    wet = draws.random(n_samples) < np.where(red, 0.6, 0.1)
    cut = draws.random(n_samples) < 0.02
    rates = np.where(red, 0.5, 0.02)
    rates = np.where(red & night, 0.9, rates)
    failed = draws.random(n_samples) < np.where(cut, 0.7, rates)
    return build.samples(
        [0] * n_samples,
        predictions=failed,
        metadata={"red": red, "night": night, "wet": wet, "cut": cut},
        name="confirmation",
    )


def _by_columns(*columns, digest="other"):
    rules = tuple(ColumnRule(column=column, values=(True,)) for column in columns)
    return FailureSlice(
        class_name="apple",
        rule=rules[0] if len(rules) == 1 else AllOfRule(rules=rules),
        method="attributes",
        found_on=DataUse(name="elsewhere", n_samples=0, digest=digest),
    )


def test_organise_slices__a_worse_part_is_nested_and_what_only_goes_with_it_is_explained():
    samples = _nested()
    red, dark_red, night, wet, cut = slices = [
        _by_columns("red"),
        _by_columns("red", "night"),
        _by_columns("night"),
        _by_columns("wet"),
        _by_columns("cut"),
    ]
    evidence, (tree,) = _organised(samples, slices)
    nodes = {node.slice_id: node for node in tree.nodes}
    assert len(nodes) == len(slices)
    assert {
        name: nodes[one.slice_id].kind.value for name, one in zip("rdnwc", slices, strict=True)
    } == {
        "r": "finding",
        "d": "worse",
        "n": "explained",
        "w": "explained",
        "c": "finding",
    }
    assert nodes[dark_red.slice_id].parent == red.slice_id
    assert nodes[dark_red.slice_id].share_inside == 1.0
    assert nodes[dark_red.slice_id].p_value < 1e-6
    assert nodes[night.slice_id].parent == dark_red.slice_id
    assert nodes[wet.slice_id].parent == red.slice_id
    explained = {entry.slice_id: entry.explained for entry in evidence}
    assert explained[dark_red.slice_id] is explained[cut.slice_id] is None
    wet_one = explained[wet.slice_id]
    assert wet_one.shared_by_all >= wet_one.shared_failures > 0.5
    columns = {
        name: np.array(samples.dataset.metadata(name).to_pylist()) for name in ("red", "wet", "cut")
    }
    failed = samples.dataset.predictions == 1
    both = columns["red"] & columns["wet"]
    assert (wet_one.n_both, wet_one.failures_both) == (both.sum(), failed[both].sum())
    assert tree.n_failed == failed.sum()
    assert tree.n_left == (failed & ~columns["red"] & ~columns["cut"]).sum()
    entry = evidence[0]
    assert nodes[red.slice_id].coverage == pytest.approx(entry.failures_inside / failed.sum())
    expected = entry.failures_inside - entry.n_inside * entry.rate_outside
    assert nodes[red.slice_id].excess == pytest.approx(expected / failed.sum())


def test_organise_slices__the_order_that_slices_come_in_does_not_matter():
    samples = _nested(1)
    slices = [_by_columns(*names.split()) for names in ("wet", "night", "red night", "red", "cut")]
    kinds = [
        {node.slice_id: (node.kind, node.parent) for node in _organised(samples, given)[1][0].nodes}
        for given in (slices, slices[::-1])
    ]
    assert kinds[0] == kinds[1]


def test_organise_slices__a_part_that_is_no_worse_is_explained_by_the_whole():
    samples = _nested(2)
    red, wet_red = _by_columns("red"), _by_columns("red", "wet")
    nodes = {node.slice_id: node for node in _organised(samples, [wet_red, red])[1][0].nodes}
    assert nodes[wet_red.slice_id].kind.value == "explained"
    assert nodes[wet_red.slice_id].parent == red.slice_id


def test_organise_slices__slices_of_both_folds_are_compared_on_their_own_samples():
    samples = _nested(3)
    first, second = samples.only(samples.rows[::2]), samples.only(samples.rows[1::2])
    red = _by_columns("red", digest="one")
    dark_red = _by_columns("red", "night", digest="two")
    evidence = [
        HoldoutVerifier().verify(
            [one], discovery=second.only(second.rows[:0]), confirmation=kept, criterion=TOP_1
        )[0]
        for one, kept in ((red, first), (dark_red, second))
    ]
    _, (tree,) = organise_slices([red, dark_red], evidence, {"one": first, "two": second}, TOP_1)
    child = tree.nodes[1]
    assert (child.kind.value, child.parent) == ("worse", red.slice_id)
    own = [
        np.array(second.dataset.metadata(name).to_pylist())[second.rows]
        for name in ("red", "night")
    ]
    assert child.n_others == (own[0] & ~own[1]).sum()


def test_organise_slices__nothing_confirmed_is_no_tree(samples):
    found = _slice("core", *range(40, 60))
    assert _organised(samples, [found])[1] == ()
