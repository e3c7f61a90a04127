import numpy as np
from tests.build import class_finding

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.evidence import ClassFindingKind, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.report.findings import class_finding_images


def _finding(**changes):
    made = class_finding(ClassFindingKind.SHIFT, "heron", "herons look unlike training")
    return made.model_copy(update=changes)


def _samples():
    dataset = dataset_from_columns(
        class_names=["heron", "crane"],
        labels=[0, 0, 0, -1],
        predictions=np.array([1, 0, -1, 0]),
        sample_ids=["a", "b", "c", "d"],
        splits=["validation", "train", "train", "pool"],
    )
    return SampleSet(dataset=dataset, rows=np.arange(4))


def test_class_finding_images__both_sides_with_what_the_classifier_said():
    finding = _finding(examples_here=("a", "gone", "d"), examples_there=("b", "c"))
    found = class_finding_images([finding], _samples(), FailureCriterion(), n_images=5)
    images = found[finding.finding_id]
    assert [(one.sample_id, one.answer, one.has_failed) for one in images.hard] == [
        ("a", "crane", True),
        ("d", "", False),
    ]
    assert [(one.sample_id, one.answer, one.has_failed) for one in images.easy] == [
        ("b", "heron", False),
        ("c", "", False),
    ]


def test_class_finding_images__few_and_of_confirmed_findings_only():
    finding = _finding(examples_here=("a", "b"), examples_there=("c",))
    found = class_finding_images([finding], _samples(), FailureCriterion(), n_images=1)
    assert found[finding.finding_id].sample_ids == ("a", "c")
    doubtful = finding.model_copy(update={"verdict": Verdict.NOT_CONFIRMED})
    assert class_finding_images([doubtful], _samples(), FailureCriterion(), n_images=1) == {}
    assert class_finding_images([_finding()], _samples(), FailureCriterion(), n_images=1) == {}
