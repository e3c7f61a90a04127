"""Asking the classifier about images."""

import shutil

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import StoreError
from weakspot.project.project import Project
from weakspot.web.services.samples import classify_images, lock_of_models, with_classifier
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def fruit(fruit_folder, tmp_path):
    return Workspace(Project.open(shutil.copytree(fruit_folder, tmp_path / "fruit")))


def test_classify_images__of_a_sample__as_it_was_predicted(fruit):
    dataset = fruit.samples.dataset
    rows = fruit.discovery.rows[:4]
    images = [Image.open(place).convert("RGB") for place in dataset.locations(rows)]
    with lock_of_models(fruit):
        found = classify_images(with_classifier(fruit), images)
    assert np.allclose(found, np.asarray(dataset.probabilities)[rows], atol=1e-3)


def test_with_classifier__predictions_only__says_what_to_do(world_workspace):
    with pytest.raises(StoreError, match="predictions only"):
        with_classifier(world_workspace)
