"""A model that takes its process down on one image: the image is set aside with its reason, and the rest goes on."""

import textwrap

import numpy as np
import pytest
from PIL import Image

from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.models.callable_classifier import CallableClassifier
from weakspot.run.ingestion import ingest
from weakspot.run.models import classify
from weakspot.store.project import ProjectStore

MODEL = """
import os, signal
import numpy as np

def classify(images):
    means = np.array([image.mean() / 255 for image in images])
    if (means < 0.02).any():
        {harm}
    return np.stack([1 - means, means], axis=1)
"""
HARMS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashed": "import ctypes; ctypes.string_at(0)",
}
N_IMAGES = 12
ENGINE = ProcessEngine(n_workers=1)


@pytest.fixture
def project(tmp_path):
    for number in range(N_IMAGES):
        folder = tmp_path / "images" / ("dark" if number < N_IMAGES // 2 else "light")
        folder.mkdir(parents=True, exist_ok=True)
        value = 0 if number == 3 else 40 + 17 * number
        Image.new("RGB", (16, 16), (value, value, value)).save(folder / f"{number:02d}.png")
    made = ProjectStore.create(tmp_path / "project")
    ingest(made, ImageFolderSource(location=str(tmp_path / "images")), engine=ENGINE)
    return made


@pytest.mark.parametrize("harm", list(HARMS))
def test_classify__one_image_takes_the_worker_down__is_set_aside_and_the_rest_goes_on(
    tmp_path, project, harm
):
    (tmp_path / "deadly_model.py").write_text(textwrap.dedent(MODEL).format(harm=HARMS[harm]))
    model = CallableClassifier(
        target="deadly_model:classify", folder=str(tmp_path), class_names=("dark", "light")
    )
    found = classify(project, project.dataset(), model, engine=ENGINE)
    assert found.n_predictions == N_IMAGES - 1
    (lost,) = found.unreadable
    assert (lost.reason, lost.location.endswith("03.png")) == ("worker-lost", True)
    assert np.isnan(np.asarray(found.dataset.probabilities)).all(axis=1).sum() == 1
