"""The tools of a project by the Model Context Protocol: on standard input and output, or over HTTP with a token."""

import hmac
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from weakspot import __version__
from weakspot.agents.tools import ProjectTools
from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weakspot.agents.tools import ShownSample

Given = ParamSpec("Given")
Told = TypeVar("Told")
INSTRUCTIONS = (
    "weakspot finds, names and proves the systematic failures of an image classifier. Begin with `findings`. "
    "`images` shows what a slice looks like; `ask` tests your own words on held-out samples: every question counts, so ask few. "
    "Only what is confirmed may be said to be true. `run` takes minutes."
)
LEAST_TOKEN = 20


def build_server(folder: Path) -> Any:
    """Return a server with the tools of a project.

    Raises:
        MissingExtraError: if the library `mcp` is not installed.
    """
    try:
        from mcp.server.mcpserver import Context, Image, MCPServer
    except ModuleNotFoundError as error:
        raise MissingExtraError("mcp", extra="mcp", purpose="`weakspot mcp`") from error
    tools = ProjectTools(folder)
    server = MCPServer(
        "weakspot", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR"
    )

    @server.tool()
    def findings() -> dict[str, Any]:
        """What is wrong: whole classes that fail, confirmed slices with rates and causes, and what to do."""
        return _answer(tools.findings)

    @server.tool()
    def evidence(slice_id: str) -> dict[str, Any]:
        """Everything that was measured of one slice, confirmed or not; the id is in `findings`."""
        return _answer(tools.evidence, slice_id)

    @server.tool(structured_output=False)
    def images(slice_id: str, n_images: int = 8) -> list[Any]:
        """Images of a slice, then images of the rest of its class, each after what the classifier says of it."""
        return _strips(_answer(tools.images, slice_id, n_images), Image)

    @server.tool()
    def ask(phrase: str, class_name: str = "") -> dict[str, Any]:
        """Test words for what failures have in common, on held-out samples. Counts in the ledger: each question makes proof dearer."""
        return _answer(tools.ask, phrase, class_name)

    @server.tool()
    async def run(ctx: Context) -> dict[str, Any]:
        """Do the whole loop again (minutes); what is known already is not computed again. Returns the findings."""
        import anyio

        await ctx.report_progress(0, 1)
        return await anyio.to_thread.run_sync(lambda: _answer(tools.run))

    @server.tool()
    def check(policy: str = "policy.toml") -> dict[str, Any]:
        """Judge the newest run by a policy file of the project folder: may this model be released?"""
        return _answer(tools.check, policy)

    @server.tool()
    def export(to: str, out: str) -> dict[str, Any]:
        """Write findings for another tool (fiftyone, label-studio, cvat, ...) into a folder within the project."""
        return _answer(tools.export, to, out)

    return server


def _strips(shown: "Mapping[str, Sequence[ShownSample]]", image: Any) -> list[Any]:
    parts: list[Any] = []
    for name, samples in shown.items():
        parts.append(f"{name}: {len(samples)} images")
        for sample in samples:
            parts += [sample.caption, image(data=sample.jpeg, format="jpeg")]
    return parts


def _answer(tool: "Callable[Given, Told]", *given: Given.args, **named: Given.kwargs) -> Told:
    """Ask a tool; what weakspot says on purpose reaches the agent as it is."""
    try:
        return tool(*given, **named)
    except WeakspotError as error:
        from mcp.server.mcpserver.exceptions import ToolError

        raise ToolError(str(error)) from None


def with_token(app: Any, token: str) -> Any:
    """Return an application that answers only those who send the token as Bearer.

    Raises:
        ConfigError: if the token is too short to be one.
    """
    if len(token) < LEAST_TOKEN:
        raise ConfigError(
            f"A token has at least {LEAST_TOKEN} characters.",
            where="WEAKSPOT_TOKEN",
            fix="Make one: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    expected = token.encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, told = given.partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(told.strip(), expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"A token is needed."})
                return
        await app(scope, receive, send)

    return guarded
