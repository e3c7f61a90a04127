"""Trackers of experiments, MLflow and Weights & Biases: a run with metrics, parameters, tags and files.

Kept in the user's server or a folder; names of metrics stay the same from run to run.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, MissingExtraError, StoreError, UnavailableError
from weakspot.core.repairs import GroupChange, RepairResult
from weakspot.core.run import RunRecord
from weakspot.data.locations import shown_location
from weakspot.tools.bundle import ExchangeBundle, MarkedSlice, Written, slice_facts
from weakspot.tools.files import write_bytes
from weakspot.tools.tables import write_manifest

MAX_METRICS = 1_000
MAX_PARAMETERS = 500
MAX_NAME_LENGTH = 200
MAX_VALUE_LENGTH = 500
_SECRET = re.compile(r"(^|_)(key|token|secret|password|credentials|authorization)$", re.IGNORECASE)


def exported_run(bundle: ExchangeBundle) -> RunRecord:
    """Return the run of an export.

    Raises:
        StoreError: if there is none yet.
    """
    if bundle.record is None:
        raise StoreError("There is no run to tell a tracker about.", fix="Run weakspot run first.")
    return bundle.record


def run_metrics(bundle: ExchangeBundle) -> dict[str, float]:
    """Return the metrics of a run, at most `MAX_METRICS`.

    Overall figures come first, then slices, repairs, and classes, those with most failures first: what is too much is left out at
    the end. `slice/<tag>/...` is measured on the confirmation half.
    """
    record = exported_run(bundle)
    found: dict[str, float] = {}
    for name, value in _all_metrics(record, bundle.slices):
        if len(found) == MAX_METRICS:
            break
        if value == value:  # noqa: PLR0124 - NaN is not equal to itself; an empty group has no accuracy
            found.setdefault(name[:MAX_NAME_LENGTH], float(value))
    return found


def run_parameters(bundle: ExchangeBundle) -> dict[str, str]:
    """Return all settings under dotted names, as text of bounded length; what may be a secret is left out."""
    record = exported_run(bundle)
    settings = record.settings or bundle.settings
    pairs = [("seed", str(record.seed)), ("criterion", record.criterion), *_flat(settings, "")]
    return {
        name[:MAX_NAME_LENGTH]: value[:MAX_VALUE_LENGTH]
        for name, value in pairs[:MAX_PARAMETERS]
        if value
    }


def run_tags(bundle: ExchangeBundle) -> dict[str, str]:
    """Return what tells one run from another: its id, the version of weakspot and the hashes of its inputs."""
    record = exported_run(bundle)
    tags = {
        "weakspot.run_id": record.run_id,
        "weakspot.project": bundle.name,
        "weakspot.version": record.versions.get("weakspot", ""),
        "weakspot.started": record.started,
        **{f"weakspot.input.{plain(name)}": value for name, value in record.inputs.items()},
    }
    return {name: value[:MAX_VALUE_LENGTH] for name, value in tags.items() if value}


def run_files(bundle: ExchangeBundle, folder: Path) -> tuple[Path, ...]:
    """Write the report, the model card and the table of slices into a folder and return their paths."""
    files = [write_bytes(folder / path.name, path.read_bytes()) for path in bundle.report_files]
    if bundle.model_card:
        files.append(write_bytes(folder / "model-card.md", bundle.model_card.encode()))
    facts = [slice_facts(marked) for marked in bundle.slices]
    if facts:
        columns = {name: [one[name] for one in facts] for name in facts[0]}
        files.append(write_manifest(folder / "slices.csv", columns))
    return tuple(files)


def plain(name: str) -> str:
    """Return a name of letters, digits, `-`, `_` and `.` only.

    >>> plain("apple: green & wet")
    'apple-green-wet'
    """
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-") or "unnamed"


def _all_metrics(record: RunRecord, slices: tuple[MarkedSlice, ...]) -> Iterator[tuple[str, float]]:
    facts = record.classifier
    if facts is not None and facts.n_samples:
        yield "accuracy", 1 - facts.n_failed / facts.n_samples
        yield "samples", facts.n_samples
        yield "failures", facts.n_failed
    yield "slices_confirmed", len(slices)
    yield "slices_tested", len(record.evidence)
    if slices:
        yield "worst_slice_accuracy", min(1 - marked.evidence.rate_inside for marked in slices)
        yield "largest_gap", max(marked.evidence.headline_gap for marked in slices)
    for marked in slices:
        yield from _slice_metrics(marked)
    for repair in record.repairs:
        yield from _repair_metrics(repair)
    if facts is not None:
        ordered = sorted(facts.per_class.items(), key=lambda item: (-item[1][1], item[0]))
        yield from (
            (f"class/{plain(name)}/accuracy", 1 - failed / total)
            for name, (total, failed) in ordered
            if total
        )


def _slice_metrics(marked: MarkedSlice) -> Iterator[tuple[str, float]]:
    evidence, head = marked.evidence, f"slice/{plain(marked.tag)}"
    yield f"{head}/accuracy", 1 - evidence.rate_inside
    yield f"{head}/accuracy_rest_of_class", 1 - evidence.rate_outside
    yield f"{head}/gap", evidence.headline_gap
    yield f"{head}/q_value", evidence.q_value
    yield f"{head}/samples", evidence.n_inside


def _repair_metrics(repair: RepairResult) -> Iterator[tuple[str, float]]:
    for arm in repair.arms:
        for change in arm.changes:
            head = f"repair/{plain(arm.arm)}/{_group_name(change)}"
            yield f"{head}/accuracy_before", change.accuracy_before
            yield f"{head}/accuracy_after", change.accuracy_after


def _group_name(change: GroupChange) -> str:
    kind = plain(change.kind.value)
    return kind if plain(change.group) == kind else f"{kind}/{plain(change.group)}"


def _flat(values: Mapping[str, object], head: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if _SECRET.search(name):
            continue
        full = f"{head}{plain(name)}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{full}.")
        elif value is not None:
            yield full, shown_location(value) if isinstance(value, str) else json.dumps(value)


ADDRESS = "MLFLOW_TRACKING_URI"
DATABASE, ARTEFACTS = "mlflow.db", "artefacts"
A_BATCH = 100
_FOR_SQLITE = ("sqlalchemy", "alembic")


def log_mlflow_run(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write a run to MLflow; the same run again updates what was written.

    The environment variable `MLFLOW_TRACKING_URI` says where to. Without it, a SQLite file and the artefacts go into the folder,
    and nothing leaves the machine.

    Raises:
        MissingExtraError: if MLflow is not installed.
        UnavailableError: if the tracking server does not take the run.
    """
    exported_run(bundle)
    is_local = not os.environ.get(ADDRESS)
    client_class, error_class = _mlflow_library(is_local=is_local)
    address = f"sqlite:///{(folder / DATABASE).resolve()}" if is_local else os.environ[ADDRESS]
    files = run_files(bundle, folder)
    try:
        client = client_class(address)
        mlflow_id = _run_id(
            client, bundle, (folder / ARTEFACTS).resolve().as_uri() if is_local else None
        )
        _log_to_mlflow(client, mlflow_id, bundle, files)
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


