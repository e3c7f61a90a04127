"""Commands that hand results on: check a model by a policy, watch a project, exchange files with other tools or as pages."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli import terminal
from weakspot.cli.options import JsonOption, ProjectOption, opened, require_web
from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from weakspot.core.run import RunRecord
    from weakspot.gate.result import PolicyResult
    from weakspot.gate.watch import WatchRound
    from weakspot.project.project import Project
    from weakspot.tools.bundle import Written


INTERRUPTED = 130

PolicyOption = typer.Option(
    None, "--policy", help="Policy file; docs/guide/release.md explains every key."
)
JudgedRunOption = typer.Option(
    "", "--run", help="Run to judge; by default the one of the present samples, model and settings."
)
BaselineOption = typer.Option(
    None, "--baseline", help="Project, run.json or baseline file to compare with."
)
JunitOption = typer.Option(None, "--junit", help="Write JUnit XML to this file.")
SarifOption = typer.Option(None, "--sarif", help="Write SARIF 2.1.0 to this file.")
MarkdownOption = typer.Option(
    None, "--markdown", help="Write a comment for a pull request to this file."
)
WriteBaselineOption = typer.Option(
    None, "--write-baseline", help="Write the judged run as a portable baseline to this file."
)
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
    from weakspot.gate import runs
    from weakspot.gate.check import write_outputs

    if policy is None and write_baseline is None:
        raise ConfigError(
            "There is no policy to judge by.",
            where="--policy",
            fix="weakspot check --policy policy.toml",
        )
    checked = None
    with opened(project) as judged:
        if policy is not None:
            is_first = write_baseline is not None
            checked = _check_policy(judged, policy, run_id, baseline, no_run, is_first=is_first)
        if write_baseline is not None:
            chosen_id = run_id if checked is None else checked[1].run_id
            chosen = runs.choose_run(judged, chosen_id, may_run=not no_run)
            runs.write_baseline(write_baseline, runs.baseline_of(judged, chosen))
    if checked is None:
        terminal.say(f"Baseline: {write_baseline}")
        return
    result, _ = checked
    write_outputs(result, junit=junit, sarif=sarif, markdown=markdown)
    terminal.show(result, result_lines(result), as_json=as_json)
    raise typer.Exit(result.exit_code)


def _check_policy(
    judged: "Project",
    policy: Path,
    run_id: str,
    baseline: Path | None,
    no_run: bool,
    *,
    is_first: bool,
) -> "tuple[PolicyResult, RunRecord] | None":
    from weakspot.gate.check import CheckRequest, check
    from weakspot.gate.policy import load_policy, without_comparisons
    from weakspot.gate.runs import load_baseline

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
    return check(judged, request)


def _shown(path: Path) -> str:
    """Return a path as seen from the present folder, or its name alone if it lies elsewhere."""
    resolved, here = path.resolve(), Path.cwd()
    return resolved.relative_to(here).as_posix() if resolved.is_relative_to(here) else path.name


def result_lines(result: "PolicyResult") -> list[str]:
    """Return the verdict, what speaks against the model, and what could not be judged, in words."""
    from weakspot.gate.result import Ruling

    lines = [result.headline]
    for verdict in (Ruling.VIOLATED, Ruling.NOT_JUDGED, Ruling.ACCEPTED, Ruling.KEPT):
        lines += [
            f"  {verdict.value}: {entry.rule}: {entry.sentence}" for entry in result.of(verdict)
        ]
    return [*lines, *(f"  note: {note}" for note in result.notes)]


def watch(
    project: Path = ProjectOption,
    every: float = typer.Option(60.0, "--every", min=0.1, help="Seconds between two looks."),
    once: bool = typer.Option(
        False,
        "--once",
        help="Look once and stop, for cron; with a policy, exit with 1 if it is violated.",
    ),
    policy: Path | None = typer.Option(None, "--policy", help="Policy to judge every new run by."),
    baseline: Path | None = BaselineOption,
    as_json: bool = JsonOption,
) -> None:
    """Run a project again whenever it changes: its samples, model or settings; only what changed is computed."""
    from weakspot.gate.policy import load_policy
    from weakspot.gate.watch import RoundRequest, Watcher
    from weakspot.run.settings import load_settings

    load_settings(project)
    if policy is not None:
        load_policy(policy)
    request = RoundRequest(folder=project, policy=policy, baseline=baseline, judge_always=once)

    def show(done: "WatchRound") -> None:
        if as_json:
            terminal.print_json(done.model_dump(mode="json", exclude_defaults=True))
        else:
            terminal.say(done.line)

    with terminal.stopping_on_signals() as received, terminal.showing_progress() as progress:
        watcher = Watcher(request, every=every, progress=progress, tell=show)
        try:
            if once:
                raise typer.Exit(1 if watcher.once().is_kept is False else 0)
            watcher.forever()
        except KeyboardInterrupt:
            terminal.remark(
                "Stopped. What was finished is kept; the same command goes on from there."
            )
            raise typer.Exit(0 if signal.SIGTERM in received else INTERRUPTED) from None


StateOption = typer.Option(
    "", "--state", help="With --marks: where they are; in the project folder by default."
)


def import_(
    source: Path = typer.Argument(..., help="File or folder that the other tool exported."),
    from_: str = typer.Option(
        ..., "--from", help="The other tool: cleanlab, cvat, fiftyone, label-studio, spotlight."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Table to write: .csv, .tsv, .jsonl or .parquet."
    ),
    marks: bool = typer.Option(
        False,
        "--marks",
        help="Keep them as marks of the project instead: labels that differ are marked as wrong. Also --from csv.",
    ),
    project: Path = ProjectOption,
    state: str = StateOption,
    as_json: bool = JsonOption,
) -> None:
    """Read files of another tool: as a table for `weakspot ingest` or `weakspot repair --labels`, or as marks (--marks)."""
    if marks == (out is not None):
        raise ConfigError(
            "No place to import to is given.",
            fix="Give --out TABLE, or --marks for marks of the project.",
        )
    if out is None:
        _import_marks(project, from_, source, state=state, as_json=as_json)
        return
    from weakspot.tools.exchange import import_from

    written = import_from(from_, source, out)
    _show_files(written, as_json=as_json)


def _import_marks(project: Path, tool: str, source: Path, *, state: str, as_json: bool) -> None:
    require_web()
    from weakspot.web.serving import import_marks

    found = import_marks(project, tool, source, state_url=state)
    lines = [
        f"{found.n_marked} marks; they count when they are applied: weakspot serve, page Marks.",
        f"{found.n_same} lines give the label that is there, {found.n_unknown} are about images or classes that are not, "
        f"{found.n_unseen} about images that nobody may look at.",
    ]
    terminal.show(found, lines, as_json=as_json)


def export(
    static: Path | None = typer.Option(
        None, "--static", help="Folder to write the read-only pages to; it is made."
    ),
    to: str = typer.Option(
        "",
        "--to",
        help="Another tool, with --out: cleanlab, coco, cvat, fiftyone, huggingface, label-studio, mlflow, spotlight or wandb.",
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Folder for the files of the other tool; it is made."
    ),
    marks: bool = typer.Option(
        False,
        "--marks",
        help="With --to: only images that people marked; to csv, label-studio, cvat or cleanlab.",
    ),
    state: str = StateOption,
    project: Path = ProjectOption,
    run: str = typer.Option("", "--run", help="The run that is shown; the newest by default."),
    copy_images: bool = typer.Option(
        False, "--copy-images", help="With --to: copy images instead of pointing to them."
    ),
    most_samples: int = typer.Option(
        4000, "--most-samples", min=0, help="Images of so many samples at most."
    ),
    most_megabytes: float = typer.Option(
        60.0, "--most-megabytes", min=1.0, help="Size of data and images together."
    ),
    force: bool = typer.Option(False, "--force", help="Replace an earlier export in this folder."),
    as_json: bool = JsonOption,
) -> None:
    """Write a project for another tool (--to), or the browser's pages as files: open index.html, no server is needed (--static)."""
    if static is not None and not to and out is None:
        require_web()
        from weakspot.web.static import ExportRequest, export_static

        request = ExportRequest(
            project=project,
            folder=static,
            run_id=run or None,
            most_samples=most_samples,
            most_megabytes=most_megabytes,
            is_forced=force,
        )
        summary = export_static(request, say=terminal.remark)
        size = f"{summary.n_bytes / 1e6:.1f} MB, {summary.n_images:,} images"
        terminal.show(
            summary, (*summary.notes, f"Pages ({size}): {summary.index}"), as_json=as_json
        )
    elif static is not None or not to or out is None:
        raise _unclear(static=static, to=to, out=out)
    elif marks:
        require_web()
        from weakspot.web.serving import export_marks

        _show_files(export_marks(project, to, out, state_url=state), as_json=as_json)
    else:
        from weakspot.project.project import Project
        from weakspot.tools.exchange import export_to

        written = export_to(
            Project.open(project), to, out, run_id=run or None, copies_images=copy_images
        )
        _show_files(written, as_json=as_json)


def _unclear(*, static: Path | None, to: str, out: Path | None) -> ConfigError:
    from weakspot.tools.exchange import EXPORTS

    given = {"--static": static, "--to": to, "--out": out}
    named = " ".join(f"{option} {value}" for option, value in given.items() if value)
    return ConfigError(
        "It is not clear what to export.",
        given=named or None,
        fix=f"Give --static FOLDER for the pages, or --to NAME --out FOLDER for another tool: {', '.join(EXPORTS)}.",
    )


def _show_files(written: "Written", *, as_json: bool) -> None:
    files = [str(path) for path in written.files]
    shown = {"files": files, "sentence": written.sentence}
    terminal.show(shown, [*files, written.sentence], as_json=as_json)
