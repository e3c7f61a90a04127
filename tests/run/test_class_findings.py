"""Questions about whole classes: how they are judged, and what a run says."""

import numpy as np
import pytest
from tests.run.test_ledger import _data

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import ClassFindingKind
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.run.ledger import Ledger
from weakspot.run.settings import Settings
from weakspot.run.verdicts import CLASS_PART, MIN_GAP, Asking, ask_classes, judged
from weakspot.store.project import ProjectStore

NAMES = ("crane", "gull", "heron", "owl", "tern")
CRITERION = FailureCriterion()


def _world(
    *, rates=(0.1, 0.1, 0.6, 0.1, 0.1), size=60, shift=0.0, untrained="", with_training=True, seed=0
):
    """Return five classes; those that fail are taken for the next one. Herons may look different from training."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.repeat(np.arange(5), size), 2)
    is_train = np.arange(len(labels)) < len(labels) // 2
    wrong = rng.random(len(labels)) < np.array(rates)[labels]
    splits = np.where(is_train, "train", "validation")
    embeddings = rng.normal(size=(len(labels), 16)).astype(np.float32)
    embeddings[(labels == 2) & ~is_train, 0] += shift
    kept = np.ones(len(labels), dtype=bool) if with_training else ~is_train
    if untrained:
        kept &= ~(is_train & (labels == NAMES.index(untrained)))
    dataset = dataset_from_columns(
        class_names=NAMES,
        labels=labels[kept],
        predictions=np.where(wrong, (labels + 1) % 5, labels)[kept],
        splits=splits[kept].tolist(),
    )
    space = EmbeddingSpace(encoder_id="test", embeddings=embeddings[kept])
    return SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces={"clip": space})


@pytest.fixture
def judge(tmp_path):
    """Return what asks and judges the classes of a world, always of the same ledger."""
    ledger = Ledger(store=ProjectStore.create(tmp_path), data=_data(0, 100))

    def run(samples, **settings):
        questions = ask_classes(samples, Settings(**settings), CRITERION)
        judged([], Asking(ledger=ledger, source="test", classes=questions.tests), min_gap=0.0)
        return questions.judged(ledger)

    run.ledger = ledger
    return run


def _confirmed(findings, kind):
    return [one.class_name for one in findings if one.kind is kind and one.is_confirmed]


def test_judged__a_class_that_fails_and_what_it_is_taken_for(judge):
    findings = judge(_world())
    assert _confirmed(findings, ClassFindingKind.WHOLE) == ["heron"]
    assert _confirmed(findings, ClassFindingKind.CONFUSED) == ["heron"]
    assert findings[0].kind is ClassFindingKind.WHOLE
    assert (findings[0].batch, findings[0].n_training) == (1, 60)
    assert findings[0].p_value < findings[0].q_value <= 0.05


def test_judged__asked_again__costs_nothing_and_says_the_same(judge):
    first = judge(_world())
    standing = judge.ledger.standing()
    assert judge(_world()) == first
    assert judge.ledger.standing() == standing


def test_judged__classes_may_spend_a_small_part_only(judge):
    judge(_world())
    batch = judge.ledger._read().batches[0]
    assert batch.parts == (1.0 - CLASS_PART, CLASS_PART)
    assert {one.family for one in batch.questions} == {1}


def test_judged__a_gap_that_is_too_small_to_matter_is_no_finding(judge):
    small = _world(rates=(0.01, 0.01, 0.06, 0.01, 0.01), size=4000)
    findings = judge(small)
    assert findings == ()
    assert MIN_GAP > 0.05


def test_judged__what_stands_out_but_is_not_confirmed_is_told_as_such(judge):
    findings = judge(_world(rates=(0.1, 0.1, 0.3, 0.1, 0.1), size=25, seed=0))
    assert [(one.class_name, one.is_confirmed) for one in findings][:1] == [("heron", False)]


def test_judged__shift__found_where_it_is_and_nowhere_else(judge):
    findings = judge(_world(shift=3.0))
    assert _confirmed(findings, ClassFindingKind.SHIFT) == ["heron"]
    shift = next(one for one in findings if one.kind is ClassFindingKind.SHIFT)
    assert "throughout" not in shift.sentence
    assert [one.kind for one in findings[:3]] == [
        ClassFindingKind.WHOLE,
        ClassFindingKind.CONFUSED,
        ClassFindingKind.SHIFT,
    ]


def test_judged__shift_of_all_classes__is_said_to_be_throughout(judge):
    samples = _world(rates=(0.1,) * 5)
    is_evaluated = samples.dataset.splits == 1
    samples.spaces["clip"].embeddings[is_evaluated, 1] += 3.0
    shifts = [one for one in judge(samples) if one.kind is ClassFindingKind.SHIFT]
    assert len(shifts) == 5
    assert all("so do 5 of 5 classes" in one.sentence for one in shifts)


def test_judged__a_class_without_training_images_is_counted(judge):
    findings = judge(_world(untrained="owl"))
    (owl,) = [one for one in findings if one.kind is ClassFindingKind.UNTRAINED]
    assert (owl.class_name, owl.n_training, owl.p_value) == ("owl", 0, None)
    assert owl.sentence.startswith("owl has no training images; ")


def test_judged__no_training_split__nothing_is_said_of_training(judge):
    findings = judge(_world(with_training=False))
    assert _confirmed(findings, ClassFindingKind.WHOLE) == ["heron"]
    assert {one.n_training for one in findings} == {None}
    assert not {one.kind for one in findings} & {ClassFindingKind.UNTRAINED, ClassFindingKind.SHIFT}


def test_ask_classes__questions_do_not_depend_on_what_the_classifier_said():
    first, second = (ask_classes(_world(seed=seed), Settings(), CRITERION) for seed in (0, 1))
    names = [[(one.kind, one.class_name) for one in asked.asked] for asked in (first, second)]
    assert names[0] == names[1]
    assert {one.key for one in first.tests}.isdisjoint(one.key for one in second.tests)


def test_judged__family_wise_error_and_min_gap_of_the_settings_hold(judge):
    parameters = {"correction": "fwer", "min_gap": 0.9}
    findings = judge(_world(), verify={"parameters": parameters})
    assert not _confirmed(findings, ClassFindingKind.WHOLE)
