"""Making and continuing run records, and where the time of a run went."""

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

from weakspot.core.machine import waited_seconds
from weakspot.core.run import RunRecord, StageRecord
from weakspot.data.charts import TimeBar, time_bars
from weakspot.run.settings import Settings
from weakspot.store.atomic import write_bytes
from weakspot.store.project import ProjectStore

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


PROFILE = "profile.svg"
SHORTEST_SECONDS = 0.005


def stage_figures(stage: StageRecord) -> str:
    """Return the seconds of a stage, its images per second, and the share of its time that it waited.

    >>> stage_figures(StageRecord(stage="embed", seconds=4.0, summary="", n_images=100, waiting=0.25))
    '4.0 s, 25.0 images/s, 25 % waiting'
    """
    parts = [f"{stage.seconds:.1f} s" if stage.seconds >= 1 else f"{stage.seconds:.2f} s"]
    if stage.n_images and stage.seconds:
        parts.append(f"{stage.n_images / stage.seconds:.1f} images/s")
    if stage.waiting:
        parts.append(f"{100 * stage.waiting:.0f} % waiting")
    return ", ".join(parts)


def stage_lines(stages: Sequence[StageRecord]) -> list[str]:
    """Return one line a stage and one for all; stages that took no time to speak of are left out."""
    shown = _worth_showing(stages)
    if not shown:
        return []
    width = max(len(stage.stage) for stage in shown)
    total = sum(stage.seconds for stage in stages)
    lines = [f"  {stage.stage:<{width}}  {stage_figures(stage)}" for stage in shown]
    return [f"Where the time went ({total:.1f} s in stages):", *lines]


def write_profile(store: ProjectStore, run_id: str, stages: Sequence[StageRecord]) -> Path:
    """Draw the stages of a run into its folder; return where."""
    shown = _worth_showing(stages)
    bars = [
        TimeBar(
            name=stage.stage,
            seconds=stage.seconds,
            waiting=stage.waiting,
            note=stage_figures(stage),
        )
        for stage in shown
    ]
    title = (
        f"Run {run_id}: {sum(stage.seconds for stage in stages):.1f} s in stages (hollow: waiting)"
    )
    path = store.runs.folder / run_id / PROFILE
    write_bytes(path, time_bars(bars, title=title).encode())
    return path


def _worth_showing(stages: Sequence[StageRecord]) -> list[StageRecord]:
    return [stage for stage in stages if stage.seconds >= SHORTEST_SECONDS]
