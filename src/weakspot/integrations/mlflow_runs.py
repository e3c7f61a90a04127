"""MLflow: a run with metrics, parameters, tags and files, in the user's tracking server or in a folder."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.integrations.bundle import ExchangeBundle, Written
from weakspot.integrations.metrics import (
    exported_run,
    run_files,
    run_metrics,
    run_parameters,
    run_tags,
)

ADDRESS = "MLFLOW_TRACKING_URI"
DATABASE, ARTEFACTS = "mlflow.db", "artefacts"
A_BATCH = 100
_FOR_SQLITE = ("sqlalchemy", "alembic")


def log_run(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write a run to MLflow; the same run again updates what was written.

    The environment variable `MLFLOW_TRACKING_URI` says where to. Without it, a SQLite file and the artefacts go into the folder,
    and nothing leaves the machine.

    Raises:
        MissingExtraError: if MLflow is not installed.
        UnavailableError: if the tracking server does not take the run.
    """
    exported_run(bundle)
    is_local = not os.environ.get(ADDRESS)
    client_class, error_class = _library(is_local=is_local)
    address = f"sqlite:///{(folder / DATABASE).resolve()}" if is_local else os.environ[ADDRESS]
    files = run_files(bundle, folder)
    try:
        client = client_class(address)
        mlflow_id = _run_id(
            client, bundle, (folder / ARTEFACTS).resolve().as_uri() if is_local else None
        )
        _log(client, mlflow_id, bundle, files)
    except error_class as error:
        what = f"MLflow did not take the run: {str(error).splitlines()[0]}"
        raise UnavailableError(
            what,
            where=ADDRESS,
            fix=f"Check the server, or unset {ADDRESS} to write into the folder.",
        ) from error
    opening = (
        f"Open it where MLflow is installed: mlflow ui --backend-store-uri {address}"
        if is_local
        else "It is on your server."
    )
    return Written(
        files=(*([folder / DATABASE] if is_local else []), *files),
        sentence=f"MLflow run {mlflow_id}. {opening}",
    )


def _library(*, is_local: bool) -> tuple[Any, type[Exception]]:
    for name in _FOR_SQLITE if is_local else ():
        if find_spec(name) is None:
            raise MissingExtraError(
                name, extra="trackers", purpose="Exports to MLflow without a server"
            )
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise MissingExtraError(
            "mlflow-skinny", extra="trackers", purpose="Exports to MLflow"
        ) from error
    return MlflowClient, MlflowException


def _run_id(client: Any, bundle: ExchangeBundle, artefacts: str | None) -> str:
    record = exported_run(bundle)
    experiment = client.get_experiment_by_name(bundle.name)
    experiment_id = (
        client.create_experiment(bundle.name, artifact_location=artefacts)
        if experiment is None
        else experiment.experiment_id
    )
    there = client.search_runs(
        [experiment_id], f"tags.`weakspot.run_id` = '{record.run_id}'", max_results=1
    )
    if there:
        return str(there[0].info.run_id)
    return str(
        client.create_run(experiment_id, tags=run_tags(bundle), run_name=record.run_id).info.run_id
    )


def _log(client: Any, mlflow_id: str, bundle: ExchangeBundle, files: Sequence[Path]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    run = client.get_run(mlflow_id)
    moment, known = run.info.start_time, run.data
    metrics = [
        Metric(name, value, moment, 0)
        for name, value in _changed(run_metrics(bundle), known.metrics).items()
    ]
    parameters = [
        Param(name, value)
        for name, value in run_parameters(bundle).items()
        if name not in known.params
    ]
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
