from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.heads import RepairMaterial, TrainingSelection
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.repair.controls import class_name_control, confidence_control, random_control
from weakspot.repair.strategies.groups import SubsampleRepairer, WorstSliceRepairer
from weakspot.repair.strategies.pool import DeepestRepairer
from weakspot.repair.strategies.reweighting import (
    ClassBalancedRepairer,
    SliceBalancedRepairer,
    UpWeightRepairer,
)
from weakspot.repair.strategies.synthetic import SyntheticRepairer
from weakspot.testing import material as repair_material

MATCHED_CONTROLS = (random_control, confidence_control, class_name_control)
FRUIT = {
    "a photo of an apple": [1.0, 0.0],
    "a photo of a pear": [0.0, 1.0],
    "a photo of an apple and a pear": [1.0, 1.0],
}


def _embed(phrases):
    return np.array([FRUIT[phrase] for phrase in phrases], dtype=np.float32)


def _material(
    *,
    splits,
    labels=None,
    label_lists=None,
    truth=None,
    embeddings=None,
    prompts=None,
    predictions=None,
    **other,
):
    """Return material of apples and pears; `truth` is the probability of an apple, row by row."""
    probabilities = (
        None
        if truth is None
        else np.column_stack([truth, 1.0 - np.array(truth)]).astype(np.float32)
    )
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=labels,
        label_lists=label_lists,
        splits=splits,
        probabilities=probabilities,
        predictions=None if predictions is None else np.array(predictions),
        metadata=None if prompts is None else {"prompt": prompts},
    )
    spaces = (
        {}
        if embeddings is None
        else {
            "clip": EmbeddingSpace(
                encoder_id="e", embeddings=np.array(embeddings, np.float32), has_text=True
            )
        }
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces=spaces)
    of = {split: samples.only(dataset.rows_of(split)) for split in Split}
    return RepairMaterial(
        training=of[Split.TRAIN], pool=of[Split.POOL], synthetic=of[Split.SYNTHETIC], **other
    )


def _selection(rows, weights=None, group_objectives=()):
    weights = np.ones(len(rows)) if weights is None else np.array(weights, dtype=np.float64)
    groups = tuple(
        tuple(np.array(group) for group in group_objective) for group_objective in group_objectives
    )
    return TrainingSelection(
        rows=np.array(rows), weights=weights, note="chosen", group_objectives=groups
    )


def test_confidence_twin__the_heavy_places_go_to_the_least_confident_of_the_class(
    training, make_slice
):
    material = RepairMaterial(training=training)
    chosen = SliceBalancedRepairer().select([make_slice()], material)
    control = confidence_control(chosen, material)
    # Confidence falls with the row: the two heavy places of apples go to rows 6 and 7, pears stay as they were.
    assert control.rows.tolist() == [6, 7, 0, 1, 2, 3, 4, 5, 8, 9, 10, 11]
    assert control.weights.tolist() == chosen.weights.tolist()
    assert control.note == (
        "Matched control by least confidence: the same weights on as many samples of each class (train); "
        "4 of 12 samples are others or count otherwise."
    )


def test_confidence_twin__contests_keep_their_places_and_the_smaller_group_matters_most(
    training, make_slice
):
    material = RepairMaterial(training=training)
    chosen = WorstSliceRepairer().select([make_slice()], material)
    control = confidence_control(chosen, material)
    assert control.group_objectives is chosen.group_objectives
    assert control.rows[chosen.group_objectives[0][0]].tolist() == [6, 7]
    most = _selection(list(range(8)), group_objectives=[[[0, 1, 2, 3, 4], [5, 6, 7]]])
    swapped = confidence_control(most, replace(material, training=training.only(np.arange(8))))
    assert swapped.rows[[5, 6, 7]].tolist() == [5, 6, 7]
    assert confidence_control(
        replace(most, group_objectives=((np.arange(3), np.arange(3, 8)),)), material
    ).rows[:3].tolist() == [5, 6, 7]


