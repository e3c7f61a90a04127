from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import AllOfRule, AnyOfRule, ColumnRule, PredictionRule
from weakspot.core.samples import EmbeddingSpace
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.testing.planted import nothing, plant
from weakspot.verify.halves import split_halves
from weakspot.verify.holdout import HoldoutVerifier, measured_elsewhere, with_elsewhere

TOP_1 = FailureCriterion()


def _halves(samples):
    return samples.only(samples.rows[::2], name="discovery"), samples.only(
        samples.rows[1::2], name="confirmation"
    )


def _verified(slices, discovery, confirmation, **options):
    return HoldoutVerifier(**options).verify(
        slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )


def test_verify__counts_rates_and_exact_p(make_samples, marked):
    # Confirmation rows (odd places): marks on 4 of 8, failures on 3 of those 4 and on 1 of the other 4.
    marks = [False, True] * 4 + [False, False] * 4
    wrong = [False, True] * 3 + [False, False] + [False, True] + [False, False] * 3
    discovery, confirmation = _halves(make_samples(marks, wrong))
    found = marked(discovery)
    verifier = HoldoutVerifier(min_support=4, min_outside=4, alpha=0.3)
    (evidence,) = verifier.verify(
        [found], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    assert (
        evidence.n_inside,
        evidence.failures_inside,
        evidence.n_outside,
        evidence.failures_outside,
    ) == (4, 3, 4, 1)
    assert (evidence.rate_inside, evidence.rate_outside, evidence.gap) == (0.75, 0.25, 0.5)
    assert evidence.p_value == pytest.approx(17 / 70)
    assert evidence.q_value == pytest.approx(17 / 70)
    assert (evidence.n_tested, evidence.verdict) == (1, Verdict.CONFIRMED)
    assert evidence.interval_inside.low == pytest.approx(0.300642, abs=1e-6)
    assert evidence.interval_inside.high == pytest.approx(0.954413, abs=1e-6)
    assert evidence.measured_on.name == "confirmation"
    assert evidence.measured_on.digest == confirmation.digest()
    assert evidence.slice_id == found.slice_id


def test_verify__too_small_slices_are_set_aside_and_do_not_burden_the_others(make_samples, marked):
    marks = [False, True] * 10 + [False, False] * 20
    wrong = [False, True] * 8 + [False, False] * 22
    discovery, confirmation = _halves(make_samples(marks, wrong))
    big = marked(discovery)
    empty = marked(discovery, threshold=0.9999)
    everything = marked(discovery, threshold=-2.0)
    verifier = HoldoutVerifier(min_support=5, min_outside=5)
    alone = verifier.verify([big], discovery=discovery, confirmation=confirmation, criterion=TOP_1)[
        0
    ]
    together = verifier.verify(
        [empty, big, everything], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    assert [entry.verdict for entry in together] == [
        Verdict.TOO_FEW,
        Verdict.CONFIRMED,
        Verdict.TOO_FEW,
    ]
    assert together[1].q_value == alone.q_value
    assert [entry.n_tested for entry in together] == [1, 1, 1]
    assert (together[0].p_value, together[0].q_value) == (1.0, 1.0)
    assert (together[2].n_inside, together[2].n_outside) == (30, 0)


def test_verify__q_values_run_over_all_tested(make_samples, marked):
    marks = [False, True] * 10 + [False, False] * 20
    wrong = [False, True] * 6 + [False, False] * 24
    discovery, confirmation = _halves(make_samples(marks, wrong, n_pears=0))
    one = marked(discovery)
    verifier = HoldoutVerifier()
    single = verifier.verify(
        [one], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )[0]
    other = FailureSlice(
        class_name="apple",
        rule=ColumnRule(column="side", values=("left",)),
        method="hand",
        found_on=one.found_on,
    )
    n_rows = len(discovery.dataset)
    table = discovery.dataset.table.append_column(
        "meta.side", [["left" if place % 4 < 2 else "right" for place in range(n_rows)]]
    )
    dataset = replace(discovery.dataset, table=table)
    both = verifier.verify(
        [one, other],
        discovery=replace(discovery, dataset=dataset),
        confirmation=replace(confirmation, dataset=dataset),
        criterion=TOP_1,
    )
    assert both[0].p_value == single.p_value
    assert both[0].q_value == pytest.approx(2 * single.p_value)
    assert both[1].verdict is Verdict.NOT_CONFIRMED
    between = HoldoutVerifier(alpha=1.5 * single.p_value).verify(
        [one, other],
        discovery=replace(discovery, dataset=dataset),
        confirmation=replace(confirmation, dataset=dataset),
        criterion=TOP_1,
    )
    assert (between[0].p_value, between[0].q_value) == (both[0].p_value, both[0].q_value)
    assert between[0].verdict is Verdict.NOT_CONFIRMED  # p lies below alpha, q above: q decides


def test_verify__better_than_the_rest_is_never_confirmed(make_samples, marked):
    marks = [False, True] * 20 + [False, False] * 20
    wrong = [False, False] * 20 + [False, True] * 20
    discovery, confirmation = _halves(make_samples(marks, wrong))
    (evidence,) = _verified([marked(discovery)], discovery, confirmation, alpha=0.999)
    assert evidence.gap == -1.0
    assert evidence.verdict is Verdict.NOT_CONFIRMED


def test_verify__a_small_gap_can_be_asked_to_be_larger(make_samples, marked):
    marks = [False, True] * 40 + [False, False] * 40
    wrong = [False, True] * 12 + [False, False] * 68
    discovery, confirmation = _halves(make_samples(marks, wrong))
    evidence = [
        _verified([marked(discovery)], discovery, confirmation, min_gap=gap)[0]
        for gap in (0.25, 0.35)
    ]
    assert [entry.verdict for entry in evidence] == [Verdict.CONFIRMED, Verdict.NOT_CONFIRMED]


def test_verify__refuses_samples_that_discovery_saw(make_samples, marked):
    samples = make_samples([True] * 20, [True] * 20)
    discovery = samples.only(samples.rows[:12], name="discovery")
    with pytest.raises(DataError, match="2 samples are in both"):
        HoldoutVerifier().verify(
            [marked(discovery)],
            discovery=discovery,
            confirmation=samples.only(samples.rows[10:]),
            criterion=TOP_1,
        )
    with pytest.raises(DataError, match="found on"):
        HoldoutVerifier().verify(
            [marked(discovery)],
            discovery=samples.only(samples.rows[12:]),
            confirmation=discovery,
            criterion=TOP_1,
        )


def test_verify__repeated_images_are_left_out_and_counted(make_samples, marked):
    # Of ten confirmation rows, the first two repeat discovery images and the third repeats the fourth.
    hashes = [f"{place:02d}" for place in range(20)]
    hashes[10], hashes[11], hashes[12] = "00", "01", "13"
    samples = make_samples([True] * 20, [True] * 20, hashes=hashes)
    discovery = samples.only(samples.rows[:10], name="discovery")
    confirmation = samples.only(samples.rows[10:], name="confirmation")
    (evidence,) = _verified([marked(discovery)], discovery, confirmation)
    assert evidence.n_inside == 7
    assert evidence.measured_on.n_samples == 7
    assert evidence.measured_on.name == "confirmation (repeated images left out: 3)"


def test_verify__samples_without_embeddings_count_nowhere(make_samples, marked):
    marks = [False, True] * 10 + [False, False] * 20
    wrong = [False, True] * 8 + [False, False] * 22
    samples = make_samples(marks, wrong)
    embeddings = samples.embeddings("clip").copy()
    embeddings[[1, 59]] = np.nan
    samples = replace(
        samples, spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)}
    )
    discovery, confirmation = _halves(samples)
    (evidence,) = _verified([marked(discovery)], discovery, confirmation)
    assert (evidence.n_inside, evidence.n_outside) == (9, 19)


