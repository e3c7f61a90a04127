"""The commands serve and mcp: the browser on a project, and a project for programs that talk."""

import os
from pathlib import Path

import typer

from weakspot.cli.options import PortOption, ProjectOption

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
    from weakspot.cli import terminal
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


def require_web() -> None:
    """Refuse early, and in words, where the libraries of the browser are not installed."""
    from weakspot.core.errors import MissingExtraError

    for library, name in (
        ("fastapi", "fastapi"),
        ("uvicorn", "uvicorn"),
        ("sqlalchemy", "sqlalchemy"),
        ("alembic", "alembic"),
        ("argon2", "argon2-cffi"),
        ("python_multipart", "python-multipart"),
    ):
        try:
            __import__(library)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                name, extra="web", purpose="The pages of `weakspot serve`"
            ) from error


def _set_password(project: Path, name: str, state: str) -> None:
    require_web()
    from weakspot.cli import terminal
    from weakspot.project.project import Project
    from weakspot.web.auth.login import set_owner_password
    from weakspot.web.serving import open_state

    store = open_state(Project.open(project), state)
    try:
        shown = set_owner_password(store, name, _asked_password())
    finally:
        store.close()
    terminal.say(f"{shown} can sign in with this password as an owner.")


def _asked_password() -> str:
    given = os.environ.get(PASSWORD_VARIABLE)
    return (
        given
        if given is not None
        else str(typer.prompt("Password", hide_input=True, confirmation_prompt="Once more"))
    )


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
    from weakspot.cli.terminal import remark
    from weakspot.run.settings import load_settings
    from weakspot.tools.agents import build_server, with_token

    load_settings(project)
    server = build_server(project)
    if http is None:
        server.run("stdio")
        return
    import uvicorn

    app = with_token(server.streamable_http_app(), os.environ.get(TOKEN_VARIABLE, ""))
    remark(f"http://127.0.0.1:{http}/mcp (Ctrl+C stops it)")
    uvicorn.run(app, host="127.0.0.1", port=http, log_level="warning")
