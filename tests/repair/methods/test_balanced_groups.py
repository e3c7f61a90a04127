import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.groups import SubsampleRepairer, UpsampleRepairer


@pytest.fixture
def birds():
    """Six land birds on grass and two on sea, one water bird on grass and three on sea, one of unknown place, one without label."""
    dataset = dataset_from_columns(
        class_names=["land", "water"],
        labels=[0] * 8 + [1] * 4 + [0, -1],
        metadata={"place": ["grass"] * 6 + ["sea"] * 2 + ["grass"] + ["sea"] * 3 + [None, "sea"]},
    )
    return SampleSet(dataset=dataset, rows=np.arange(14))


def _per_group(rows):
    return [int(np.isin(rows, part).sum()) for part in (np.arange(6), [6, 7], [8], [9, 10, 11])]


def test_subsample__as_many_of_every_group_as_the_smallest_has(birds):
    chosen = SubsampleRepairer(column="place", least=1).select([], RepairMaterial(training=birds))
    assert _per_group(chosen.rows) == [1, 1, 1, 1]
    assert chosen.weights.tolist() == [1.0] * 4
    assert chosen.note == "1 samples of each group by class and place: 4 groups, 4 samples."


def test_subsample__no_group_is_cut_below_the_least(birds):
    chosen = SubsampleRepairer(column="place", least=3).select([], RepairMaterial(training=birds))
    assert _per_group(chosen.rows) == [3, 2, 1, 3]
    assert len(chosen.rows) == 9
    assert "4 groups, 2 of them smaller" in chosen.note
    every = SubsampleRepairer(column="place").select([], RepairMaterial(training=birds))
    assert every.rows.tolist() == list(range(12))


def test_subsample__the_seed_draws(birds):
    def drawn(seed):
        return tuple(
            SubsampleRepairer(column="place", least=2)
            .select([], RepairMaterial(training=birds, seed=seed))
            .rows
        )

    assert len({drawn(seed) for seed in range(10)}) > 3
    assert drawn(5) == drawn(5)


def test_upsample__every_group_weighs_the_same(birds):
    chosen = UpsampleRepairer(column="place").select([], RepairMaterial(training=birds))
    assert chosen.rows.tolist() == list(range(12))
    # Twelve samples in four groups: three for each.
    assert chosen.weights == pytest.approx([0.5] * 6 + [1.5] * 2 + [3.0] + [1.0] * 3)
    assert chosen.note == "Every group by class and place weighs the same: 4 groups, 12 samples."


@pytest.mark.parametrize("kind", [SubsampleRepairer, UpsampleRepairer])
def test_balanced_groups__columns_without_use(birds, kind):
    with pytest.raises(NotEnoughDataError, match="no metadata column 'colour'"):
        kind(column="colour").select([], RepairMaterial(training=birds))
    with pytest.raises(ConfigError, match="column"):
        kind(column="")
    with pytest.raises(TypeError):
        kind()
    dataset = birds.dataset.with_metadata({"half": ["a"] * 8 + [None] * 6})
    half = SampleSet(dataset=dataset, rows=np.arange(14))
    with pytest.raises(NotEnoughDataError, match="a whole class.*water"):
        kind(column="half").select([], RepairMaterial(training=half))
    assert not kind(column="place").is_baseline