def test_verify__class_that_is_not_there_and_no_slices(make_samples, marked):
    samples = make_samples([True] * 20, [True] * 20)
    discovery, confirmation = _halves(samples)
    (evidence,) = _verified([marked(discovery, "pear")], discovery, confirmation)
    assert (evidence.n_inside, evidence.verdict) == (0, Verdict.TOO_FEW)
    assert _verified([], discovery, confirmation) == ()


def _columns_world(draws, *, n_rows=160, n_columns=12):
    """Return samples of one class with chance columns, and one slice a column; nothing depends on any of them."""
    columns = {
        f"chance{number}": (draws.random(n_rows) < 0.3).tolist() for number in range(n_columns)
    }
    samples = build.samples(
        [0] * n_rows,
        class_names=["a", "b"],
        predictions=draws.random(n_rows) < 0.3,
        metadata=columns,
    )
    slices = [
        FailureSlice(
            class_name="a",
            rule=ColumnRule(column=name, values=(True,)),
            method="chance",
            found_on=DataUse.of(samples),
        )
        for name in columns
    ]
    return _halves(samples), slices


@pytest.mark.parametrize("correction", ["fdr", "fwer"])
def test_verify__false_findings_stay_rare_when_nothing_is_wrong(correction):
    """At a rate of 0.1, 50 screens of chance columns may hold about five false findings; nine is two deviations more.

    Once with one half for confirmation, once also with halves swapped, each turn at half the rate.
    """
    draws = np.random.default_rng(11)
    n_false = {1: 0, 2: 0}
    for _ in range(50):
        (first, second), slices = _columns_world(draws)
        q_values = [
            min(entry.q_value for entry in verified if entry.gap > 0)
            for verified in (
                HoldoutVerifier(correction=correction).verify(
                    slices, discovery=one, confirmation=other, criterion=TOP_1
                )
                for one, other in ((first, second), (second, first))
            )
        ]
        n_false[1] += q_values[0] <= 0.1
        n_false[2] += min(q_values) <= 0.1 / 2
    assert max(n_false.values()) <= 9


