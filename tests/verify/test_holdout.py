from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.testing.planted import plant
from weakspot.testing.planted_problems import nothing
from weakspot.verify.halves import split_halves
from weakspot.verify.holdout import HoldoutVerifier

TOP_1 = FailureCriterion()


def _halves(samples):
    return samples.only(samples.rows[::2], name="discovery"), samples.only(samples.rows[1::2], name="confirmation")


def test_verify__counts_rates_and_exact_p(make_samples, marked):
    # Confirmation rows (odd places): marks on 4 of 8, failures on 3 of those 4 and on 1 of the other 4.
    marks = [False, True] * 4 + [False, False] * 4
    wrong = [False, True] * 3 + [False, False] + [False, True] + [False, False] * 3
    discovery, confirmation = _halves(make_samples(marks, wrong))
    found = marked(discovery)
    verifier = HoldoutVerifier(min_support=4, min_outside=4, alpha=0.3)
    (evidence,) = verifier.verify([found], discovery=discovery, confirmation=confirmation, criterion=TOP_1)
    assert (evidence.n_inside, evidence.failures_inside, evidence.n_outside, evidence.failures_outside) == (4, 3, 4, 1)
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
    alone = verifier.verify([big], discovery=discovery, confirmation=confirmation, criterion=TOP_1)[0]
    together = verifier.verify([empty, big, everything], discovery=discovery, confirmation=confirmation, criterion=TOP_1)
    assert [entry.verdict for entry in together] == [Verdict.TOO_FEW, Verdict.CONFIRMED, Verdict.TOO_FEW]
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
    single = verifier.verify([one], discovery=discovery, confirmation=confirmation, criterion=TOP_1)[0]
    other = FailureSlice(class_name="apple", rule=ColumnRule(column="side", values=("left",)), method="hand", found_on=one.found_on)
    n_rows = len(discovery.dataset)
    table = discovery.dataset.table.append_column("meta.side", [["left" if place % 4 < 2 else "right" for place in range(n_rows)]])
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