def _mlflow_library(*, is_local: bool) -> tuple[Any, type[Exception]]:
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


def _log_to_mlflow(
    client: Any, mlflow_id: str, bundle: ExchangeBundle, files: Sequence[Path]
) -> None:
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


MODE = "WANDB_MODE"
MODES = ("offline", "online")


def log_wandb_run(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write a run in the format of Weights & Biases into the folder; the same run again replaces it.

    With the environment variable `WANDB_MODE=online` it is sent to the server that the user is logged in to; else nothing leaves
    the machine, and `wandb sync` sends it later.

    Raises:
        MissingExtraError: if the library is not installed.
        ConfigError: if `WANDB_MODE` is something else.
        UnavailableError: if the library or its server does not take the run.
    """
    exported_run(bundle)
    mode = os.environ.get(MODE, "offline")
    if mode not in MODES:
        raise ConfigError(
            "This mode of Weights & Biases writes nothing.",
            where=MODE,
            given=mode,
            fix=f"Choose one of {MODES}.",
        )
    wandb = _wandb_library()
    wandb_id = _id(bundle)
    files = run_files(bundle, folder)
    _forget(folder, wandb_id)
    try:
        kept = _log_to_wandb(wandb, bundle, _settings(wandb, folder, mode, wandb_id), files)
    except wandb.Error as error:
        fix = f"Unset {MODE} to write into the folder only."
        raise UnavailableError(
            f"Weights & Biases did not take the run: {error}", where=MODE, fix=fix
        ) from error
    finally:
        wandb.teardown()  # ends the process that writes: only then is everything on disk
    sending = (
        f"Send it when you like: wandb sync {kept}"
        if mode == "offline"
        else "It was sent to your server."
    )
    return Written(files=(kept, *files), sentence=f"Weights & Biases run {wandb_id}. {sending}")


def _wandb_library() -> Any:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb
    except ImportError as error:
        raise MissingExtraError(
            "wandb", extra="trackers", purpose="Exports to Weights & Biases"
        ) from error
    return wandb


def _id(bundle: ExchangeBundle) -> str:
    return hashlib.sha256(f"{bundle.name}\n{exported_run(bundle).run_id}".encode()).hexdigest()[:16]


def _forget(folder: Path, wandb_id: str) -> None:
    for earlier in (folder / "wandb").glob(f"*run-*-{wandb_id}"):
        if earlier.is_dir() and not earlier.is_symlink():
            shutil.rmtree(earlier)


def _settings(wandb: Any, folder: Path, mode: str, wandb_id: str) -> Any:
    """Return settings with which nothing of the machine, its code or its packages is written down."""
    return wandb.Settings(
        mode=mode,
        root_dir=str(folder.resolve()),
        run_id=wandb_id,
        host="unnamed",
        resume="allow",
        console="off",
        silent=True,
        disable_git=True,
        disable_code=True,
        save_code=False,
        x_disable_stats=True,
        x_disable_meta=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )


def _log_to_wandb(
    wandb: Any, bundle: ExchangeBundle, settings: Any, files: tuple[Path, ...]
) -> Path:
    config = {**run_parameters(bundle), **run_tags(bundle)}
    name = exported_run(bundle).run_id
    with wandb.init(
        project=plain(bundle.name), name=name, config=config, tags=["weakspot"], settings=settings
    ) as run:
        run.summary.update(run_metrics(bundle))
        artefact = wandb.Artifact(f"weakspot-{run.id}", type="report")
        for file in files:
            artefact.add_file(str(file), policy="immutable")
        run.log_artifact(artefact)
        return Path(run.dir).parent
