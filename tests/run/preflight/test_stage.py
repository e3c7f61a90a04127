import pytest
from preflight.worlds import NAMES, WAYS, write_images

from weakspot.core.run import CheckState, PreflightCheck
from weakspot.data.open_source import open_source
from weakspot.data.settings import DataSettings
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.run.preflight import stage
from weakspot.run.preflight.stage import (
    CACHE_FILE,
    check_before,
    check_ingested,
    check_now,
    merge_checks,
    without_second_guess,
)
from weakspot.run.settings import (
    PartSettings,
    Settings,
)
from weakspot.store.project import ProjectStore

SETTINGS = Settings(classifier=PartSettings(name="onnx", options={"path": "model.onnx"}))


@pytest.fixture
def parts(tmp_path):
    write_images(tmp_path / "data", way=WAYS["BGR"], n_samples={"train": 40, "validation": 60})
    source = open_source(str(tmp_path / "data" / "manifest.csv"))
    classifier = OnnxClassifier(path=tmp_path / "data" / "model.onnx", class_names=NAMES[:4])
    return source, classifier, ProjectStore.create(tmp_path / "p")


def _by_name(checks):
    return {check.check: check for check in checks}


def test_check_before__looks_once(parts, monkeypatch):
    source, classifier, store = parts
    first = check_before(source, classifier, SETTINGS, store)
    assert _by_name(first)["preprocessing"].state is CheckState.PROBLEM
    monkeypatch.setattr(stage, "look_at_source", lambda *_: pytest.fail("it was looked at before"))
    assert check_before(source, classifier, SETTINGS, store) == first


def test_check_before__looks_again_when_anything_changed(parts):
    source, classifier, store = parts
    check_before(source, classifier, SETTINGS, store)
    other = Settings(
        classifier=PartSettings(name="onnx", options={"path": "model.onnx", "threads": 1})
    )
    lines = [
        _by_name(check_before(source, classifier, settings, store))["preprocessing"].settings_line
        for settings in (SETTINGS, other)
    ]
    assert lines == [
        'options = {"path" = "model.onnx", "colour" = "bgr"}',
        'options = {"path" = "model.onnx", "threads" = 1, "colour" = "bgr"}',
    ]


def test_check_before__a_damaged_note_is_made_anew(parts):
    source, classifier, store = parts
    first = check_before(source, classifier, SETTINGS, store)
    (store.data / CACHE_FILE).write_text("{")
    assert check_before(source, classifier, SETTINGS, store) == first


def test_check_now__needs_no_project(parts):
    source, classifier, _ = parts
    found = _by_name(check_now(source, classifier, SETTINGS))
    assert list(found) == ["class order", "preprocessing", "splits", "class names", "accuracy"]
    assert found["preprocessing"].state is CheckState.PROBLEM
    assert found["splits"].state is CheckState.OK


def test_check_now__without_a_classifier(parts):
    dealt = Settings(data=DataSettings(default_split="train"))
    assert list(_by_name(check_now(parts[0], None, dealt))) == ["splits", "class names"]


def test_check_ingested__nothing_before_the_first_ingest(tmp_path):
    assert check_ingested(tmp_path, None, SETTINGS) == ()
    ProjectStore.create(tmp_path)
    assert check_ingested(tmp_path, None, SETTINGS) == ()


def _check(name, state=CheckState.OK, sentence="It is so."):
    return PreflightCheck(check=name, state=state, sentence=sentence)


def test_merge_checks__the_last_of_a_kind_in_the_usual_order():
    early, late = _check("accuracy", sentence="of a few"), _check("accuracy", sentence="of all")
    merged = merge_checks([early], [_check("splits"), late, _check("class order")])
    assert [check.check for check in merged] == ["class order", "splits", "accuracy"]
    assert merged[-1].sentence == "of all"


def test_without_second_guess__wrongly_prepared_images_explain_the_order():
    late = (_check("class order", CheckState.PROBLEM), _check("leaks"))
    wrong = (_check("preprocessing", CheckState.PROBLEM),)
    assert without_second_guess(wrong, late) == late[1:]
    assert without_second_guess((_check("preprocessing"),), late) == late