def _column_slice(column, *, method="attributes", value=True):
    rule = ColumnRule(column=column, values=(value,))
    return FailureSlice(
        class_name="a",
        rule=rule,
        method=method,
        found_on=DataUse(name="discovery", n_samples=80, digest="d"),
    )


def _two_halves(columns, wrong):
    """Return both halves of the same eighty samples of one class: columns and failures are given for one half."""
    samples = build.samples(
        [0] * 160,
        class_names=["a", "b"],
        predictions=wrong * 2,
        metadata={name: values * 2 for name, values in columns.items()},
    )
    return samples.only(np.arange(80), name="discovery"), samples.only(
        np.arange(80, 160), name="confirmation"
    )


WRONG = [1] * 16 + [0] * 4 + [1] * 3 + [0] * 57
FIRST_20 = [True] * 20 + [False] * 60
FIRST_19 = [True] * 19 + [False] * 61
FIRST_40 = [True] * 40 + [False] * 40


def test_verify__slices_with_nearly_the_same_members_count_once():
    discovery, confirmation = _two_halves(
        {"first": FIRST_20, "nearly": FIRST_19, "wide": FIRST_40}, WRONG
    )
    slices = [
        _column_slice("first"),
        _column_slice("nearly", method="keywords"),
        _column_slice("wide"),
    ]
    evidence = _verified(slices, discovery, confirmation)
    # 16 of 19 stand out more than 16 of 20 on the discovery half, so the narrower one is tested.
    assert [entry.verdict for entry in evidence] == [
        Verdict.SAME,
        Verdict.CONFIRMED,
        Verdict.CONFIRMED,
    ]
    assert evidence[0].same_as == slices[1].slice_id
    assert (evidence[0].failures_inside, evidence[0].n_inside) == (16, 20)
    assert [entry.n_tested for entry in evidence] == [2, 2, 2]
    assert (evidence[0].p_value, evidence[0].q_value) == (1.0, 1.0)
    assert evidence[1].same_as is None


def test_verify__of_equal_slices_the_simpler_rule_is_tested():
    discovery, confirmation = _two_halves({"first": FIRST_20, "wide": FIRST_40}, WRONG)
    simple = _column_slice("first")
    both = AllOfRule(
        rules=(
            ColumnRule(column="first", values=(True,)),
            ColumnRule(column="wide", values=(True,)),
        )
    )
    double = simple.model_copy(update={"rule": both})
    evidence = _verified([double, simple], discovery, confirmation)
    assert [entry.verdict for entry in evidence] == [Verdict.SAME, Verdict.CONFIRMED]
    apart = _verified([double, simple], discovery, confirmation, same_at=1.0)
    assert apart[0].verdict is Verdict.SAME


