import pytest
from tests.build import planted_project
from tests.tools.real_libraries import run_real, run_there

N_SAMPLES = 240
READ = """
import sys
from mlflow.tracking import MlflowClient
client = MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow.db")
[experiment] = [one for one in client.search_experiments() if one.name != "Default"]
[run] = client.search_runs([experiment.experiment_id])
print(run.data.tags["weakspot.run_id"], run.data.metrics["accuracy"], run.data.params["classifier.name"])
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    project = planted_project(tmp_path_factory.mktemp("trackers"), N_SAMPLES)
    record = project.discover()
    return project.folder, project.verify(record.run_id)


def test_the_command_hands_a_run_to_both_trackers(finished, tmp_path):
    folder, record = finished
    for name in ("mlflow", "wandb"):
        told = run_there(
            "-m",
            "weakspot",
            "export",
            "--project",
            folder,
            "--to",
            name,
            "--out",
            tmp_path / name,
            home=tmp_path,
        )
        assert "run" in told
    run_id, accuracy, classifier = run_real(READ, tmp_path / "mlflow", home=tmp_path).split()
    facts = record.classifier
    assert (run_id, classifier) == (record.run_id, "planted")
    assert float(accuracy) == pytest.approx(1 - facts.n_failed / facts.n_samples)
    assert list((tmp_path / "wandb" / "wandb").glob("offline-run-*/run-*.wandb"))
