"""Where the time of a run went: one line a stage, and a picture."""

from collections.abc import Sequence
from pathlib import Path

from weakspot.core.run import StageRecord
from weakspot.media.time_bars import TimeBar, time_bars
from weakspot.store.atomic import write_bytes
from weakspot.store.project import ProjectStore

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
