"""Runs code in the environment of other tools (`.venv-integrations`), which their tests speak to for real."""

import os
import subprocess
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-integrations" / "bin" / "python"
SECONDS = 300
QUIET = {
    "DO_NOT_TRACK": "1",
    "FIFTYONE_DO_NOT_TRACK": "true",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "SPOTLIGHT_OPT_OUT": "1",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_MODE": "offline",
}


def run_real(code: str, *arguments: object, home: Path, more: dict[str, str] | None = None) -> str:
    """Return what a piece of Python prints in the environment of other tools, where weakspot and tests can be imported.

    Args:
        code: what to run; `sys.argv[1:]` are the arguments.
        arguments: given to it as text.
        home: folder of the test that takes the place of the home folder, so that no tool leaves anything elsewhere.
        more: further environment variables.
    """
    return run_there("-c", code, *arguments, home=home, more=more)


def run_there(*arguments: object, home: Path, more: dict[str, str] | None = None) -> str:
    """Return what the interpreter of the other tools prints when started with these arguments, for example `-m weakspot`."""
    assert PYTHON.exists(), "The other tools are not installed. To do: sh scripts/integrations"
    # A token or address of the machine must not reach a tool under test: it could send something.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WANDB_", "MLFLOW_", "FIFTYONE_", "PYTHON"))
    }
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(_entry_points(home))])
    environment = {
        **kept,
        **QUIET,
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": path,
        **(more or {}),
    }
    done = subprocess.run(
        [str(PYTHON), *map(str, arguments)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _entry_points(home: Path) -> Path:
    """Return a folder that tells which parts weakspot registers; nothing but src is installed there."""
    folder = home / ".weakspot-parts"
    folder.mkdir(exist_ok=True)
    installed = Path(str(distribution("weakspot")._path))
    link = folder / installed.name
    if not link.exists():
        link.symlink_to(installed)
    return folder
