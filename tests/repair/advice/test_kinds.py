import dataclasses

import numpy as np
import pyarrow as pa

from weakspot.core.dataset import Split
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Verdict
from weakspot.repair.advice.kinds import kinds_of
from weakspot.repair.bench import RepairBench
from weakspot.run.halves import split_in_halves


def test_kinds__a_class_has_the_training_images_that_look_like_its_evaluation_images(world):
    kind = world.kind()
    assert kind.title == "heron"
    assert kind.n_class_training == 60
    assert kind.n_known == 0
    assert kind.words == ("standing in reeds",)


def test_kinds__training_images_of_the_same_look_are_known(plant):
    assert 25 <= plant(n_known=30).kind().n_known <= 33


def test_kinds__a_slice_has_the_members_of_its_rule(sliced):
    kind = sliced.kind()
    assert kind.n_known == 3
    assert sliced.in_reeds[kind.training].all()
    assert kind.n_measured == 40


def test_kinds__only_the_discovery_half_is_looked_at(world, sliced, criterion):
    for one in (world, sliced):
        (discovery, confirmation), *_ = split_in_halves(one.samples, one.settings, criterion)
        rows = one.kind().rows
        assert len(rows)
        assert np.isin(rows, discovery.rows).all()
        assert not np.isin(rows, confirmation.rows).any()


def test_kinds__findings_of_one_class_are_one_kind_and_suspicions_none(world):
    shift = ClassFinding(
        kind=ClassFindingKind.SHIFT,
        class_name="heron",
        verdict=Verdict.CONFIRMED,
        sentence="looks unlike training",
    )
    whole = world.record.class_findings[0]
    unsure = whole.model_copy(update={"class_name": "gull", "verdict": Verdict.NOT_CONFIRMED})
    record = world.record.model_copy(update={"class_findings": (shift, unsure, whole)})
    (kind,) = kinds_of(record, world.bench)
    assert kind.subject == whole.finding_id
    assert (kind.n_failed, kind.n_evaluated) == (whole.n_failed, whole.n_samples)


def test_kinds__without_training_images_nothing_is_known_of_them(world):
    splits = world.dataset.splits.copy()
    splits[splits == 0] = 4
    table = world.dataset.table
    column = table.column_names.index("split")
    dataset = dataclasses.replace(
        world.dataset, table=table.set_column(column, "split", pa.array(splits, pa.int8()))
    )
    assert not len(dataset.rows_of(Split.TRAIN))
    samples = dataclasses.replace(world.samples, dataset=dataset)
    prepared = dataclasses.replace(world.prepared, samples=samples)
    (kind,) = kinds_of(world.record, RepairBench(prepared, world.settings))
    assert kind.n_known is None
