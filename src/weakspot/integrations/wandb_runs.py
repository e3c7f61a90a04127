"""Weights & Biases: a run with metrics, settings and files, written to a folder and sent only if the user says so."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, MissingExtraError, UnavailableError
from weakspot.integrations.bundle import ExchangeBundle, Written
from weakspot.integrations.metrics import (
    exported_run,
    plain,
    run_files,
    run_metrics,
    run_parameters,
    run_tags,
)

MODE = "WANDB_MODE"
MODES = ("offline", "online")


def log_run(bundle: ExchangeBundle, folder: Path) -> Written:
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
    wandb = _library()
    wandb_id = _id(bundle)
    files = run_files(bundle, folder)
    _forget(folder, wandb_id)
    try:
        kept = _log(wandb, bundle, _settings(wandb, folder, mode, wandb_id), files)
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


def _library() -> Any:
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


def _log(wandb: Any, bundle: ExchangeBundle, settings: Any, files: tuple[Path, ...]) -> Path:
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