def test_verify__a_slice_of_either_rule_is_tested_like_others():
    discovery, confirmation = _two_halves({"first": FIRST_20, "wide": FIRST_40}, WRONG)
    simple = _column_slice("first")
    either = AnyOfRule(
        rules=(
            ColumnRule(column="first", values=(True,)),
            ColumnRule(column="wide", values=(True,)),
        )
    )
    merged = simple.model_copy(update={"rule": either, "method": "merged"})
    evidence = _verified([merged, simple], discovery, confirmation)
    assert evidence[0].n_inside == 40
    assert evidence[0].verdict is Verdict.CONFIRMED


def test_verify__slices_by_predictions_cannot_be_tested():
    discovery, confirmation = _two_halves({"first": FIRST_20}, WRONG)
    by_loss = _column_slice("first").model_copy(
        update={"rule": PredictionRule(measure="loss", threshold=0.5)}
    )
    evidence = _verified([by_loss, _column_slice("first")], discovery, confirmation)
    assert [entry.verdict for entry in evidence] == [Verdict.CIRCULAR, Verdict.CONFIRMED]
    assert evidence[1].n_tested == 1
    assert evidence[0].effect is None


def test_verify__controls_differ_and_are_recorded():
    columns = {"first": FIRST_20, "wide": FIRST_40, "odd": [bool(place % 2) for place in range(80)]}
    discovery, confirmation = _two_halves(columns, WRONG)
    slices = [_column_slice(name) for name in columns]
    found = {
        correction: _verified(
            slices, discovery, confirmation, correction=correction, weights="equal"
        )
        for correction in ("fdr", "fwer", "fdr-dependent")
    }
    p_value = found["fdr"][0].p_value
    assert [found[correction][0].q_value / p_value for correction in found] == pytest.approx(
        [3, 3, 3 * (1 + 1 / 2 + 1 / 3)]
    )
    p_value = found["fdr"][1].p_value
    assert [found[correction][1].q_value / p_value for correction in found] == pytest.approx(
        [1.5, 2, 1.5 * (1 + 1 / 2 + 1 / 3)]
    )
    assert found["fwer"][0].correction == "fwer"


def test_verify__weights_favour_what_stood_out_and_stay_within_a_method():
    columns = {
        "first": FIRST_20,
        "odd": [bool(place % 2) for place in range(80)],
        "third": [place % 3 == 0 for place in range(80)],
    }
    discovery, confirmation = _two_halves(columns, WRONG)
    slices = [_column_slice("first"), _column_slice("odd"), _column_slice("third", method="other")]
    weighed = _verified(slices, discovery, confirmation)
    assert weighed[0].weight > 1.7
    assert weighed[0].weight + weighed[1].weight == pytest.approx(2.0)
    assert weighed[2].weight == 1.0
    equal = _verified(slices, discovery, confirmation, weights="equal")
    assert weighed[0].q_value < equal[0].q_value
    assert {entry.weight for entry in equal} == {1.0}


def test_verify__effect_size_beside_the_gap():
    discovery, confirmation = _two_halves({"first": FIRST_20}, WRONG)
    (evidence,) = _verified([_column_slice("first")], discovery, confirmation)
    assert evidence.effect.risk_ratio == pytest.approx(0.8 / 0.05)
    assert evidence.effect.cohens_h == pytest.approx(1.7633, abs=1e-4)
    assert evidence.effect.ratio_interval.low < 16 < evidence.effect.ratio_interval.high


