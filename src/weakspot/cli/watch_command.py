"""The command `watch`: a project that is run again when samples, model or settings change."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from weakspot.cli.running import JsonOption, ProjectOption

INTERRUPTED = 130

EveryOption = typer.Option(60.0, "--every", min=0.1, help="Seconds between two looks.")
OnceOption = typer.Option(False, "--once", help="Look once and stop, for cron; with a policy, exit with 1 if it is violated.")
PolicyOption = typer.Option(None, "--policy", help="Policy to judge every new run by.")
BaselineOption = typer.Option(None, "--baseline", help="Project, run.json or baseline file that the policy compares with.")


def watch(
    project: Path = ProjectOption,
    every: float = EveryOption,
    once: bool = OnceOption,
    policy: Path | None = PolicyOption,
    baseline: Path | None = BaselineOption,
    as_json: bool = JsonOption,
) -> None:
    """Run a project again whenever its samples, its model or its settings change; only what changed is computed."""
    from weakspot.app.config import load_settings
    from weakspot.app.watching import Watcher, WatchRequest
    from weakspot.app.watching.turning import TurnRequest
    from weakspot.cli import terminal
    from weakspot.release.policy import load_policy

    load_settings(project)
    if policy is not None:
        load_policy(policy)
    turn = TurnRequest(folder=project, policy=policy, baseline=baseline, judge_always=once)
    with _ending_politely() as ending, terminal.showing_progress() as progress:
        watcher = Watcher(
            WatchRequest(turn=turn, every=every),
            progress=progress,
            tell=lambda done: (
                terminal.print_json(done.model_dump(mode="json", exclude_defaults=True)) if as_json else terminal.say(done.line)
            ),
        )
        try:
            if once:
                raise typer.Exit(1 if watcher.once().is_kept is False else 0)
            watcher.forever()
        except KeyboardInterrupt:
            terminal.remark("Stopped. What was finished is kept; the same command goes on from there.")
            raise typer.Exit(0 if ending else INTERRUPTED) from None


@contextmanager
def _ending_politely() -> Iterator[list[int]]:
    """Let SIGTERM end a turn as Ctrl-C does; the list that is given holds it once it came."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(watch)
