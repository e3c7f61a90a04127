"""Several images of one object: objects count, not images."""

import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.group_tests import group_interval
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import fisher_p
from weakspot.verify.halves import split_halves
from weakspot.verify.holdout import HoldoutVerifier, fresh_samples, measured_elsewhere
from weakspot.verify.organised import organise_slices
from weakspot.verify.screening import screened

TOP_1 = FailureCriterion()


def _samples(groups, colours, wrong):
    return build.samples(
        [0] * len(colours),
        predictions=wrong,
        metadata={"colour": colours},
        groups=groups,
        name="all",
    )


def _slice(samples, colour="green"):
    use = DataUse(name="discovery", n_samples=len(samples), digest=samples.digest())
    rule = ColumnRule(column="colour", values=(colour,))
    return FailureSlice(class_name="apple", rule=rule, method="attributes", found_on=use)


def _objects(n_green, n_red, *, failing, n_red_failing=0, size=4):
    """Return objects of several images: green ones first, of which the first few fail in all images."""
    n_objects = n_green + n_red
    place = np.repeat(np.arange(n_objects), size)
    wrong = (place < failing) | ((place >= n_green) & (place < n_green + n_red_failing))
    colours = np.where(place < n_green, "green", "red").tolist()
    return [f"object {one}" for one in place], colours, wrong


def _two_halves(n_green, n_red, **settings):
    names, colours, wrong = _objects(n_green, n_red, **settings)
    both = _samples(
        [f"d {name}" for name in names] + names, colours * 2, np.concatenate([wrong, wrong])
    )
    return both.only(np.arange(len(names)), name="discovery"), both.only(
        np.arange(len(names), 2 * len(names)), name="confirmation"
    )


