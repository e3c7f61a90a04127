"""MLflow: a run with metrics, parameters, tags and files, in the user's tracking server or in a folder."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.neighbours.bundle import ExchangeBundle, Written
from weakspot.neighbours.metrics import exported_run, run_files, run_metrics, run_parameters, run_tags

ADDRESS = "MLFLOW_TRACKING_URI"
DATABASE, ARTEFACTS = "mlflow.db", "artefacts"
A_BATCH = 100


def log_run(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write a run to MLflow; the same run again replaces what was written.

    The environment variable `MLFLOW_TRACKING_URI` says where to. Without it, a SQLite file and the artefacts go into the folder, and
    nothing leaves the machine.

    Raises:
        MissingExtraError: if MLflow is not installed.
        UnavailableError: if the tracking server does not take the run.
    """
    exported_run(bundle)
    client_class, error_class = _library()
    address = os.environ.get(ADDRESS) or f"sqlite:///{(folder / DATABASE).resolve()}"
    files = run_files(bundle, folder)
    try:
        client = client_class(address)
        mlflow_id = _run_id(client, bundle, folder)
        _log(client, mlflow_id, bundle, files)
    except error_class as error:
        what = f"MLflow did not take the run: {str(error).splitlines()[0]}"
        raise UnavailableError(
            what, where=ADDRESS, fix=f"Check the server, or unset {ADDRESS} to write into the folder."
        ) from error
    is_local = ADDRESS not in os.environ
    opening = f"Open it where MLflow is installed: mlflow ui --backend-store-uri {address}" if is_local else "It is on your server."
    return Written(files=(*([folder / DATABASE] if is_local else []), *files), sentence=f"MLflow run {mlflow_id}. {opening}")


def _library() -> tuple[Any, type[Exception]]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        import alembic  # noqa: F401 - MLflow needs it for a SQLite file and says so late
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise MissingExtraError("mlflow-skinny", extra="trackers", purpose="Exports to MLflow") from error
    return MlflowClient, MlflowException


def _run_id(client: Any, bundle: ExchangeBundle, folder: Path) -> str:
    """Return the MLflow run of our run, made if there is none; metrics, parameters and files of an earlier export are replaced."""
    record = exported_run(bundle)
    experiment = client.get_experiment_by_name(bundle.name)
    if experiment is None:
        place = None if ADDRESS in os.environ else (folder / ARTEFACTS).resolve().as_uri()
        experiment_id = client.create_experiment(bundle.name, artifact_location=place)
    else:
        experiment_id = experiment.experiment_id
    there = client.search_runs([experiment_id], f"tags.`weakspot.run_id` = '{record.run_id}'", max_results=1)
    if there:
        return str(there[0].info.run_id)
    return str(client.create_run(experiment_id, tags=run_tags(bundle), run_name=record.run_id).info.run_id)


def _log(client: Any, mlflow_id: str, bundle: ExchangeBundle, files: Sequence[Path]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    moment = client.get_run(mlflow_id).info.start_time
    known = client.get_run(mlflow_id).data
    metrics = [Metric(name, value, moment, 0) for name, value in _changed(run_metrics(bundle), known.metrics).items()]
    parameters = [Param(name, value) for name, value in run_parameters(bundle).items() if name not in known.params]
    tags = [RunTag(name, value) for name, value in run_tags(bundle).items()]
    for start in range(0, max(len(metrics), len(parameters), len(tags)), A_BATCH):
        part = slice(start, start + A_BATCH)
        client.log_batch(mlflow_id, metrics=metrics[part], params=parameters[part], tags=tags[part])
    for file in files:
        client.log_artifact(mlflow_id, str(file))
    client.set_terminated(mlflow_id)


def _changed(metrics: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics that are new or different; MLflow keeps a history of each, in which nothing should stand twice."""
    return {name: value for name, value in metrics.items() if known.get(name) != value}