def test_verify__a_gap_that_is_too_small_does_not_help_the_others():
    columns = {"first": FIRST_20, "wide": FIRST_40}
    discovery, confirmation = _two_halves(columns, WRONG)
    slices = [_column_slice(name) for name in columns]
    options = {"discovery": discovery, "confirmation": confirmation, "criterion": TOP_1}
    free, strict = (
        HoldoutVerifier(min_gap=gap, weights="equal").verify(slices, **options)
        for gap in (0.0, 0.6)
    )
    assert free[1].verdict is Verdict.CONFIRMED
    assert strict[1].verdict is Verdict.NOT_CONFIRMED
    assert (strict[1].p_value, strict[1].q_value) == (free[1].p_value, 1.0)
    assert strict[0].q_value == pytest.approx(2 * free[0].p_value)


def test_verify__nothing_is_confirmed_in_a_planted_world_without_a_problem():
    for seed in range(3):
        validation = plant(nothing(), 2_000, seed=seed).samples(Split.VALIDATION)
        halves = split_halves(validation.dataset, validation.rows, TOP_1, seed=seed)
        discovery = validation.only(halves.discovery, name="discovery")
        confirmation = validation.only(halves.confirmation, name="confirmation")
        found = (
            DirectionsDiscoverer(costs=(1.0,), min_strength=0.0)
            .discover(discovery, TOP_1, seed=seed)
            .slices
        )
        assert len(found) >= 3
        evidence = _verified(found, discovery, confirmation)
        assert [entry.verdict for entry in evidence if entry.verdict is Verdict.CONFIRMED] == []


def _world(make_samples):
    """Twelve apples each for discovery, confirmation and test; six marked ones fail, in the test split four of them."""
    marks = ([True] * 6 + [False] * 6) * 3
    wrong = ([True] * 6 + [False] * 6) * 2 + [True] * 4 + [False] * 8
    samples = make_samples(marks, wrong, splits=["validation"] * 24 + ["test"] * 12)
    parts = [samples.only(np.arange(first, first + 12)) for first in (0, 12)]
    return parts[0], parts[1], samples.only(samples.dataset.rows_of(Split.TEST))


def test_measured_elsewhere__counts_rates_and_intervals(make_samples, marked):
    discovery, _, test = _world(make_samples)
    found = marked(discovery)
    (measured,) = measured_elsewhere([found], {"test split": test}, TOP_1)[found.slice_id]
    assert (measured.measured_on.name, measured.measured_on.n_samples) == ("test split", 12)
    assert (measured.inside.count, measured.inside.total) == (4, 6)
    assert (measured.outside.count, measured.outside.total) == (0, 6)
    assert measured.gap == measured.inside.value == 4 / 6
    assert measured.inside.interval.low < 4 / 6 < measured.inside.interval.high


def test_measured_elsewhere__sets_without_samples_are_passed_over(make_samples, marked):
    discovery, _, test = _world(make_samples)
    found = marked(discovery)
    assert measured_elsewhere([found], {"pool": test.only(test.rows[:0])}, TOP_1) == {
        found.slice_id: ()
    }
    assert measured_elsewhere([], {"test": test}, TOP_1) == {}
    (measured,) = measured_elsewhere([marked(discovery, "pear")], {"test": test}, TOP_1).values()
    assert measured[0].inside.total == 0


def test_measured_elsewhere__images_that_were_seen_are_left_out(make_samples, marked):
    hashes = [f"{place:02d}" for place in range(24)]
    hashes[12:14] = hashes[0:2]
    samples = make_samples([True] * 24, [True] * 24, hashes=hashes)
    seen, other = samples.only(samples.rows[:12]), samples.only(samples.rows[12:])
    found = marked(seen)
    (measured,) = measured_elsewhere([found], {"pool": other}, TOP_1, seen=seen)[found.slice_id]
    assert (measured.inside.total, measured.measured_on.n_samples) == (10, 10)


def test_with_elsewhere__only_confirmed_slices(make_samples, marked):
    discovery, confirmation, test = _world(make_samples)
    slices = [marked(discovery), marked(discovery, threshold=0.9999)]
    evidence = _verified(slices, discovery, confirmation)
    assert [entry.verdict for entry in evidence] == [Verdict.CONFIRMED, Verdict.TOO_FEW]
    full = with_elsewhere(slices, evidence, {"test": test}, TOP_1)
    assert [len(entry.elsewhere) for entry in full] == [1, 0]
    assert full[0].verdict is Verdict.CONFIRMED
