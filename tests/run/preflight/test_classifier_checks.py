from preflight.worlds import NAMES, PLAIN, WAYS, write_images

from weakspot.core.run import CheckState
from weakspot.data.open_source import open_source
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.run.preflight.classifier import check_classifier, options_line
from weakspot.run.preflight.source_look import look_at_source
from weakspot.run.settings import PartSettings, Settings

CONFIGURED = Settings(classifier=PartSettings(name="onnx", options={"path": "model.onnx"}))
SHIFTED = ("lemon", "brick", "copper", "forest")


def _checked(folder, *, way=PLAIN, names=NAMES[:4], settings=CONFIGURED, **options):
    write_images(folder, way=way, n_samples={"train": 60, "validation": 60}, **options)
    classifier = OnnxClassifier(path=folder / "model.onnx", class_names=names)
    look = look_at_source(open_source(str(folder / "manifest.csv")))
    return {check.check: check for check in check_classifier(look, classifier, settings)}


def test_check_classifier__in_order(tmp_path):
    found = _checked(tmp_path)
    assert list(found) == ["class order", "preprocessing", "accuracy"]
    assert {check.state for check in found.values()} == {CheckState.OK}


def test_check_classifier__colours_that_are_exchanged_are_no_wrong_order(tmp_path):
    found = _checked(tmp_path, way=WAYS["BGR"], n_classes=8, names=NAMES)
    assert found["preprocessing"].state is CheckState.PROBLEM
    assert found.get("class order") is None or found["class order"].state is CheckState.OK


def test_check_classifier__a_classifier_in_memory_gets_no_line(tmp_path):
    check = _checked(tmp_path, names=SHIFTED, settings=Settings())["class order"]
    assert check.state is CheckState.PROBLEM
    assert check.settings_line == ""
    assert "class_names in the order of its outputs" in check.fix


def test_check_classifier__labels_that_the_classifier_lacks_are_left_to_the_ingest(tmp_path):
    assert _checked(tmp_path, names=("brick", "copper", "forest", "other")) == {}


def test_options_line__keeps_what_is_set():
    part = PartSettings(name="onnx", options={"path": "m.onnx", "mean": [0.5, 0.5, 0.5]})
    assert options_line(part, {"mean": [0.0, 0.0, 0.0]}) == (
        'options = {"path" = "m.onnx", "mean" = [0.0, 0.0, 0.0]}'
    )
    assert options_line(PartSettings(), {"scale": 1.0}) == ""
