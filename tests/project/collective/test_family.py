import csv
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, StoreError
from weakspot.core.rules import IdRule
from weakspot.project.collective import Family, FamilyMember, refuse_unrepairable
from weakspot.project.project import Project
from weakspot.testing.planted import plant, rare


@pytest.fixture(scope="module")
def members(family):
    return [FamilyMember.of(project) for project in family]


@pytest.fixture
def given(tmp_path):
    """A project of a few planted images whose predictions are given, so that no last layer is known."""
    folder = tmp_path / "given"
    with plant(rare(0.2), 160, seed=1).write_images(folder).manifest.open(newline="") as stream:
        entries = list(csv.DictReader(stream))
    for number, entry in enumerate(entries):
        entry["prediction"] = entry["label"] if number % 5 else "star"
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(
            stream, fieldnames=["path", "label", "split", "prediction"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(entries)
    (folder / "weakspot.toml").write_text(
        '[data]\nsource = "manifest.csv"\n[embedder]\nname = "planted"\n'
    )
    project = Project.open(folder)
    project.ingest()
    return project


def _changed(member, **changes):
    """The same project with another data set."""
    dataset = replace(member.dataset, **changes)
    prepared = replace(member.bench.prepared, samples=replace(member.samples, dataset=dataset))
    return FamilyMember(name="changed", bench=replace(member.bench, prepared=prepared))


def _trained_on(member, sample_ids):
    """The same project, with some samples moved to its training split."""
    column = member.dataset.table.column_names.index("split")
    splits = member.dataset.splits.copy()
    splits[np.isin(member.dataset.sample_ids(), sample_ids)] = SPLIT_ORDER.index(Split.TRAIN)
    return _changed(
        member, table=member.dataset.table.set_column(column, "split", pa.array(splits, pa.int8()))
    )


def test_family_member__may_train_on_labelled_training_and_pool_samples(members):
    member = members[0]
    splits = {
        split
        for split in Split
        if set(member.dataset.rows_of(split)) & set(member.allowed.tolist())
    }
    assert splits == {Split.TRAIN, Split.POOL}
    assert member.dataset.is_labelled[member.allowed].all()
    assert member.name == "small"


def test_family_member__no_verified_run_and_no_last_layer(given):
    with pytest.raises(StoreError, match="given has no verified run"):
        FamilyMember.of(given)
    record = given.discover()
    with pytest.raises(StoreError, match="weakspot run"):
        FamilyMember.of(given)
    given.verify(record.run_id)
    with pytest.raises(ModelError, match="last layer are not known"):
        FamilyMember.of(given)


def test_family_member__no_training_samples(family):
    samples = family[0].samples()
    with pytest.raises(NotEnoughDataError, match="small has no train samples"):
        refuse_unrepairable(
            "small",
            replace(samples, dataset=replace(samples.dataset, table=_only_test(samples.dataset))),
        )


def _only_test(dataset):
    column = dataset.table.column_names.index("split")
    splits = pa.array([SPLIT_ORDER.index(Split.TEST)] * len(dataset), pa.int8())
    return dataset.table.set_column(column, "split", splits)


def test_family__other_classes(members):
    with pytest.raises(DataError, match="small and changed have different classes"):
        Family.of([members[0], _changed(members[1], class_names=("a", "b", "c", "d"))])


def test_family__shared_test_samples(members):
    family = Family.of(members)
    rows = [family.measured(member).rows for member in members]
    ids = [set(member.dataset.sample_ids(own)) for member, own in zip(members, rows, strict=True)]
    assert ids[0] == ids[1] == ids[2] == family.shared_ids
    assert len(ids[0]) > 300
    assert family.notes() == []


def test_family__what_another_model_was_trained_on_is_not_measured(members):
    first, second = members[:2]
    taken = first.dataset.sample_ids(first.bench.measured.rows[:50])
    shared = Family.of([first, _trained_on(second, taken)]).shared_ids
    assert len(shared) == len(Family.of([first, second]).shared_ids) - 50
    assert not shared & set(taken)


def test_family__no_shared_sample(members):
    first, second = members[:2]
    moved = _trained_on(second, first.dataset.sample_ids(first.bench.measured.rows[1:]))
    lonely = _changed(first, table=_only_train_but(first, first.bench.measured.rows[1]))
    with pytest.raises(DataError, match="share no labelled test sample"):
        _ = Family.of([lonely, moved]).shared_ids


def _only_train_but(member, row):
    column = member.dataset.table.column_names.index("split")
    splits = member.dataset.splits.copy()
    splits[member.dataset.rows_of(Split.TEST)] = SPLIT_ORDER.index(Split.TRAIN)
    splits[row] = SPLIT_ORDER.index(Split.TEST)
    return member.dataset.table.set_column(column, "split", pa.array(splits, pa.int8()))


def test_family__held_out_leaves_out_what_slices_of_the_set_were_found_on(members):
    family = Family.of(members)
    first, second = members[:2]
    found_on = set(second.dataset.content_hashes(second.bench.pairs[0][0].rows))
    alone, both = family.held_out(first, [first]), family.held_out(first, [first, second])
    assert len(alone) == len(first.half(1))
    assert 0 < len(both) < len(alone)
    assert not found_on & set(first.dataset.content_hashes(both.rows))


def test_family_member__own_repair_or_why_there_is_none(members):
    small, _, blunt = members
    assert small.own_repair("slice-balanced")[1] == ""
    selection, obstacle = blunt.own_repair("slice-balanced")
    assert (
        obstacle
        == "No slice of this model was confirmed; the model's own repair is retraining alone."
    )
    assert set(selection.weights.tolist()) == {1.0}


def test_family_member__slices_without_training_members(members):
    found = members[0].bench.slices[0].model_copy(update={"rule": IdRule(sample_ids=("nobody",))})
    member = FamilyMember(name="small", bench=replace(members[0].bench, slices=(found,)))
    assert member.own_repair("slice-balanced")[1].startswith(
        "No training sample is a member of any slice"
    )
