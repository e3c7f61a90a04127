"""Commands around the loop: init, doctor, demo; serve, the browser on a project; mcp, a project for programs that talk."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli import terminal
from weakspot.cli.options import JsonOption, PortOption, ProjectOption, VerboseOption, require_web

if TYPE_CHECKING:
    from weakspot.core.run import PreflightCheck
    from weakspot.project.doctor import DoctorFinding


STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


def init(
    folder: Path = typer.Argument(Path(), help="Project folder to make."),
    data: str = typer.Option(
        "", "--data", help="Folder, manifest, Hugging Face folder or name, or tar pattern."
    ),
    classifier: str = typer.Option(
        "",
        "--classifier",
        help="Model file, transformers:NAME, timm:NAME, http address or package.module:name; none: predictions are given.",
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing weakspot.toml."),
) -> None:
    """Write a commented weakspot.toml."""
    from weakspot.project.project import Project

    path = Project.create(
        folder,
        data=data,
        classifier=classifier,
        overwrite=force,
    ).settings_path
    terminal.say(f"Wrote {path}. Look it over, then: weakspot run --project {folder}")


def doctor(
    project: Path | None = typer.Option(
        None, "--project", "-p", help="Also look at this project: do its data and classifier fit?"
    ),
    offline: bool = typer.Option(False, "--offline", help="Make no network check."),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="Show also what is in order, and every registered part."
    ),
    as_json: bool = JsonOption,
) -> None:
    """Say first whether all is well, then what is not: with this machine and, if given, with a project."""
    from weakspot.core.registry import ROLES, registered
    from weakspot.project.doctor import (
        examine_machine,
        examine_project,
        is_in_order,
        verdict_sentence,
    )

    findings = examine_machine(folder=project, ask_network=not offline)
    checks, failed = ((), ()) if project is None else examine_project(project)
    findings = (*findings, *failed)
    verdict = verdict_sentence(findings, checks)
    parts = {role: list(registered(role)) for role in ROLES}
    if as_json:
        shown = [dataclasses.asdict(finding) for finding in findings]
        told = [check.model_dump(mode="json") for check in checks]
        terminal.print_json(
            {"verdict": verdict, "checks": told, "findings": shown, "registered": parts}
        )
    else:
        terminal.say(verdict)
        _print_checks(checks, is_verbose=verbose)
        _print_findings(findings, is_verbose=verbose)
        for role, names in parts.items() if verbose else ():
            terminal.say(f"{role.replace('_', ' ')}: {', '.join(names) or 'none'}")
    if not is_in_order(findings, checks):
        raise typer.Exit(1)


def _print_checks(checks: "tuple[PreflightCheck, ...]", *, is_verbose: bool) -> None:
    from weakspot.core.run import CheckState

    for check in checks:
        if check.state is CheckState.OK and not is_verbose:
            continue
        terminal.say(f"  {check.state.value:8} {check.check}: {check.sentence}")
        for line in filter(None, (check.fix, check.settings_line)):
            terminal.say(f"{'':11}{line}")


def _print_findings(findings: "tuple[DoctorFinding, ...]", *, is_verbose: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = [
        finding
        for finding in findings
        if is_verbose or (finding.state != "ok" and not finding.is_optional)
    ]
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "state", "found", "to do"):
        table.add_column(heading, overflow="fold")
    for finding in shown:
        optional = " (optional)" if finding.is_optional and finding.state != "ok" else ""
        state = f"[{STYLES[finding.state]}]{finding.state}[/]{optional}"
        table.add_row(finding.area, state, escape(finding.found), escape(finding.fix))
    if shown:
        Console(highlight=False).print(table)
    absent = [finding.area for finding in findings if finding.state != "ok" and finding.is_optional]
    if absent and not is_verbose:
        terminal.say(f"  Optional and not there: {', '.join(absent)}; -v says how to get it.")


def demo(
    folder: Path = typer.Option(
        Path("weakspot-demo"), "--folder", help="Where the demo's project is made."
    ),
    as_json: bool = JsonOption,
    verbose: bool = VerboseOption,
    serve: bool = typer.Option(
        False, "--serve", help="Show it in the browser afterwards; at once if it was run before."
    ),
    port: int = PortOption,
    no_browser: bool = typer.Option(
        False, "--no-browser", help="With --serve: do not open a browser."
    ),
) -> None:
    """Run the whole loop on real photographs: a fruit classifier that hardly ever saw one kind of apple."""
    from weakspot.project.demo import is_finished_demo

    if serve:
        require_web()
    if not (serve and is_finished_demo(folder)):
        _run_demo(folder, as_json=as_json, verbose=verbose)
    if serve:
        start_server(folder, port=port, no_browser=no_browser)


def _run_demo(folder: Path, *, as_json: bool, verbose: bool) -> None:
    from weakspot.cli import results
    from weakspot.project.demo import run_demo
    from weakspot.project.warm_up import begin_compiling

    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        result = run_demo(folder, progress=progress)
    if as_json or verbose:
        text, end = results.whole_run(result.record), f"Report: {result.report}"
        terminal.show(result.record, (text, result.truth_sentence, end), as_json=as_json)
    else:
        results.show_run(result.record, folder, report=result.report)
        terminal.say(f"\n{result.truth_sentence}")


PASSWORD_VARIABLE = "WEAKSPOT_PASSWORD"


def serve(
    data: Path | None = typer.Argument(
        None,
        help="Images or a table to make a project of, with set-up in the browser; or a project folder.",
    ),
    project: Path = ProjectOption,
    port: int = PortOption,
    host: str = typer.Option(
        "127.0.0.1",
        "--host",
        help="Address to listen on. Any but this machine's own needs the variable WEAKSPOT_TOKEN or an owner with a password.",
    ),
    compare: list[Path] = typer.Option(
        [], "--compare", help="Another project folder to compare with; may be repeated."
    ),
    state: str = typer.Option(
        "",
        "--state",
        help="Where people, studies and phrases are kept: sqlite:///FILE or postgresql://...",
    ),
    public_address: str = typer.Option(
        "", "--public-address", help="The address that a proxy shows the server under."
    ),
    read_only: bool = typer.Option(False, "--read-only", help="Show everything, change nothing."),
    no_browser: bool = typer.Option(False, "--no-browser", help="Do not open a browser."),
    set_password: str = typer.Option(
        "",
        "--set-password",
        metavar="NAME",
        help="Make an owner with a password, or change it; nothing is served.",
    ),
) -> None:
    """Show a project in the browser: look at findings, ask, decide. What has no samples yet is set up there."""
    project, data = project_and_data(project, data)
    if set_password:
        _set_password(project, set_password, state)
        return
    start_server(
        project,
        data=data,
        port=port,
        host=host,
        compare=compare,
        state=state,
        public_address=public_address,
        read_only=read_only,
        no_browser=no_browser,
    )


def start_server(
    project: Path,
    *,
    data: Path | None = None,
    port: int,
    host: str = "127.0.0.1",
    compare: list[Path] | None = None,
    state: str = "",
    public_address: str = "",
    read_only: bool = False,
    no_browser: bool = False,
) -> None:
    """Serve a project until interrupted."""
    require_web()
    from weakspot.web.serving import ServeRequest, read_token, serve_project

    request = ServeRequest(
        folder=project,
        data=data,
        host=host,
        port=port,
        others=tuple(compare or ()),
        state_url=state,
        public_address=public_address,
        is_read_only=read_only,
        opens_browser=not no_browser,
        token=read_token(),
    )
    with terminal.stopping_on_signals():
        serve_project(request, say=terminal.say)


def project_and_data(project: Path, data: Path | None) -> tuple[Path, Path | None]:
    """Return the project folder, and the data to make a project of; None if it is a project already.

    Args:
        project: as given; `.` if it was not.
        data: as given: data, or a project folder.

    Raises:
        ConfigError: if nothing is there.
    """
    from weakspot.core.errors import ConfigError
    from weakspot.run.settings import SETTINGS_FILE

    if data is None:
        return project, None
    if not data.exists():
        raise ConfigError(
            "There is nothing at this path.",
            where=str(data),
            fix="Give a folder of images, a table, or a project folder.",
        )
    if (data / SETTINGS_FILE).is_file():
        return data, None
    if project != Path():
        return project, data
    name = data.resolve().name.partition(".")[0] or "images"
    return Path(f"{name}-weakspot"), data


def _set_password(project: Path, name: str, state: str) -> None:
    require_web()
    from weakspot.project.project import Project
    from weakspot.web.auth.login import set_owner_password
    from weakspot.web.serving import open_state

    store = open_state(Project.open(project), state)
    try:
        password = os.environ.get(PASSWORD_VARIABLE)
        if password is None:
            password = typer.prompt("Password", hide_input=True, confirmation_prompt="Once more")
        shown = set_owner_password(store, name, password)
    finally:
        store.close()
    terminal.say(f"{shown} can sign in with this password as an owner.")


TOKEN_VARIABLE = "WEAKSPOT_TOKEN"


def mcp(
    project: Path = ProjectOption,
    http: int | None = typer.Option(
        None,
        "--http",
        min=1,
        max=65535,
        help="Serve on this port of this machine instead of standard input and output; needs the variable WEAKSPOT_TOKEN.",
    ),
) -> None:
    """Let an agent use a project by the Model Context Protocol: findings, images, questions, checks, exports."""
    from weakspot.run.settings import load_settings
    from weakspot.tools.agents import build_server, with_token

    load_settings(project)
    server = build_server(project)
    if http is None:
        server.run("stdio")
        return
    import uvicorn

    app = with_token(server.streamable_http_app(), os.environ.get(TOKEN_VARIABLE, ""))
    terminal.remark(f"http://127.0.0.1:{http}/mcp (Ctrl+C stops it)")
    uvicorn.run(app, host="127.0.0.1", port=http, log_level="warning")