def _verify(discovery, confirmation, **settings):
    (entry,) = HoldoutVerifier(**settings).verify(
        [_slice(discovery)], discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    return entry


def test_verify__p_value_and_intervals_count_objects():
    discovery, confirmation = _two_halves(6, 10, failing=3, n_red_failing=1)
    entry = _verify(discovery, confirmation)
    assert (entry.n_inside, entry.failures_inside) == (24, 12)
    assert (entry.groups_inside, entry.groups_outside) == (6, 10)
    assert entry.p_value == pytest.approx(fisher_p(3, 6, 1, 10))
    assert fisher_p(12, 24, 4, 40) < 0.001
    assert entry.p_value > 0.05
    assert entry.verdict is Verdict.NOT_CONFIRMED
    low, high = group_interval(12, 24, 6.0)
    assert (entry.interval_inside.low, entry.interval_inside.high) == (low, high)
    wide = entry.effect.ratio_interval
    assert wide.high > 12


def test_verify__support_counts_objects():
    discovery, confirmation = _two_halves(3, 10, failing=3)
    assert _verify(discovery, confirmation).verdict is Verdict.TOO_FEW
    assert _verify(discovery, confirmation, min_support=3).verdict is Verdict.CONFIRMED


def test_verify__images_on_their_own_say_nothing_of_groups():
    _, colours, wrong = _objects(12, 20, failing=8, size=1)
    samples = _samples(None, colours * 2, np.concatenate([wrong, wrong]))
    entry = _verify(samples.only(np.arange(32)), samples.only(np.arange(32, 64)))
    assert (entry.groups_inside, entry.groups_outside) == (0, 0)
    assert entry.p_value == fisher_p(8, 12, 0, 20)


def test_fresh_samples__objects_that_discovery_saw_are_left_out_and_counted():
    names = ["a", "a", "b", "c", "a", "c", None, None]
    samples = _samples(names, ["green"] * 8, [0] * 8)
    discovery, confirmation = samples.only(np.arange(4)), samples.only(np.arange(4, 8), name="kept")
    fresh = fresh_samples([], discovery=discovery, confirmation=confirmation)
    assert fresh.rows.tolist() == [6, 7]
    assert fresh.name == "kept (images of groups seen before left out: 2)"


def test_measured_elsewhere__objects_that_were_seen_are_left_out():
    samples = _samples(["a", "a", "b", "b", "b"], ["green"] * 5, [1, 1, 1, 0, 0])
    (found,) = measured_elsewhere(
        [_slice(samples)],
        {"test split": samples.only(np.arange(1, 5))},
        TOP_1,
        seen=samples.only(np.arange(1)),
    ).values()
    assert (found[0].inside.count, found[0].inside.total) == (1, 3)
    assert found[0].inside.interval.high == group_interval(1, 3, 1.0)[1]


def test_screened__candidates_are_judged_by_objects():
    names, colours, wrong = _objects(6, 10, failing=3, n_red_failing=1)
    samples = _samples(names, colours, wrong)
    found = _slice(samples)
    assert not screened([found], samples, TOP_1, largest_p=0.05, most=9).kept
    assert screened([found], samples, TOP_1, largest_p=0.2, most=9).kept


def test_organise_slices__what_is_left_is_judged_by_objects():
    # Green failures are those of big ones, but for three objects: as images these stand out, as objects they do not.
    size, place = 4, np.repeat(np.arange(40), 4)
    sizes = np.where(place < 8, "big", "small").tolist()
    colours = np.where(place < 14, "green", "red").tolist()
    wrong = (place < 7) | ((place >= 8) & (place < 10)) | ((place >= 14) & (place < 17))
    samples = _samples([f"{one}" for one in place], colours, wrong)
    samples = SampleSet(
        dataset=samples.dataset.with_metadata({"size": sizes}), rows=samples.rows, name="all"
    )
    use = DataUse(name="elsewhere", n_samples=1, digest="0")
    big = FailureSlice(
        class_name="apple",
        rule=ColumnRule(column="size", values=("big",)),
        method="attributes",
        found_on=use,
    )
    green = _slice(samples).model_copy(update={"found_on": use})
    nobody = samples.only(np.arange(0), name="discovery")
    evidence = HoldoutVerifier(same_at=1.0).verify(
        [big, green], discovery=nobody, confirmation=samples, criterion=TOP_1
    )
    explained, _ = organise_slices([big, green], evidence, {"0": samples}, TOP_1)
    assert [one.verdict for one in evidence] == [Verdict.CONFIRMED] * 2
    assert fisher_p(2 * size, 6 * size, 3 * size, 26 * size) < 0.05
    assert explained[1].explained.slice_id == big.slice_id


def test_verify__no_more_false_findings_with_several_images_of_an_object():
    """Ten columns of objects that do not matter, outcomes shared by the five images of an object."""
    random = np.random.default_rng(21)
    n_false = {True: 0, False: 0}
    for _ in range(60):
        n_objects, size = 120, 5
        failed = (random.random(n_objects) < 0.2).repeat(size)
        columns = {
            f"c{one}": random.choice(["a", "b"], n_objects).repeat(size) for one in range(10)
        }
        names = [f"{one}" for one in np.arange(n_objects).repeat(size)]
        for is_told in (True, False):
            dataset = dataset_from_columns(
                class_names=["apple", "pear"],
                labels=[0] * len(names),
                predictions=failed.astype(np.int64),
                metadata={name: values.tolist() for name, values in columns.items()},
                groups=names if is_told else None,
            )
            samples = SampleSet(dataset=dataset, rows=np.arange(len(names)))
            halves = split_halves(dataset, samples.rows, TOP_1, seed=0)
            discovery, kept = samples.only(halves.discovery), samples.only(halves.confirmation)
            use = DataUse(name="discovery", n_samples=1, digest=discovery.digest())
            slices = [
                FailureSlice(
                    class_name="apple",
                    rule=ColumnRule(column=name, values=(value,)),
                    method="attributes",
                    found_on=use,
                )
                for name in columns
                for value in ("a", "b")
            ]
            evidence = HoldoutVerifier().verify(
                slices, discovery=discovery, confirmation=kept, criterion=TOP_1
            )
            n_false[is_told] += any(one.verdict is Verdict.CONFIRMED for one in evidence)
    assert n_false[True] <= 0.05 * 60 + 2 * np.sqrt(0.05 * 0.95 * 60)
    assert n_false[False] > 20
