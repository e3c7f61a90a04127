import json
import sys

import pytest
from tests.tools.made_bundle import TAG, made_bundle
from tests.tools.made_record import RUN_ID, bundle_with_run
from tests.tools.real_libraries import run_real

from weakspot.core.errors import MissingExtraError, StoreError
from weakspot.tools.trackers import log_mlflow_run, run_metrics, run_parameters

LOG_AND_READ = """
import json, os, sys
from pathlib import Path
from mlflow.tracking import MlflowClient
from tests.tools.made_record import bundle_with_run
from weakspot.core.errors import UnavailableError
from weakspot.core.run import ClassifierFacts
from weakspot.tools.trackers import log_mlflow_run

folder = Path(sys.argv[1])
bundle = bundle_with_run(folder)
log_mlflow_run(bundle, folder / "out")
log_mlflow_run(bundle, folder / "out")
better = ClassifierFacts(n_samples=30, n_failed=0, per_class={"disc": (20, 0), "square": (10, 0)})
log_mlflow_run(bundle_with_run(folder, run_id="another", classifier=better), folder / "out")

client = MlflowClient(f"sqlite:///{folder / 'out' / 'mlflow.db'}")
[experiment] = [one for one in client.search_experiments() if one.name == "shapes"]
runs = client.search_runs([experiment.experiment_id])
[run] = [one for one in runs if one.data.tags["weakspot.run_id"] == sys.argv[2]]
run_id = run.info.run_id
os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder / 'elsewhere.db'}"
there = log_mlflow_run(bundle, folder / "second")
os.environ["MLFLOW_TRACKING_URI"] = "unknown://nowhere"
try:
    log_mlflow_run(bundle, folder / "third")
    refused = ""
except UnavailableError as error:
    refused = str(error)
print("TOLD" + json.dumps({
    "n": len(runs), "metrics": run.data.metrics, "params": run.data.params, "tags": run.data.tags, "status": run.info.status,
    "history": len(client.get_metric_history(run_id, "accuracy")),
    "files": sorted(one.path for one in client.list_artifacts(run_id)),
    "second": sorted(path.name for path in (folder / "second").iterdir()), "there": there.sentence, "refused": refused,
    "accuracies": sorted(one.data.metrics["accuracy"] for one in runs),
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    return json.loads(run_real(LOG_AND_READ, folder, RUN_ID, home=folder).split("TOLD")[1])


def test_real_mlflow_reads_back_metrics_parameters_tags_and_files(told, tmp_path):
    bundle = bundle_with_run(tmp_path)
    assert told["metrics"] == pytest.approx(run_metrics(bundle))
    assert told["metrics"][f"slice/{TAG}/gap"] == 0.85
    assert told["params"] == run_parameters(bundle)
    assert told["tags"]["weakspot.input.classifier"] == "bb22"
    assert told["files"] == ["model-card.md", "report.md", "slices.csv"]
    assert told["status"] == "FINISHED"


def test_the_same_run_twice_is_one_run(told):
    assert told["n"] == 2
    assert told["history"] == 1
    assert told["accuracies"] == pytest.approx([2 / 3, 1.0])


def test_the_environment_says_where_to(told):
    assert "on your server" in told["there"]
    assert "mlflow.db" not in told["second"]
    assert "did not take the run" in told["refused"]


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[trackers\]"):
        log_mlflow_run(bundle_with_run(tmp_path), tmp_path / "out")


def test_without_a_run_nothing_is_written(tmp_path):
    with pytest.raises(StoreError, match="no run"):
        log_mlflow_run(made_bundle(tmp_path / "images"), tmp_path / "out")
