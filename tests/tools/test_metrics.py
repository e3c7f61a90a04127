import pytest
from tests.tools.made_bundle import TAG, made_bundle
from tests.tools.made_record import RUN_ID, bundle_with_run

from weakspot.core.errors import StoreError
from weakspot.core.run import ClassifierFacts
from weakspot.tools.trackers import MAX_METRICS, run_files, run_metrics, run_parameters, run_tags


def test_names_and_values_of_metrics(tmp_path):
    found = run_metrics(bundle_with_run(tmp_path))
    assert found == {
        "accuracy": pytest.approx(2 / 3),
        "samples": 30,
        "failures": 10,
        "slices_confirmed": 1,
        "slices_tested": 1,
        "worst_slice_accuracy": pytest.approx(0.1),
        "largest_gap": 0.85,
        f"slice/{TAG}/accuracy": pytest.approx(0.1),
        f"slice/{TAG}/accuracy_rest_of_class": 0.95,
        f"slice/{TAG}/gap": 0.85,
        f"slice/{TAG}/q_value": 1e-5,
        f"slice/{TAG}/samples": 10,
        "repair/slice-balanced/slice/disc-green/accuracy_before": 0.1,
        "repair/slice-balanced/slice/disc-green/accuracy_after": 0.8,
        "class/disc/accuracy": pytest.approx(11 / 20),
        "class/square/accuracy": 0.9,
    }


def test_many_classes_leave_out_those_with_fewest_failures(tmp_path):
    facts = ClassifierFacts(
        n_samples=1,
        n_failed=1,
        per_class={f"class {number:04d}": (5_000, number) for number in range(3_000)},
    )
    found = run_metrics(bundle_with_run(tmp_path, classifier=facts))
    assert len(found) == MAX_METRICS
    assert "class/class-2999/accuracy" in found
    assert "class/class-0000/accuracy" not in found
    assert f"slice/{TAG}/gap" in found


def test_settings_are_flat_short_and_hold_no_secret(tmp_path):
    found = run_parameters(bundle_with_run(tmp_path))
    assert found["classifier.options.batch_size"] == "8"
    assert found["classifier.options.layers"] == "[1, 2]"
    assert found["data.source"] == "https://example.org/a.csv"
    assert len(found["note"]) == 500
    assert not any("hunter2" in value for value in found.values())
    assert "classifier.options.api_token" not in found


def test_tags_name_run_version_and_inputs(tmp_path):
    found = run_tags(bundle_with_run(tmp_path))
    assert found["weakspot.run_id"] == RUN_ID
    assert found["weakspot.version"] == "0.1.0"
    assert found["weakspot.input.data-set"] == "aa11"


def test_files_are_the_report_the_card_and_the_slices(tmp_path):
    files = run_files(bundle_with_run(tmp_path), tmp_path / "out")
    assert [path.name for path in files] == ["report.md", "model-card.md", "slices.csv"]
    assert "disc: green" in files[-1].read_text()


def test_without_a_run_there_is_nothing_to_tell(tmp_path):
    with pytest.raises(StoreError, match="no run"):
        run_metrics(made_bundle(tmp_path))
