import shutil
from collections import Counter

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.evidence import Share
from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.services import attributes as attribute_columns
from weakspot.web.services.attributes import attribute_histograms
from weakspot.web.services.workspace import Workspace


def _attribute(view, attribute_id):
    return next(one for one in view.attributes if one.attribute_id == attribute_id)


def test_attribute_histograms__before_assignment__the_users_columns_are_shown(unassigned_folder):
    view = attribute_histograms(Workspace(Project.open(unassigned_folder)))
    assert not view.is_assigned
    assert {one.attribute_id for one in view.attributes} >= {"kind", "colour", "background"}
    assert {one.source for one in view.attributes} == {"metadata"}


def test_attribute_histograms__counts_are_those_of_the_discovery_half(attributed):
    view = attribute_histograms(attributed, "disc")
    problem = attributed.problem("disc")
    words = np.array(attributed.samples.dataset.metadata("colour").to_pylist(), dtype=object)
    totals, wrong = Counter(words[problem.rows]), Counter(words[problem.rows[problem.failed]])
    for value in _attribute(view, "colour").values:
        assert value.failures == Share.of(wrong[value.title], totals[value.title])
    assert view.failures == Share.of(problem.n_failed, len(problem.rows))


def test_attribute_histograms__all_classes__every_sample_once(attributed):
    view = attribute_histograms(attributed)
    assert view.failures.total == len(attributed.discovery)
    for attribute in view.attributes:
        n_known = sum(value.failures.total for value in attribute.values)
        assert n_known + attribute.unknown.total == len(attributed.discovery)


def test_attribute_histograms__share_in_training_is_of_the_class(attributed):
    dataset = attributed.samples.dataset
    rows = dataset.rows_of(Split.TRAIN)
    rows = rows[dataset.labels[rows] == dataset.class_code("disc")]
    words = np.array(dataset.metadata("colour").to_pylist(), dtype=object)[rows]
    view = attribute_histograms(attributed, "disc")
    green = next(value for value in _attribute(view, "colour").values if value.title == "green")
    assert view.n_training == len(rows)
    assert green.training == Share.of(int((words == "green").sum()), len(rows))


def test_attribute_histograms__told_from_words__with_agreement_and_source(attributed):
    told = _attribute(attribute_histograms(attributed), "colour (assigned)")
    assert (told.source, told.state, told.is_worded) == ("built-in", "assigned", True)
    assert told.agreement > 0.95


def test_assign__by_somebody_else__the_workspace_notices(attributed):
    shutil.rmtree(attributed.project.store.data / "attributes")
    workspace = Workspace(Project.open(attributed.project.folder))
    assert not attribute_histograms(workspace).is_assigned
    attribute_columns.assign(Project.open(workspace.project.folder), no_stage_progress)
    assert attribute_histograms(workspace).is_assigned