def test_confidence_twin__unlabelled_pool_is_matched_by_the_likeliest_class():
    splits, labels = ["train"] * 2 + ["pool"] * 5, [0, 1, -1, -1, -1, -1, 0]
    material = _material(splits=splits, labels=labels, truth=[0.9, 0.1, 0.95, 0.6, 0.7, 0.45, 0.01])
    control = confidence_control(_selection([0, 1, 2]), material)
    # Row 2 is taken for an apple; of such rows 3 is the least sure. Rows 5 and 6 are taken for pears; the label of 6 is not read.
    assert control.rows.tolist() == [0, 1, 3]


def test_confidence_twin__samples_without_probabilities_come_last():
    material = _material(
        splits=["train", "pool", "pool", "pool"], labels=[1, 0, 0, 0], truth=[0.5, np.nan, 0.9, 0.8]
    )
    assert confidence_control(_selection([0, 1]), material).rows.tolist() == [0, 3]
    assert sorted(confidence_control(_selection([0, 1, 2]), material).rows) == [0, 2, 3]
    for truth in (None, [np.nan] * 4):
        bare = _material(splits=["train", "pool", "pool", "pool"], labels=[1, 0, 0, 0], truth=truth)
        with pytest.raises(DataError, match="without probabilities"):
            confidence_control(_selection([0, 1]), bare)


def test_random_twin__only_seed_and_ids_decide():
    given = {"splits": ["train"] + ["pool"] * 20, "labels": [1] + [0] * 20}
    drawn = [
        tuple(random_control(_selection([0, 1, 2, 3]), _material(**given, seed=seed)).rows)
        for seed in range(12)
    ]
    assert len(set(drawn)) > 8
    assert drawn[3] == tuple(
        random_control(_selection([0, 1, 2, 3]), _material(**given, seed=3)).rows
    )
    assert all(rows[0] == 0 and len(set(rows)) == 4 for rows in drawn)


def test_class_name_twin__nearest_to_the_mere_name():
    embeddings = [[1.0, 0.0], [0.6, 0.8], [0.0, 2.0], [5.0, 1.0], [np.nan, np.nan]]
    splits, labels = ["train", "pool", "pool", "pool", "pool"], [1, 0, 0, 0, 0]
    material = _material(
        splits=splits,
        labels=labels,
        embeddings=embeddings,
        assistants=Assistants(embed_texts=_embed),
    )
    assert class_name_control(_selection([0, 2]), material).rows.tolist() == [0, 3]
    assert class_name_control(_selection([0, 2, 4]), material).rows.tolist() == [0, 1, 3]
    assert (
        "by closeness to the name of the class"
        in class_name_control(_selection([0, 2]), material).note
    )


def test_class_name_twin__prompts_that_name_only_the_class_come_first():
    prompts = [
        None,
        "a photo of a green apple",
        "an apple on a table",
        "an image of an apple",
        None,
    ]
    material = _material(
        splits=["train"] + ["synthetic"] * 4,
        labels=[1, 0, 0, 0, 0],
        embeddings=[[0.0, 1.0], [1.0, 0.0], [0.9, 0.1], [0.2, 0.9], [0.8, 0.1]],
        prompts=prompts,
        assistants=Assistants(embed_texts=_embed),
    )
    assert class_name_control(_selection([0, 1]), material).rows.tolist() == [0, 3]
    assert class_name_control(_selection([0, 1, 2]), material).rows.tolist() == [0, 1, 3]


def test_class_name_twin__needs_words_and_embeddings():
    given = {"splits": ["train", "pool", "pool"], "labels": [0, 0, 0]}
    with pytest.raises(NotEnoughDataError, match="names of classes"):
        class_name_control(_selection([0, 1]), _material(**given, embeddings=[[1.0, 0.0]] * 3))
    with pytest.raises(NotEnoughDataError, match="weakspot embed"):
        class_name_control(
            _selection([0, 1]), _material(**given, assistants=Assistants(embed_texts=_embed))
        )


@pytest.mark.parametrize("control_of", MATCHED_CONTROLS)
def test_twins__what_chooses_nothing_within_a_class_is_its_own_twin(control_of):
    given = repair_material.full()
    chosen = ClassBalancedRepairer().select([], given)
    control = control_of(chosen, given)
    assert control.rows.tolist() == chosen.rows.tolist()
    assert "it is the same training set" in control.note


