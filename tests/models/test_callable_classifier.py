import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.roles import Classifier
from weakspot.models.callable_classifier import CallableClassifier

MODULE = """
import numpy as np

def redness(images):
    red = [float(image[:, :, 0].mean()) / 255 for image in images]
    return [[1 - share, share] for share in red]

class Model:
    class_names = ["blue", "red"]
    def __init__(self, gain=1.0):
        self.gain = gain
    def __call__(self, images):
        table = np.array(redness(images))
        return {"probabilities": table, "features": table * self.gain}

def make(gain):
    return Model(gain)
"""


def _red(share, side=4):
    return Image.new("RGB", (side, side), (round(255 * share), 0, 0))


def _answering(answer):
    return CallableClassifier(function=lambda images: answer, class_names=["a", "b"])


def test_classify__function_by_import_string(tmp_path):
    (tmp_path / "red_model_one.py").write_text(MODULE)
    classifier = CallableClassifier(
        target="red_model_one:redness", folder=tmp_path, class_names=["blue", "red"]
    )
    assert isinstance(classifier, Classifier)
    output = classifier.classify([classifier.prepare(_red(share)) for share in (0.0, 1.0, 0.2)])
    np.testing.assert_allclose(output.probabilities, [[1, 0], [0, 1], [0.8, 0.2]], atol=1e-6)
    assert output.features is None
    assert classifier.head is None
    assert classifier.image_side is None


def test_classify__class_and_factory(tmp_path):
    (tmp_path / "red_model_two.py").write_text(MODULE)
    plain = CallableClassifier(target="red_model_two:Model", folder=tmp_path)
    made = CallableClassifier(target="red_model_two:make", folder=tmp_path, arguments={"gain": 3.0})
    assert plain.class_names == made.class_names == ("blue", "red")
    prepared = [plain.prepare(_red(0.2))]
    np.testing.assert_allclose(plain.classify(prepared).features, [[0.8, 0.2]], atol=1e-6)
    np.testing.assert_allclose(made.classify(prepared).features, [[2.4, 0.6]], atol=1e-6)
    assert plain.classifier_id != made.classifier_id


def test_classify__pair_and_multi_label():
    classifier = CallableClassifier(
        function=lambda images: ([[0.9, 0.8]], [[1.0, 2.0, 3.0]]), task="multi-label"
    )
    output = classifier.classify([np.zeros((2, 2, 3), np.uint8)])
    assert classifier.task is Task.MULTI_LABEL
    np.testing.assert_allclose(output.probabilities, [[0.9, 0.8]], atol=1e-6)
    np.testing.assert_allclose(output.features, [[1.0, 2.0, 3.0]])


def test_prepare__full_size_and_resized():
    pixels = np.random.default_rng(0).integers(0, 256, (10, 14, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    np.testing.assert_array_equal(_answering([[1, 0]]).prepare(image), pixels)
    sized = CallableClassifier(function=lambda images: [[1.0]], image_side=8)
    assert sized.prepare(image).shape == (8, 8, 3)
    assert sized.prepare(image).dtype == np.uint8
    assert sized.image_side == 8


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5, 0.5], "wrong shape"),
        ([[0.5, 0.5]] * 2, "wrong shape"),
        ([[float("nan"), 0.5]], "NaN"),
        ([[-0.5, 1.5]], "outside 0 to 1"),
        ([[0.1, 0.1]], "sum to 0.2"),
        ([[0.1, 0.2, 0.7]], "3 probabilities an image, but there are 2"),
        (None, "gives nothing"),
        ({"scores": [[0.5, 0.5]]}, "lacks 'probabilities'"),
        (([[0.5, 0.5]], None, 3), "tuple of 3"),
        ("cat", "no table of numbers"),
    ],
)
def test_classify__wrong_answers(answer, message):
    with pytest.raises(ModelError, match=message):
        _answering(answer).classify([np.zeros((2, 2, 3), np.uint8)])


def test_classify__function_that_fails():
    def broken(images):
        raise KeyError("weights")

    with pytest.raises(ModelError, match="KeyError: 'weights'"):
        CallableClassifier(function=broken).classify([np.zeros((2, 2, 3), np.uint8)])


def test_settings__problems(tmp_path):
    (tmp_path / "red_model_three.py").write_text(MODULE + "\nnumber = 3\n")
    with pytest.raises(ConfigError, match="either target"):
        CallableClassifier()
    with pytest.raises(ConfigError, match="plain pixels"):
        CallableClassifier(target="a:b", image_side=8, mean=0.5)
    with pytest.raises(ConfigError, match="cannot be called"):
        CallableClassifier(target="red_model_three:number", folder=tmp_path).classify([])
    with pytest.raises(ModelError, match="factory fails: TypeError"):
        CallableClassifier(
            target="red_model_three:make", folder=tmp_path, arguments={"size": 3}
        ).classify([])


def test_classifier_id__source_and_version(tmp_path):
    (tmp_path / "red_model_four.py").write_text(MODULE)
    (tmp_path / "red_model_five.py").write_text(MODULE + "# changed\n")
    options = {"folder": tmp_path, "class_names": ["a", "b"]}
    first = CallableClassifier(target="red_model_four:redness", **options).classifier_id
    assert CallableClassifier(target="red_model_four:redness", **options).classifier_id == first
    assert (
        CallableClassifier(target="red_model_four:redness", version="2", **options).classifier_id
        != first
    )
    other = CallableClassifier(target="red_model_five:redness", **options).classifier_id
    assert other.partition("@")[2] != first.partition("@")[2]
