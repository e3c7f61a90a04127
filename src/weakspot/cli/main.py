"""The command `weakspot`: which commands there are, and how errors end."""

import sys

import typer

from weakspot import __version__
from weakspot.cli import ask, generate, lab, loop, release, setup, terminal
from weakspot.cli.options import OwnCommand, TopicGroup, example_of

COMMANDS = {
    "Start": (setup.demo, setup.init, loop.run, setup.serve, setup.doctor),
    "Understand": (ask.ask, ask.nearest, ask.compare, loop.report),
    "Fix": (loop.repair, release.export, release.import_),
    "Generated images": (generate.generate, generate.search, generate.counterfactual),
    "Ship": (release.check, release.watch, setup.mcp),
    "Stages of run": (loop.ingest, loop.embed, loop.discover, loop.verify),
}


app = typer.Typer(
    name="weakspot",
    cls=TopicGroup,
    help="Finds, names, proves and repairs the systematic failures of image classifiers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _topic, _commands in COMMANDS.items():
    for _command in _commands:
        _name = _command.__name__.rstrip("_")
        app.command(_name, cls=OwnCommand, rich_help_panel=_topic, epilog=example_of(_name))(
            _command
        )
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
    quiet: bool = typer.Option(
        False, "--quiet", "-q", help="Show no progress; also after a command."
    ),
) -> None:
    """Finds, names, proves and repairs the systematic failures of image classifiers."""
    if quiet:
        terminal.be_quiet(asked=True)
    if verbose:
        terminal.start_logging(verbose)


def main() -> None:
    """Run the command line; the exit code is 0, 1 (finding above the threshold), 2 (bad input) or 130 (interrupted)."""
    from weakspot.core.errors import WeakspotError

    try:
        app(standalone_mode=True)
    except WeakspotError as error:
        terminal.report_error(error)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        terminal.report_error(terminal.describe_os_error(error))
        raise SystemExit(WeakspotError.exit_code) from None
    except MemoryError:
        terminal.report_error(terminal.describe_memory_error())
        raise SystemExit(WeakspotError.exit_code) from None
