import tomllib

import numpy as np
import pytest
from PIL import Image
from preflight.worlds import NAMES, PLAIN, WAYS, write_images

from weakspot.core.errors import ModelError
from weakspot.core.roles import ClassifierOutput
from weakspot.core.run import CheckState
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.models.preprocessing import Preprocessing
from weakspot.run.preflight.classifier import (
    check_preprocessing,
    colour_variants,
    crop_variants,
)
from weakspot.run.settings import toml_value

N_CLASSES = 4


def _checked(folder, way, *, spread=0.08, n_images=96, **options):
    write_images(folder, way=way, n_samples={"validation": n_images}, spread=spread)
    classifier = OnnxClassifier(
        path=folder / "model.onnx", class_names=NAMES[:N_CLASSES], **options
    )
    images = [Image.open(path).convert("RGB") for path in sorted(folder.glob("*.png"))]
    labels = np.arange(n_images) % N_CLASSES
    answer = classifier.classify([classifier.prepare(image) for image in images])
    predictions = answer.probabilities.argmax(axis=1)
    return check_preprocessing(classifier, images, labels, np.arange(N_CLASSES), predictions)


@pytest.mark.parametrize(
    ("way", "options"),
    [
        ("BGR", {"colour": "bgr"}),
        ("pixels from 0 to 255", {"scale": 1.0}),
        ("squeezed", {"crop": "none"}),
        ("Caffe", {"colour": "bgr", "scale": 1.0, "mean": [103.939, 116.779, 123.68]}),
    ],
)
def test_check_preprocessing__another_way_is_clearly_better(tmp_path, way, options):
    check, (better, accuracy) = _checked(tmp_path, WAYS[way])
    assert check.state is CheckState.PROBLEM
    assert better == options
    assert accuracy > 0.8
    assert tomllib.loads(f"options = {toml_value(better)}")["options"] == options
    assert _checked(tmp_path, WAYS[way], **options)[0].state is CheckState.OK


def test_check_preprocessing__a_good_classifier_is_not_tried_in_other_ways(tmp_path):
    check, better = _checked(tmp_path, PLAIN, spread=0.03)
    assert check.sentence == "100 % of 96 images are right as they are prepared."
    assert better is None


def test_check_preprocessing__a_bad_classifier_is_no_wrong_way(tmp_path):
    check, better = _checked(tmp_path, PLAIN, spread=0.3)
    assert check.state is CheckState.OK
    assert check.sentence.startswith("None of ")
    assert better is None


def test_check_preprocessing__too_few_images_say_nothing(tmp_path):
    assert _checked(tmp_path, WAYS["BGR"], n_images=20) == (None, None)


def test_colour_variants__grey_and_whole_numbers_leave_little_to_try():
    grey = Preprocessing(height=8, width=8, colour="grey", mean=(0.0,), std=(1.0,))
    assert {variant.preprocessing.colour for variant in colour_variants(grey)} == {"grey"}
    whole = Preprocessing(height=8, width=8, dtype="uint8")
    assert [variant.words for variant in colour_variants(whole)] == ["channels in the order BGR"]


def test_crop_variants__those_that_differ():
    assert [variant.words for variant in crop_variants(PLAIN)] == [
        "whole images squeezed",
        "the centre cut out of images of 37 pixels",
    ]
    squeezed = Preprocessing(height=32, width=32, crop="none")
    assert [variant.changes(squeezed) for variant in crop_variants(squeezed)] == [
        {"crop": "centre", "resize_side": 32},
        {"crop": "centre", "resize_side": 37},
    ]


def test_check_preprocessing__a_classifier_without_an_answer_to_other_numbers(tmp_path):
    class Easily:
        """Refuses what is not between 0 and 1."""

        preprocessing = PLAIN
        n_refused = 0

        def classify(self, prepared):
            if min(part.min() for part in prepared) < 0 or max(part.max() for part in prepared) > 1:
                self.n_refused += 1
                raise ModelError("It holds NaN.")
            return ClassifierOutput(probabilities=np.eye(2)[np.zeros(len(prepared), int)])

    classifier, labels = Easily(), np.arange(60) % 2
    images = [Image.new("RGB", (32, 32), (200, 10, 10))] * 60
    check, better = check_preprocessing(
        classifier, images, labels, np.arange(2), np.zeros(60, dtype=int)
    )
    assert (check.state, better) == (CheckState.OK, None)
    assert classifier.n_refused > 0
