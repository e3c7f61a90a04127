"""The command `weakspot`: which commands there are, where renamed ones went, and what becomes of errors."""

import sys
from typing import Any

import typer

from weakspot import __version__
from weakspot.cli import ask, exchange, generate, lab, loop, release, repair, serve, setup
from weakspot.cli.options import TopicGroup

COMMANDS = {
    "Daily work": (
        setup.init,
        setup.doctor,
        setup.demo,
        loop.ingest,
        loop.embed,
        loop.discover,
        loop.verify,
        loop.report,
        loop.run,
        repair.repair,
        serve.serve,
    ),
    "Ask a question": (ask.hypothesis, ask.nearest, ask.compare),
    "Generated images": (generate.generate, generate.search, generate.counterfactual),
    "Release": (release.check, release.watch),
    "Other tools": (exchange.import_, exchange.export),
}
RENAMED = {
    **{name: f"weakspot lab {name}" for name in lab.COMMANDS},
    "bench-repair": "python benchmarks/repair.py",
}


class RootGroup(TopicGroup):
    """Says where renamed commands went."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named; one that has another name now ends with exit code 2."""
        if args[0] in RENAMED:
            typer.echo(f"weakspot {args[0]} is now: {RENAMED[args[0]]}", err=True)
            raise typer.Exit(2)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="weakspot",
    cls=RootGroup,
    help="Finds, names, proves and repairs the systematic failures of image classifiers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _topic, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(_command.__name__.rstrip("_"), rich_help_panel=_topic)(_command)
app.add_typer(lab.app, name="lab", rich_help_panel="Research")


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"weakspot {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    _version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
    ),
    verbose: int = typer.Option(
        0,
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Log what is done to the error stream; twice: more.",
    ),
) -> None:
    """Finds, names, proves and repairs the systematic failures of image classifiers."""
    if verbose:
        from weakspot.cli.terminal import start_logging

        start_logging(verbose)


def main() -> None:
    """Run the command line; the exit code is 0, 1 (finding above the threshold), 2 (bad input) or 130 (interrupted)."""
    from weakspot.cli.terminal import describe_memory_error, describe_os_error, report_error
    from weakspot.core.errors import WeakspotError

    try:
        app(standalone_mode=True)
    except WeakspotError as error:
        report_error(error)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        report_error(describe_os_error(error))
        raise SystemExit(WeakspotError.exit_code) from None
    except MemoryError:
        report_error(describe_memory_error())
        raise SystemExit(WeakspotError.exit_code) from None
