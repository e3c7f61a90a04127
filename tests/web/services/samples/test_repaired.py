"""What repairs changed for single images."""

import shutil

import pytest

from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.services import loop
from weakspot.web.services.repair import changed_images, repairs_on_sample
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def repaired(fruit_folder, tmp_path):
    """The fruit, repaired twice by different strategies."""
    project = Project.open(shutil.copytree(fruit_folder, tmp_path / "fruit"))
    for strategy in ("plain", "slice-balanced"):
        loop.repair(Project.open(project.folder), no_stage_progress, strategy=strategy)
    return Workspace(Project.open(project.folder))


def test_repairs_on_sample__repaired_twice__both_are_told_and_agree_with_the_page(repaired):
    changed = changed_images(repaired)
    assert changed.right_now
    for image in changed.right_now[:3]:
        current, earlier = repairs_on_sample(repaired, image.row)
        assert (current.was_failure, current.is_failure) == (True, False)
        assert (current.is_current, earlier.is_current) == (True, False)
        assert current.answer == image.label
        assert 0 < current.probability <= 1
        assert current.repair_id != earlier.repair_id


def test_repairs_on_sample__nothing_repaired__none(world_workspace):
    assert repairs_on_sample(world_workspace, 0) == []
