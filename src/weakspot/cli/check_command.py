"""The command `check`: whether a model may be released."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.running import JsonOption, ProjectOption

if TYPE_CHECKING:
    from weakspot.app.checking import Checked
    from weakspot.app.project import Project
    from weakspot.release.outcome import PolicyOutcome

PolicyOption = typer.Option(None, "--policy", help="Policy file; docs/guide/release.md explains every key.")
JudgedRunOption = typer.Option("", "--run", help="Run to judge; by default the one of the present samples, model and settings.")
BaselineOption = typer.Option(None, "--baseline", help="Project, run.json or baseline file to compare with.")
JunitOption = typer.Option(None, "--junit", help="Write JUnit XML to this file.")
SarifOption = typer.Option(None, "--sarif", help="Write SARIF 2.1.0 to this file.")
MarkdownOption = typer.Option(None, "--markdown", help="Write a comment for a pull request to this file.")
WriteBaselineOption = typer.Option(None, "--write-baseline", help="Write the judged run as a portable baseline to this file.")
NoRunOption = typer.Option(False, "--no-run", help="Judge a stored run only; never make one.")


def check(
    policy: Path | None = PolicyOption,
    project: Path = ProjectOption,
    run_id: str = JudgedRunOption,
    baseline: Path | None = BaselineOption,
    junit: Path | None = JunitOption,
    sarif: Path | None = SarifOption,
    markdown: Path | None = MarkdownOption,
    write_baseline: Path | None = WriteBaselineOption,
    no_run: bool = NoRunOption,
    as_json: bool = JsonOption,
) -> None:
    """Judge a model by a policy: exit with 0 if it is kept, 1 if it is violated, 2 for bad input."""
    from weakspot.app.checking.outputs import write_outputs
    from weakspot.app.project import Project
    from weakspot.cli import terminal
    from weakspot.core.errors import ConfigError

    if policy is None and write_baseline is None:
        raise ConfigError("There is no policy to judge by.", where="--policy", fix="weakspot check --policy policy.toml")
    with terminal.showing_progress() as progress:
        opened = Project.open(project, progress=progress)
        checked = (
            None if policy is None else _checked(opened, policy, run_id, baseline, no_run, is_first=write_baseline is not None)
        )
        if write_baseline is not None:
            _write(opened, write_baseline, run_id=run_id if checked is None else checked.record.run_id, may_run=not no_run)
    if checked is None:
        terminal.say(f"Baseline: {write_baseline}")
        return
    write_outputs(checked.outcome, junit=junit, sarif=sarif, markdown=markdown)
    terminal.print_json(checked.outcome.model_dump(mode="json")) if as_json else terminal.say(outcome_lines(checked.outcome))
    raise typer.Exit(checked.outcome.exit_code)


def _checked(
    opened: "Project", policy: Path, run_id: str, baseline: Path | None, no_run: bool, *, is_first: bool
) -> "Checked | None":
    from weakspot.app.checking import CheckRequest, check, load_baseline
    from weakspot.cli import terminal
    from weakspot.release.policy import load_policy, without_comparisons

    rules = load_policy(policy)
    if is_first and baseline is None and rules.needs_baseline:
        terminal.remark("There is no baseline yet, so nothing is compared with one.")
        reduced = without_comparisons(rules)
        if reduced is None:
            return None
        rules = reduced
    request = CheckRequest(
        policy=rules,
        policy_name=_shown(policy),
        run_id=run_id,
        baseline=None if baseline is None else load_baseline(baseline),
        may_run=not no_run,
    )
    return check(opened, request)


def _shown(path: Path) -> str:
    """Return a path as seen from the present folder, or its name alone if it lies elsewhere."""
    resolved, here = path.resolve(), Path.cwd()
    return resolved.relative_to(here).as_posix() if resolved.is_relative_to(here) else path.name


def _write(opened: "Project", path: Path, *, run_id: str, may_run: bool) -> None:
    from weakspot.app.checking import baseline_of, chosen_run, write_baseline

    write_baseline(path, baseline_of(opened, chosen_run(opened, run_id, may_run=may_run)))


def outcome_lines(outcome: "PolicyOutcome") -> str:
    """Return the verdict, what speaks against the model, and what could not be judged, in words."""
    from weakspot.release.outcome import Ruling

    lines = [outcome.headline]
    for verdict in (Ruling.VIOLATED, Ruling.NOT_JUDGED, Ruling.ACCEPTED, Ruling.KEPT):
        lines += [f"  {verdict.value}: {entry.rule}: {entry.sentence}" for entry in outcome.of(verdict)]
    lines += [f"  note: {note}" for note in outcome.notes]
    return "\n".join(lines)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(check)