@pytest.mark.parametrize("control_of", MATCHED_CONTROLS)
@pytest.mark.parametrize("is_multi_label", [False, True])
@pytest.mark.parametrize(
    "strategy",
    [
        SliceBalancedRepairer(),
        UpWeightRepairer(factor=8.0, is_graded=True),
        WorstSliceRepairer(),
        SubsampleRepairer(column="background"),
        DeepestRepairer(),
        SyntheticRepairer(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_twins__same_size_in_every_class_and_source(strategy, control_of, is_multi_label):
    given = repair_material.full(is_multi_label=is_multi_label)
    dataset = given.training.dataset
    chosen = strategy.select(repair_material.repair_slices(given.training), given)
    control = control_of(chosen, given)
    assert len(set(control.rows)) == len(control.rows) == len(chosen.rows)
    for place, (old, new) in enumerate(zip(chosen.rows, control.rows, strict=True)):
        assert dataset.label_matrix[old].tolist() == dataset.label_matrix[new].tolist(), place
        assert dataset.splits[old] == dataset.splits[new]
    assert dataset.is_labelled[control.rows].all()
    assert control.weights.tolist() == chosen.weights.tolist()
    assert control.group_objectives is chosen.group_objectives


@pytest.mark.parametrize("control_of", MATCHED_CONTROLS)
def test_twins__stay_the_same_when_labels_come_back(control_of):
    given = repair_material.full(change=repair_material.with_unlabelled_pool)
    chosen = DeepestRepairer().select(repair_material.repair_slices(given.training), given)
    before = control_of(chosen, given)
    asked = np.union1d(chosen.rows, before.rows)
    asked = asked[~given.training.dataset.is_labelled[asked]]
    dataset = given.training.dataset.with_labels(asked, np.ones(len(asked), dtype=np.int64))
    told = replace(
        given,
        **{
            name: replace(getattr(given, name), dataset=dataset)
            for name in ("training", "pool", "synthetic")
        },
    )
    assert control_of(chosen, told).rows.tolist() == before.rows.tolist()


def test_twins__without_any_prediction_an_unlabelled_pool_is_one_class():
    material = _material(splits=["train", "train"] + ["pool"] * 6, labels=[0, 1] + [-1] * 6)
    drawn = {
        tuple(random_control(_selection([0, 1, 2]), replace(material, seed=seed)).rows[2:])
        for seed in range(20)
    }
    assert len(drawn) > 3
    several = _material(splits=["train"] + ["pool"] * 6, label_lists=[[0]] + [None] * 6)
    assert random_control(_selection([0, 3]), several).rows[0] == 0
    told = _material(
        splits=["train", "train"] + ["pool"] * 4,
        labels=[0, 1] + [-1] * 4,
        predictions=[0, 1, 0, 0, 1, -1],
    )
    assert {
        int(random_control(_selection([0, 1, 2]), replace(told, seed=seed)).rows[2])
        for seed in range(20)
    } == {2, 3}


def test_twins__copies_of_images_are_no_other_samples():
    """Row 2 copies the training sample, row 4 copies row 3: only row 5 can take the place of row 3."""
    dataset = dataset_from_columns(
        class_names=["apple"],
        labels=[0] * 6,
        splits=["train"] + ["pool"] * 5,
        content_hashes=["a", "b", "a", "c", "c", "d"],
        probabilities=np.array([[0.9], [0.8], [0.1], [0.7], [0.2], [0.3]], dtype=np.float32),
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(6))
    material = RepairMaterial(
        training=samples.only(np.array([0])), pool=samples.only(np.arange(1, 6))
    )
    assert confidence_control(_selection([0, 3]), material).rows.tolist() == [0, 5]
    assert confidence_control(_selection([0, 3, 1]), material).rows.tolist() == [0, 3, 5]


def test_twins__refuse_samples_from_elsewhere():
    material = _material(splits=["train", "test"], labels=[0, 0])
    with pytest.raises(DataError, match="1 of 2 samples"):
        random_control(_selection([0, 1]), material)
