"""Making and continuing run records."""

import hashlib
import logging
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from weakspot.core.run import RunRecord, StageRecord
from weakspot.core.waiting import waited_seconds
from weakspot.pipeline.settings import Settings

log = logging.getLogger(__name__)
RUN_TIME = "%Y%m%dT%H%M%S.%f"
RECORDED_LIBRARIES = (
    "weakspot",
    "numba",
    "numpy",
    "opencv-python-headless",
    "scipy",
    "scikit-learn",
    "pyarrow",
    "pillow",
    "onnxruntime",
    "torch",
    "transformers",
    "diffusers",
)


def new_record(
    settings: Settings, *, inputs: dict[str, str], criterion: str, after: Sequence[str] = ()
) -> RunRecord:
    """Start the record of a run.

    Args:
        settings: all settings.
        inputs: hash of every input.
        criterion: what counts as a failure, in words.
        after: ids of earlier runs; the new one sorts behind them even if the clock was set back meanwhile.
    """
    started = _later_than(after, datetime.now(UTC))
    digest = hashlib.sha256(
        f"{started.isoformat()}{settings.model_dump_json()}{inputs}".encode()
    ).hexdigest()[:6]
    return RunRecord(
        run_id=f"{started:{RUN_TIME}}-{digest}",
        command=command_line(),
        started=started.isoformat(timespec="seconds"),
        seed=settings.seed,
        settings_given=settings.model_dump(mode="json", exclude_unset=True),
        settings=settings.model_dump(mode="json"),
        versions=library_versions(),
        inputs=inputs,
        criterion=criterion,
    )


def _later_than(run_ids: Sequence[str], now: datetime) -> datetime:
    """Return now, or the instant after the newest run where the clock says that now is earlier."""
    try:
        newest = datetime.strptime(max(run_ids, default="").rpartition("-")[0], RUN_TIME).replace(
            tzinfo=UTC
        )
    except ValueError:
        return now
    return max(now, newest + timedelta(microseconds=1))


def command_line() -> str:
    """Return what was typed, or `python` when weakspot is used as a library."""
    program = Path(sys.argv[0])
    is_ours = program.stem == "weakspot" or program.parts[-2:] == ("weakspot", "__main__.py")
    return shlex.join(["weakspot", *sys.argv[1:]]) if is_ours else "python"


def library_versions() -> dict[str, str]:
    """Return the versions of what a result can depend on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in RECORDED_LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class StageClock:
    """Collects the stages of a run with their times."""

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time a stage; put `summary`, `was_cached` and `n_images` into the dictionary that is given."""
        facts: dict[str, Any] = {"summary": ""}
        begun, waited = time.perf_counter(), waited_seconds()
        yield facts
        taken = time.perf_counter() - begun
        # Several threads may wait at once.
        waiting = min((waited_seconds() - waited) / max(taken, 1e-9), 1.0)
        stage = StageRecord(stage=name, seconds=round(taken, 3), waiting=round(waiting, 3), **facts)
        log.info(
            "%s: %.3f s, %d images, %.0f %% waiting", name, taken, stage.n_images, 100 * waiting
        )
        self.stages.append(stage)


def finished(record: RunRecord, **changes: Any) -> RunRecord:
    """Return a record with changes and today's time of finishing."""
    return record.model_copy(
        update={**changes, "finished": datetime.now(UTC).isoformat(timespec="seconds")}
    )
