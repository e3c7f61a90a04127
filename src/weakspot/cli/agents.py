"""The command mcp: a project for programs that talk."""

import os
from pathlib import Path

import typer

from weakspot.cli.options import ProjectOption

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
    from weakspot.agents.server import build_server, with_token
    from weakspot.cli.terminal import remark
    from weakspot.pipeline.settings_file import load_settings

    load_settings(project)
    server = build_server(project)
    if http is None:
        server.run("stdio")
        return
    import uvicorn

    app = with_token(server.streamable_http_app(), os.environ.get(TOKEN_VARIABLE, ""))
    remark(f"http://127.0.0.1:{http}/mcp (Ctrl+C stops it)")
    uvicorn.run(app, host="127.0.0.1", port=http, log_level="warning")