def test_verify__better_than_the_rest_is_never_confirmed(make_samples, marked):
    marks = [False, True] * 20 + [False, False] * 20
    wrong = [False, False] * 20 + [False, True] * 20
    discovery, confirmation = _halves(make_samples(marks, wrong))
    (evidence,) = HoldoutVerifier(alpha=0.999).verify(
        [marked(discovery)], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    assert evidence.gap == -1.0
    assert evidence.verdict is Verdict.NOT_CONFIRMED


def test_verify__a_small_gap_can_be_asked_to_be_larger(make_samples, marked):
    marks = [False, True] * 40 + [False, False] * 40
    wrong = [False, True] * 12 + [False, False] * 68
    discovery, confirmation = _halves(make_samples(marks, wrong))
    evidence = [
        HoldoutVerifier(min_gap=gap).verify([marked(discovery)], discovery=discovery, confirmation=confirmation, criterion=TOP_1)[0]
        for gap in (0.25, 0.35)
    ]
    assert [entry.verdict for entry in evidence] == [Verdict.CONFIRMED, Verdict.NOT_CONFIRMED]


def test_verify__refuses_samples_that_discovery_saw(make_samples, marked):
    samples = make_samples([True] * 20, [True] * 20)
    discovery = samples.only(samples.rows[:12], name="discovery")
    with pytest.raises(DataError, match="2 samples are in both"):
        HoldoutVerifier().verify(
            [marked(discovery)], discovery=discovery, confirmation=samples.only(samples.rows[10:]), criterion=TOP_1
        )
    with pytest.raises(DataError, match="found on"):
        HoldoutVerifier().verify(
            [marked(discovery)], discovery=samples.only(samples.rows[12:]), confirmation=discovery, criterion=TOP_1
        )


def test_verify__repeated_pictures_are_left_out_and_counted(make_samples, marked):
    # Of ten confirmation rows, the first two repeat discovery pictures and the third repeats the fourth.
    hashes = [f"{place:02d}" for place in range(20)]
    hashes[10], hashes[11], hashes[12] = "00", "01", "13"
    samples = make_samples([True] * 20, [True] * 20, hashes=hashes)
    discovery = samples.only(samples.rows[:10], name="discovery")
    confirmation = samples.only(samples.rows[10:], name="confirmation")
    (evidence,) = HoldoutVerifier().verify([marked(discovery)], discovery=discovery, confirmation=confirmation, criterion=TOP_1)
    assert evidence.n_inside == 7
    assert evidence.measured_on.n_samples == 7
    assert evidence.measured_on.name == "confirmation (repeated pictures left out: 3)"


def test_verify__samples_without_vectors_count_nowhere(make_samples, marked):
    marks = [False, True] * 10 + [False, False] * 20
    wrong = [False, True] * 8 + [False, False] * 22
    samples = make_samples(marks, wrong)
    vectors = samples.vectors("joint").copy()
    vectors[[1, 59]] = np.nan
    samples = replace(samples, spaces={"joint": VectorSpace(encoder_id="toy", vectors=vectors)})
    discovery, confirmation = _halves(samples)
    (evidence,) = HoldoutVerifier().verify([marked(discovery)], discovery=discovery, confirmation=confirmation, criterion=TOP_1)
    assert (evidence.n_inside, evidence.n_outside) == (9, 19)


def test_verify__class_that_is_not_there_and_no_slices(make_samples, marked):
    samples = make_samples([True] * 20, [True] * 20)
    discovery, confirmation = _halves(samples)
    (evidence,) = HoldoutVerifier().verify(
        [marked(discovery, "pear")], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    assert (evidence.n_inside, evidence.verdict) == (0, Verdict.TOO_FEW)
    assert HoldoutVerifier().verify([], discovery=discovery, confirmation=confirmation, criterion=TOP_1) == ()


def test_verify__false_findings_stay_rare_when_nothing_is_wrong():
    """Sixty screens of ten slices by chance columns: at a rate of 0.1 about six of sixty may confirm anything at all."""
    draws = np.random.default_rng(11)
    n_false = 0
    for _ in range(60):
        columns = {f"chance{number}": (draws.random(120) < 0.3).tolist() for number in range(10)}
        dataset = dataset_from_columns(
            class_names=["a", "b"], labels=[0] * 120, predictions=(draws.random(120) < 0.3).astype(np.int64), metadata=columns
        )
        samples = SampleSet(dataset=dataset, rows=np.arange(120))
        discovery, confirmation = _halves(samples)
        use = DataUse(name="discovery", n_samples=60, digest=discovery.digest())
        slices = [
            FailureSlice(class_name="a", rule=ColumnRule(column=name, values=(True,)), method="chance", found_on=use)
            for name in columns
        ]
        evidence = HoldoutVerifier(alpha=0.1).verify(slices, discovery=discovery, confirmation=confirmation, criterion=TOP_1)
        n_false += any(entry.verdict is Verdict.CONFIRMED for entry in evidence)
    assert n_false <= 8


def test_verifier__refuses_bad_settings():
    with pytest.raises(ConfigError, match="alpha"):
        HoldoutVerifier(alpha=0.0)
    with pytest.raises(ConfigError, match="min_support"):
        HoldoutVerifier(min_support=0)


def test_verify__nothing_is_confirmed_in_a_planted_world_without_a_problem():
    for seed in range(3):
        validation = plant(nothing(), 2_000, seed=seed).samples(Split.VALIDATION)
        halves = split_halves(validation.dataset, validation.rows, TOP_1, seed=seed)
        discovery = validation.only(halves.discovery, name="discovery")
        confirmation = validation.only(halves.confirmation, name="confirmation")
        found = DirectionsDiscoverer(costs=(1.0,), min_strength=0.0).discover(discovery, TOP_1, seed=seed).slices
        assert len(found) >= 3
        evidence = HoldoutVerifier().verify(found, discovery=discovery, confirmation=confirmation, criterion=TOP_1)
        assert [entry.verdict for entry in evidence if entry.verdict is Verdict.CONFIRMED] == []
